"""The lock file by which the kernel shows whether a writer's process is alive."""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path

from sluice_s3.app.private_files import make_directory, open_file


def _lock(path: Path, flags: int) -> int | None:
    """Return the descriptor of a locked file.

    Returns None when another process has the lock.
    """
    descriptor = open_file(path, os.O_RDWR | flags)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


class LivenessLock:
    """A lock from before the incarnation's row is committed until the process ends."""

    def __init__(self, directory: Path) -> None:
        make_directory(directory)
        self._path = directory / f"{secrets.token_hex(8)}.lock"
        self._descriptor = _lock(self._path, os.O_CREAT | os.O_EXCL)

    @property
    def name(self) -> str:
        """The name of the file in the directory."""
        return self._path.name

    def close(self, *, remove: bool) -> None:
        """Release the lock.

        `remove` also removes the file, which no row may name then.
        """
        if remove:
            self._path.unlink(missing_ok=True)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_gone(directory: Path, name: str) -> bool:
    """Return whether no process has that lock.

    The file was locked before a row could name it.
    """
    try:
        descriptor = _lock(directory / name, 0)
    except FileNotFoundError:
        return True
    if descriptor is None:
        return False
    os.close(descriptor)
    return True
