"""Holes in packs: whole pages of dead records are freed, if the mount supports fallocate(2)."""

from __future__ import annotations

import ctypes
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress

from sluice_s3.storage_drivers.errors import map_errors
from sluice_s3.storage_drivers.fsutil import FILE_MODE, write_all
from sluice_s3.storage_drivers.packs.reader import RecordLocation

KEEP_SIZE, PUNCH_HOLE = 1, 2
MIN_HOLE_BYTES = 64 * 1024
"""Minimum bytes of a hole.

Each hole costs a write to the filesystem's journal and an extent of the file. Compaction frees smaller runs more
cheaply.
"""
PROBE = 4 * MIN_HOLE_BYTES
OPEN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

_fallocate = ctypes.CDLL(None, use_errno=True).fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def punch(fd: int, offset: int, length: int) -> None:
    """Punch a hole into an open file. Raises OSError."""
    _call(fd, KEEP_SIZE | PUNCH_HOLE, offset, length)


def allocate(fd: int, offset: int, length: int) -> None:
    """Reserve space of an open file, which grows if necessary.

    Not posix_fallocate(3): libc writes zeros where the mount cannot reserve. Raises OSError.
    """
    _call(fd, 0, offset, length)


def _call(fd: int, mode: int, offset: int, length: int) -> None:
    if _fallocate(fd, mode, offset, length) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def probe(directory: str) -> bool:
    """Return whether holes work on this mount.

    A hole must read as zeros, leave the rest, and free space.
    """
    path = f"{directory}/probe-{secrets.token_hex(8)}"
    try:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | OPEN, FILE_MODE)
    except OSError:
        return False
    try:
        write_all(fd, b"\xff" * PROBE)
        os.fdatasync(fd)
        before = os.fstat(fd)
        punch(fd, MIN_HOLE_BYTES, PROBE - 2 * MIN_HOLE_BYTES)
        after = os.fstat(fd)
        expected = b"\xff" * MIN_HOLE_BYTES + bytes(PROBE - 2 * MIN_HOLE_BYTES) + b"\xff" * MIN_HOLE_BYTES
        return (
            os.pread(fd, PROBE + 1, 0) == expected
            and after.st_size == before.st_size
            and (before.st_blocks - after.st_blocks) * 512 >= PROBE - 2 * MIN_HOLE_BYTES
        )
    except OSError:
        return False
    finally:
        os.close(fd)
        with suppress(OSError):  # only now: some mounts delete the bytes below an open descriptor
            os.unlink(path)


def dead_runs(locations: Iterable[RecordLocation], page: int) -> dict[int, list[tuple[int, int]]]:
    """Return the runs (offset, length) of whole pages of neighbouring dead records, per pack.

    A page that anything else touches is not among them.
    """
    runs: dict[int, list[tuple[int, int]]] = {}
    for pack, offset, total, _ in sorted(set(locations)):
        found = runs.setdefault(pack, [])
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + total)
        else:
            found.append((offset, offset + total))
    whole: dict[int, list[tuple[int, int]]] = {}
    for pack, found in runs.items():
        pages = [(-(-start // page) * page, end // page * page) for start, end in found]
        if holes := [(first, last - first) for first, last in pages if last - first >= MIN_HOLE_BYTES]:
            whole[pack] = holes
    return whole


def punch_dead(locations: Iterable[RecordLocation], path: Callable[[int], str], page: int) -> int:
    """Free what `dead_runs` finds; return the bytes.

    `path` returns a pack's file. Raises DriverError; blocks.
    """
    given = 0
    for pack, holes in dead_runs(locations, page).items():
        with map_errors():
            try:
                fd = os.open(path(pack), OPEN)
            except FileNotFoundError:  # the whole pack was deleted before
                continue
            try:
                for offset, length in holes:
                    punch(fd, offset, length)
                    given += length
            finally:
                os.close(fd)
    return given
