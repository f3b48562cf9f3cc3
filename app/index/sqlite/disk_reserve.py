"""Space on the disk of the index that is kept for what gives space back: a DELETE writes to the index, too.

Blocks behind the end of the write-ahead log are allocated to it (fallocate(2), FALLOC_FL_KEEP_SIZE), where no other
file can take them, and it grows into them. When there are none left to allocate, what would make the index larger is
refused, and all else goes on in what was kept. That is not for ever, so the log is copied back and restarted meanwhile
(see `checkpoint`). Where a filesystem cannot do that nothing is kept.
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
"""Bytes kept: some 500 deletes of single objects, many more of those that stand together."""
DISK_FRACTION = 16
"""Of a small filesystem a part of so many."""
KEEP_SIZE = 1
FULL = (errno.ENOSPC, errno.EDQUOT)

_fallocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)


class DiskReserve:
    """The space behind the log `wal`. Used by one thread, under the file lock of the commits."""

    def __init__(self, wal: Path) -> None:
        self._wal = wal
        self._bytes = reserve_bytes(wal)
        self._until = 0
        """Up to here blocks are allocated, as far as this process knows."""
        self._size = 0
        self._works = _fallocate is not None
        self._short = False

    def is_short(self) -> bool:
        """Whether less is there than should be, and no more to be had: then nothing may be added to the index."""
        if not self._works:
            return False
        try:
            size = os.stat(self._wal).st_size
        except FileNotFoundError:
            return False
        if size < self._size:  # it was cut, and what was behind its end with it
            self._until = 0
        self._size = size
        if self._short or self._until - size < self._bytes // 2:
            self._keep(size + self._bytes)
        return self._short

    def _keep(self, until: int) -> None:
        if self._short and is_tight(self._wal):
            return  # what is kept may be whole again, but what is added would soon take it
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
    """How much is kept behind the log."""
    space = os.statvfs(wal.parent)
    return min(MAX_BYTES, space.f_blocks * space.f_frsize // DISK_FRACTION)


def is_tight(wal: Path) -> bool:
    """Whether the disk has less left than is kept, as when nothing more can be."""
    space = os.statvfs(wal.parent)
    return space.f_bavail * space.f_frsize < reserve_bytes(wal)


def release(wal: Path) -> None:
    """Give the disk what is kept behind the log. Nobody may write to it meanwhile."""
    fd = os.open(wal, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, os.fstat(fd).st_size)  # cuts nothing but the blocks behind the end
    finally:
        os.close(fd)


def keep_again(wal: Path) -> None:
    """Keep as much behind the log as there should be, if there is as much: else the next commit says so."""
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
