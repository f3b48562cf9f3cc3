"""Disk space that is reserved for deletes, which also write to the index.

Blocks beyond the end of the write-ahead log are allocated to it (fallocate(2), FALLOC_FL_KEEP_SIZE). No other file can
take them, and the log grows into them. When no more blocks can be allocated, writes that grow the index are refused,
and all others continue in the reserved space. That space is finite, so meanwhile the log is copied back and restarted
(see `checkpoint`). On a filesystem without fallocate nothing is reserved.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import os
from pathlib import Path

logger = logging.getLogger("sluice.index")

MAX_BYTES = 16 << 20
"""Bytes to reserve: some 500 deletes of single objects, many more of deletes in one group."""
DISK_FRACTION = 16
"""On a small filesystem, the reserve is its size divided by this number."""
KEEP_SIZE = 1
FULL = (errno.ENOSPC, errno.EDQUOT)

_fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)


class DiskReserve:
    """The reserved space beyond the end of the log `wal`.

    Used under the file lock of the commits, by one thread at a time.
    """

    def __init__(self, wal: Path) -> None:
        self._wal = wal
        self._bytes = reserve_bytes(wal)
        self._until = 0
        """The offset in bytes up to which blocks are allocated, as far as this process knows."""
        self._size = 0
        self._works = _fallocate is not None
        self._short = False

    def is_short(self) -> bool:
        """Return whether the reserve is too small and cannot be refilled.

        Then nothing may be added to the index.
        """
        if not self._works:
            return False
        try:
            size = os.stat(self._wal).st_size
        except FileNotFoundError:
            return False
        if size < self._size:  # the log was truncated, which also freed the blocks beyond its end
            self._until = 0
        self._size = size
        if self._short or self._until - size < self._bytes // 2:
            self._keep(size + self._bytes)
        return self._short

    def _keep(self, until: int) -> None:
        if self._short and is_tight(self._wal):
            return  # the reserve may be complete again, but new rows would soon use it up
        try:
            _allocate(self._wal, until)
        except OSError as error:
            if error.errno not in FULL:
                self._works = False
                logger.warning("index: no space can be kept for deletes: %s", error.strerror)
            elif not self._short:
                logger.error("index: its disk is full: nothing is added until there is space")
            self._short = error.errno in FULL
            return
        if self._short:
            logger.warning("index: there is space on its disk again")
        self._until, self._short = until, False


def reserve_bytes(wal: Path) -> int:
    """Return the number of bytes to reserve beyond the end of the log."""
    space = os.statvfs(wal.parent)
    return min(MAX_BYTES, space.f_blocks * space.f_frsize // DISK_FRACTION)


def is_tight(wal: Path) -> bool:
    """Return whether the disk has less free space than the reserve.

    That is so when the reserve cannot be refilled.
    """
    space = os.statvfs(wal.parent)
    return space.f_bavail * space.f_frsize < reserve_bytes(wal)


def release(wal: Path) -> None:
    """Return the reserved blocks to the disk.

    No process may write to the log meanwhile.
    """
    fd = os.open(wal, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, os.fstat(fd).st_size)  # frees only the blocks beyond the end
    finally:
        os.close(fd)


def keep_again(wal: Path) -> None:
    """Allocate the reserve again if the disk has space for it.

    If not, the next commit reports that.
    """
    with contextlib.suppress(OSError):
        _allocate(wal, os.stat(wal).st_size + reserve_bytes(wal))


def _allocate(path: Path, until: int) -> None:
    fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        assert _fallocate is not None
        if _fallocate(fd, KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(until)) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(fd)
