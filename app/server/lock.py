"""The lock of a server's directory: one server at a time.

The kernel holds it until the last process of a server is dead. A process whose call on a mount hangs does not die
before the mount answers, even when it is killed; but no instruction of its own will ever run again. So the lock of a
server of which only such processes are left is taken from it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

NAME = "server.lock"
EXITING = 0x4
"""PF_EXITING among the flags of /proc/PID/task/TID/stat (proc(5))."""
FLAGS = 6
"""Place of the flags behind the name of the task there; its state is the first."""
POLL = 0.05


class ServerLock:
    """Held until `close`, and by processes that inherit `fd`."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def note(self, pids: Iterable[int]) -> None:
        """Write down who holds the lock."""
        text = "\n".join([_here(), *map(str, pids)]).encode()
        os.pwrite(self.fd, text, 0)
        os.ftruncate(self.fd, len(text))

    def close(self) -> None:
        """Let go."""
        os.close(self.fd)


def take(run_dir: Path, patience: float = 0.0) -> ServerLock | None:
    """Lock the directory, within `patience` seconds; None when another server has it. Raises OSError."""
    path = run_dir / NAME
    deadline = time.monotonic() + patience
    while (lock := _try(path)) is None:
        if time.monotonic() >= deadline:
            return _take_over(path)
        time.sleep(POLL)
    return lock


def _try(path: Path) -> ServerLock | None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(fd), os.stat(path)):
            lock = ServerLock(fd)
            lock.note([os.getpid()])
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    return None


def _take_over(path: Path) -> ServerLock | None:
    guard = os.open(path.with_suffix(".guard"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(guard, fcntl.LOCK_EX)
        lock = _try(path)
        if lock is None:
            here, *pids = path.read_text().split("\n")
            if here == _here() and all(is_doomed(int(pid)) for pid in pids):
                path.unlink()
                lock = _try(path)
        return lock
    finally:
        os.close(guard)


def _here() -> str:
    """Where the numbers of processes mean the same ones: this boot, and this container."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"


def is_doomed(pid: int) -> bool:
    """Whether no instruction of a process will ever run again: it is dead, or killed and cannot die yet."""
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
    except OSError:  # it died meanwhile
        return not os.path.exists(task)
    if fields[0] in (b"Z", b"X") or int(fields[FLAGS]) & EXITING:
        return True
    return any(signals >> (signal.SIGKILL - 1) & 1 for signals in pending)
