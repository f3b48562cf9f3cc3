"""Whether the page cache holds a range of a file, by cachestat(2) (Linux 6.5)."""

from __future__ import annotations

import ctypes
import os

CACHESTAT = 451
"""The number of the system call, on every architecture."""
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

_syscall = ctypes.CDLL(None).syscall
_syscall.restype = ctypes.c_long


class _Range(ctypes.Structure):
    _fields_ = [("offset", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Counts(ctypes.Structure):
    _fields_ = [
        ("cached", ctypes.c_uint64),
        ("dirty", ctypes.c_uint64),
        ("in_writeback", ctypes.c_uint64),
        ("evicted", ctypes.c_uint64),
        ("recently_evicted", ctypes.c_uint64),
    ]


def is_cached(fd: int, offset: int, length: int) -> bool:
    """Return whether every page of `length` bytes at `offset` is in the page cache.

    It does not block. It is False where the kernel cannot say: before Linux 6.5, in some sandboxes, and for a file of
    another user.
    """
    if length <= 0:
        return True
    wanted = _Range(offset, length)
    counts = _Counts()
    call = (CACHESTAT, ctypes.c_int(fd), ctypes.byref(wanted), ctypes.byref(counts), ctypes.c_uint(0))
    if _syscall(*call) != 0:
        return False
    pages = (offset + length - 1) // PAGE_BYTES - offset // PAGE_BYTES + 1
    return int(counts.cached) >= pages
