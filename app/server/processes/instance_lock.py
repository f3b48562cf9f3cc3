"""The lock of a server's directory: one server at a time.

The kernel holds it until the last process of a server is dead. A process whose call hangs on a mount does not die
before the mount answers, even when killed; but it never runs another instruction. So a new server takes over the lock
when only such processes are left.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from sluice_s3.app.private_files import open_file

NAME = "server.lock"
PF_EXITING = 0x4
"""PF_EXITING among the flags of /proc/PID/task/TID/stat (proc(5))."""
FLAGS = 6
"""Index of the flags in the fields after the task's name. Its state is the first."""
POLL_SECONDS = 0.05


class InstanceLock:
    """A lock held until `close`, and by processes that inherit `fd`."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def note(self, pids: Iterable[int]) -> None:
        """Write the pids that hold the lock into it."""
        text = "\n".join([_here(), *map(str, pids)]).encode()
        os.pwrite(self.fd, text, 0)
        os.ftruncate(self.fd, len(text))

    def close(self) -> None:
        """Release the lock."""
        os.close(self.fd)


def acquire(run_dir: Path, timeout: float = 0.0) -> InstanceLock | None:
    """Lock the directory within `timeout` seconds; None when another server has it. Raises OSError."""
    path = run_dir / NAME
    deadline = time.monotonic() + timeout
    while (lock := _try(path)) is None:
        if time.monotonic() >= deadline:
            return _take_over(path)
        time.sleep(POLL_SECONDS)
    return lock


def _try(path: Path) -> InstanceLock | None:
    fd = open_file(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.lstat(path)):
            lock = InstanceLock(fd)
            lock.note([os.getpid()])
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def _take_over(path: Path) -> InstanceLock | None:
    guard = open_file(path.with_suffix(".guard"))
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        lock = _try(path)
        if lock is None:
            here, *pids = _noted(path)
            if here == _here() and all(is_dead_or_dying(int(pid)) for pid in pids):
                path.unlink()
                lock = _try(path)
        return lock
    finally:
        os.close(guard)


def _noted(path: Path) -> list[str]:
    with os.fdopen(open_file(path, os.O_RDONLY)) as file:
        return file.read().split("\n")


def noted_pids(run_dir: Path) -> list[int]:
    """Return the processes that hold the lock of a directory, the launcher first. Raises OSError, ValueError."""
    return [int(pid) for pid in _noted(run_dir / NAME)[1:]]


def _here() -> str:
    """Return the scope in which pids are unique: this boot and this container."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"


def is_dead_or_dying(pid: int) -> bool:
    """Return whether a process will never run another instruction. It is dead, or killed and not yet dead."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return not os.path.exists(f"/proc/{pid}")
    return all(_task_is_doomed(f"/proc/{pid}/task/{task}") for task in tasks)


def _task_is_doomed(task: str) -> bool:
    try:
        with open(f"{task}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
        with open(f"{task}/status", "rb") as file:
            pending = [int(line.split()[1], 16) for line in file if line.startswith((b"SigPnd:", b"ShdPnd:"))]
    except OSError:  # it died in the meantime
        return not os.path.exists(task)
    if fields[0] in (b"Z", b"X") or int(fields[FLAGS]) & PF_EXITING:
        return True
    return any(signals >> (signal.SIGKILL - 1) & 1 for signals in pending)
