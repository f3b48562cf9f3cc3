"""The lock of a server's directory, and when it is taken from the dead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice_s3.app.server.processes import instance_lock
from sluice_s3.app.server.processes.instance_lock import NAME, InstanceLock, acquire, is_dead_or_dying
from tests.support.waiting import eventually

HOLD = "import sys, time; from pathlib import Path; from sluice_s3.app.server.processes.instance_lock import acquire; "
HOLD += "held = acquire(Path(sys.argv[1])); print(held is not None, flush=True); time.sleep(600)"


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def taken(path: Path, patience: float = 0.0) -> InstanceLock:
    found = acquire(path, patience)
    assert found is not None
    return found


def test_one_at_a_time(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    assert acquire(tmp_path) is None
    assert not is_dead_or_dying(holder.pid)
    holder.kill()
    taken(tmp_path, 60).close()
    taken(tmp_path).close()


def test_what_was_noted_is_what_holds_it(tmp_path: Path) -> None:
    held = taken(tmp_path)
    held.note([1234567, 12])
    held.note([12])
    assert (tmp_path / NAME).read_text().split("\n")[1:] == ["12"]
    held.close()


def test_it_is_taken_from_those_who_cannot_die(
    tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From all of them, or not at all; and from then on it is as good as any."""
    text = (tmp_path / NAME).read_text()
    (tmp_path / NAME).write_text(f"{text}\n{os.getpid()}")
    monkeypatch.setattr(instance_lock, "is_dead_or_dying", lambda pid: pid == holder.pid)
    assert acquire(tmp_path) is None
    (tmp_path / NAME).write_text(text)
    held = taken(tmp_path)
    monkeypatch.undo()
    assert acquire(tmp_path) is None
    held.close()
    taken(tmp_path).close()


def test_numbers_of_processes_mean_nothing_elsewhere(
    tmp_path: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another container, or of nobody knows where."""
    monkeypatch.setattr(instance_lock, "is_dead_or_dying", lambda _: True)
    for text in (f"elsewhere\n{holder.pid}", ""):
        (tmp_path / NAME).write_text(text)
        assert acquire(tmp_path) is None


def test_who_is_doomed() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    assert not is_dead_or_dying(process.pid)
    os.kill(process.pid, signal.SIGSTOP)
    assert not is_dead_or_dying(process.pid)
    process.kill()
    eventually(lambda: is_dead_or_dying(process.pid), "killed; then a zombie")
    process.wait()
    assert is_dead_or_dying(process.pid)
    assert not is_dead_or_dying(os.getpid())
