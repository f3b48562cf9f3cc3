"""The start of the oldest running request, shared by a server's processes (law 2)."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

from sluice_s3.app.private_files import open_file, replace_file

FREE = 0
_WORD = 8


def boottime_ms() -> int:
    """Return CLOCK_BOOTTIME in milliseconds: equal in all processes, and never set back."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def map_shared_file(path: Path, size: int, *, create: bool) -> mmap.mmap:
    """Map `size` bytes of a file shared by all processes; `create` replaces it with zeros."""
    fd = replace_file(path) if create else open_file(path, os.O_RDWR)
    try:
        if create:
            os.posix_fallocate(fd, 0, size)  # a write to a mapped hole on a full disk would kill the process
        return mmap.mmap(fd, size)
    finally:
        os.close(fd)


class OldestRequests:
    """One word per process: CLOCK_BOOTTIME in milliseconds of its oldest running request.

    Without a running request, the time of its last sweep; 0 in a slot without a process. A process counts from before
    it starts until it is dead: the launcher claims its slot and frees it.
    """

    def __init__(self, path: Path, slot_count: int, *, create: bool = False) -> None:
        self._words = memoryview(map_shared_file(path, slot_count * _WORD, create=create)).cast("Q")

    def publish(self, slot: int, oldest: int) -> None:
        """Publish when the oldest running request of a slot began."""
        self._words[slot] = oldest

    def reserve(self, slot: int) -> None:
        """Claim a slot for a process about to start."""
        self._words[slot] = boottime_ms()

    def release(self, slot: int) -> None:
        """Free the slot of a dead process."""
        self._words[slot] = FREE

    def find_free_slot(self) -> int | None:
        """Return a slot without a process; None if all are taken."""
        return next((slot for slot, word in enumerate(self._words) if word == FREE), None)

    def oldest(self) -> int:
        """Return the time before which no running request of the server began."""
        return min((word for word in self._words if word != FREE), default=boottime_ms())
