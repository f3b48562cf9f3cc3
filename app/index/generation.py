"""A counter that all processes of one index share, so that caches see a change without a system call (law 7)."""

from __future__ import annotations

import fcntl
import mmap
import os
from pathlib import Path

SIZE = 8


class Generation:
    """A 64-bit number in a mapped file. Only ever goes up; made with 0 where there is no file."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(self._descriptor).st_size < SIZE:
                os.posix_fallocate(self._descriptor, 0, SIZE)  # see app.server.shared.open_shared
            self._map = mmap.mmap(self._descriptor, SIZE)
        except BaseException:
            os.close(self._descriptor)
            raise
        self._value = memoryview(self._map).cast("Q")

    def read(self) -> int:
        """The number now."""
        return self._value[0]

    def bump(self) -> None:
        """Count up, in this process or beside it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        try:
            self._value[0] = (self._value[0] + 1) % (1 << 64)
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Unmap. `read` and `bump` must not be called again."""
        if self._descriptor >= 0:
            self._value.release()
            self._map.close()
            os.close(self._descriptor)
            self._descriptor = -1
