"""What processes of one server tell each other: when the oldest request that still runs began (law 2)."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

FREE = 0
_WORD = 8


def boottime_ms() -> int:
    """CLOCK_BOOTTIME in milliseconds: the same in all processes, and never set back."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def open_shared(path: Path, size: int, *, create: bool) -> mmap.mmap:
    """Map `size` bytes of a file that all processes share; `create` starts it anew, all zero."""
    flags = os.O_RDWR | os.O_CLOEXEC
    if create:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        flags |= os.O_CREAT | os.O_EXCL
    fd = os.open(path, flags, 0o600)
    try:
        if create:
            os.posix_fallocate(fd, 0, size)  # a write to a mapped hole of a full disk would kill the process
        return mmap.mmap(fd, size)
    finally:
        os.close(fd)


class OldestRequests:
    """One word a process: CLOCK_BOOTTIME in milliseconds of its oldest running request, or of its last look if it had
    none; 0 for a place without a process.

    A process counts from before it starts until it is dead: the launcher claims its place and frees it.
    """

    def __init__(self, path: Path, places: int, *, create: bool = False) -> None:
        self._words = memoryview(open_shared(path, places * _WORD, create=create)).cast("Q")

    def publish(self, place: int, oldest: int) -> None:
        """Say when the oldest running request of a place began."""
        self._words[place] = oldest

    def claim(self, place: int) -> None:
        """A process is about to start at a place."""
        self._words[place] = boottime_ms()

    def free(self, place: int) -> None:
        """The process of a place is dead."""
        self._words[place] = FREE

    def free_place(self) -> int | None:
        """A place that no process has."""
        return next((place for place, word in enumerate(self._words) if word == FREE), None)

    def oldest(self) -> int:
        """No request that began before this runs in any process of the server."""
        return min((word for word in self._words if word != FREE), default=boottime_ms())
