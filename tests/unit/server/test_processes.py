"""Child processes: what they inherit, and how their end is told."""

from __future__ import annotations

import asyncio
import os
import pickle
import select
import signal
import subprocess
import sys
from textwrap import dedent

import pytest

from sluice_s3.app.server.processes.spawn import Process, spawn_fresh
from tests.support.environment import ROOT

pytestmark = pytest.mark.slow


async def test_an_end_is_told_to_all_who_wait() -> None:
    child = spawn_fresh("import time; time.sleep(60)", "sleeper", ())
    waiting = [asyncio.create_task(child.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    assert child.returncode is None
    child.send(signal.SIGTERM)
    assert await asyncio.gather(*waiting) == [-signal.SIGTERM] * 3
    assert await child.wait() == child.returncode == -signal.SIGTERM
    child.send(signal.SIGKILL)  # nobody has the number now, or somebody else


@pytest.mark.parametrize("code", [0, 3])
async def test_an_exit_code(code: int) -> None:
    assert await spawn_fresh(f"raise SystemExit({code})", "ends", ()).wait() == code


async def test_a_process_anew_has_only_what_is_kept() -> None:
    kept, left = os.memfd_create("kept"), os.memfd_create("left")
    try:
        code = (
            f"import os; os.fstat({kept}); assert open(0).read() == ''\ntry: os.fstat({left})\nexcept OSError: exit(5)"
        )
        assert await spawn_fresh(code, "looks", (kept,)).wait() == 5
    finally:
        os.close(kept)
        os.close(left)


def test_a_process_anew_dies_with_its_parent_however_far_it_came() -> None:
    """It holds the server's lock while it imports; here it waits for ever for what it shall be."""
    reading, writing = os.pipe()
    os.write(writing, pickle.dumps([str(ROOT), *sys.path]))
    code = f"""
        import os, time
        from sluice_s3.app.server.processes.child import BOOTSTRAP
        from sluice_s3.app.server.processes.spawn import spawn_fresh
        print(spawn_fresh(BOOTSTRAP.format(fd={reading}, parent=os.getpid()), "waits", ({reading},)).pid, flush=True)
        time.sleep(60)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", dedent(code)], cwd=ROOT, stdout=subprocess.PIPE, pass_fds=[reading], text=True
    )
    try:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()
        assert select.select([child], [], [], 30)[0] == [child]
        os.close(child)
    finally:
        parent.kill()
        parent.communicate()
        os.close(reading)
        os.close(writing)


def forked(call: str) -> tuple[int, str]:
    """What `spawn_forked` makes of a call, in a program that has no threads; its exit code, and what was printed."""
    code = f"""
        import asyncio, logging, os, sys
        from sluice_s3.app.server.processes.spawn import spawn_forked
        logging.basicConfig()
        kept, left = os.memfd_create("kept"), os.memfd_create("left")
        def call():
            {call}
        child = spawn_forked(call, (kept,))
        print("code", asyncio.run(child.wait()))
    """
    done = subprocess.run([sys.executable, "-c", dedent(code)], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    return int(lines.pop().removeprefix("code ")), "\n".join(lines) + done.stderr


def test_a_forked_process_has_only_what_is_kept() -> None:
    code, said = forked("print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1] == [0, 1, 2, kept], flush=True)")
    assert (code, said) == (0, "True")
    assert forked("print(repr(sys.stdin.read()), os.getpgid(0) == os.getpid(), flush=True)") == (0, "'' True")


@pytest.mark.parametrize(("call", "code", "words"), [("sys.exit(4)", 4, ""), ("1 / 0", 1, "ZeroDivisionError")])
def test_how_a_forked_process_ends(call: str, code: int, words: str) -> None:
    """Never into the code of its parent."""
    ended, said = forked(call)
    assert ended == code
    assert words in said


def test_a_process_that_was_there() -> None:
    with pytest.raises(ProcessLookupError):
        Process(2**22 - 1)
