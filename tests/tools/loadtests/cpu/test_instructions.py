"""Instructions of a process tree, where the machine counts them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sluice_s3.loadtests.cpu import instructions
from sluice_s3.loadtests.cpu.instructions import Counter

LOOP = "for number in range(1_000_000): pass"
WORK = {
    "itself": LOOP,
    "a thread that it starts": (
        f"import threading; thread = threading.Thread(target=exec, args=({LOOP!r},)); thread.start(); thread.join()"
    ),
    "a child that it starts": f"import subprocess, sys; subprocess.run([sys.executable, '-c', {LOOP!r}])",
}
PROGRAM = """
while work := input():
    exec(work)
    print(flush=True)
"""


@pytest.mark.parametrize("work", WORK)
def test_what_a_tree_executes_is_counted(work: str) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True, bufsize=1) as child:
        assert child.stdin is not None
        assert child.stdout is not None

        def do(what: str) -> None:
            assert child.stdin is not None
            assert child.stdout is not None
            child.stdin.write(what + "\n")
            child.stdout.readline()

        do("pass")
        counter = Counter(child.pid)
        if counter.read() is None:
            child.communicate("\n")
            pytest.skip("instructions are not counted here")
        do("pass")
        idle = counter.read()
        do(WORK[work])
        busy = counter.read()
        counter.close()
        child.communicate("\n")
        assert idle is not None
        assert busy is not None
        assert idle < 2_000_000 < 5_000_000 < busy - idle


def test_none_where_the_machine_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(instructions, "PERF_EVENT_OPEN", {})
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as child:
        counter = Counter(child.pid)
        assert counter.read() is None
        counter.close()
        child.communicate("\n")
