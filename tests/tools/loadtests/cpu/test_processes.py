"""CPU and memory of process trees."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from sluice_s3.loadtests.common import procfs

SPIN = "import time\nwhile time.process_time() < {seconds}: pass\n"
PARENT = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {SPIN.format(seconds=0.3)!r}])
child = subprocess.Popen([sys.executable, "-c", {SPIN.format(seconds=0.2)!r} + "print(flush=True)\\ninput()"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
print(flush=True)
input()
"""


def test_a_tree_with_a_child_that_exited() -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdout.readline()
        try:
            assert len(procfs.tree(parent.pid)) == 2
            assert 0.48 < procfs.cpu_seconds(parent.pid) < 10
            assert procfs.peak_bytes(parent.pid) > 4 << 20
            procfs.reset_peak(parent.pid)
            core = min(os.sched_getaffinity(0))
            procfs.pin(parent.pid, core)
            assert all(os.sched_getaffinity(pid) == {core} for pid in procfs.tree(parent.pid))
        finally:
            parent.stdin.close()
    with pytest.raises(ProcessLookupError):
        procfs.tree(parent.pid)


def test_own_cpu_is_the_process_clock() -> None:
    """In a process that has no others, as that of the tests has."""
    measure = "before = time.process_time(); print(before, procfs.cpu_seconds(os.getpid()), time.process_time())"
    work = "import os, time; from sluice_s3.loadtests.common import procfs; sum(range(20_000_000)); " + measure
    printed = subprocess.run([sys.executable, "-c", work], check=True, capture_output=True, text=True).stdout
    before, measured, after = map(float, printed.split())
    assert before > 0.05
    assert before - 0.02 <= measured <= after + 0.02


def test_share_of_a_core() -> None:
    before, after = procfs.CoreTime(5.0, 100.0), procfs.CoreTime(8.0, 110.0)
    assert after.share_since(before) == pytest.approx(0.3)
    assert before.share_since(before) == 0
    core = min(os.sched_getaffinity(0))
    assert 0 < procfs.core_time(core).busy <= procfs.core_time(core).total
    with pytest.raises(LookupError):
        procfs.core_time(100_000)
