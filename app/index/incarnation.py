"""The lock file by which the kernel tells whether a writer's process still lives."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path


def _lock(path: Path, flags: int) -> int | None:
    """The descriptor of a file locked for good, None when another process holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


class LifeLock:
    """Held from before the incarnation's row is committed until the process ends."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = directory / f"{secrets.token_hex(8)}.lock"
        self._descriptor = _lock(self._path, os.O_CREAT | os.O_EXCL)

    @property
    def name(self) -> str:
        """The name of the file in the directory."""
        return self._path.name

    def close(self, *, remove: bool) -> None:
        """Let go; `remove` when no row names this lock any more."""
        if remove:
            self._path.unlink(missing_ok=True)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_gone(directory: Path, name: str) -> bool:
    """Whether no process holds that lock. The file was locked before a row could name it."""
    try:
        descriptor = _lock(directory / name, 0)
    except FileNotFoundError:
        return True
    if descriptor is None:
        return False
    os.close(descriptor)
    return True
