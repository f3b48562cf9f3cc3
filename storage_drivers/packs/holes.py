"""Gives back whole pages of dead records inside a pack, where the mount can punch holes (fallocate(2))."""

from __future__ import annotations

import ctypes
import os
import secrets
from collections.abc import Callable, Iterable
from contextlib import suppress

from storage_drivers.errors import map_errors
from storage_drivers.files import FILE_MODE, write_all
from storage_drivers.packs.reader import Place

KEEP_SIZE, PUNCH_HOLE = 1, 2
LEAST = 64 * 1024
"""Bytes of a hole at least. Each costs a write to the file system's journal and an extent of the file; what lies in
smaller runs comes back more cheaply when its pack is compacted."""
PROBE = 4 * LEAST
OPEN = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

_fallocate = ctypes.CDLL(None, use_errno=True).fallocate
_fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def punch(fd: int, offset: int, length: int) -> None:
    """Make a hole in an open file. Raises OSError."""
    _call(fd, KEEP_SIZE | PUNCH_HOLE, offset, length)


def allocate(fd: int, offset: int, length: int) -> None:
    """Reserve space of an open file, which grows if need be. Not posix_fallocate(3): libc writes zeros where the mount
    cannot. Raises OSError."""
    _call(fd, 0, offset, length)


def _call(fd: int, mode: int, offset: int, length: int) -> None:
    if _fallocate(fd, mode, offset, length) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def probe(directory: str) -> bool:
    """Whether a hole works as it should on this mount: it reads as zeros, the rest stays, and space is given back."""
    path = f"{directory}/probe-{secrets.token_hex(8)}"
    try:
        fd = os.open(path, os.O_CREAT | os.O_EXCL | OPEN, FILE_MODE)
    except OSError:
        return False
    try:
        write_all(fd, b"\xff" * PROBE)
        os.fdatasync(fd)
        before = os.fstat(fd)
        punch(fd, LEAST, PROBE - 2 * LEAST)
        after = os.fstat(fd)
        expected = b"\xff" * LEAST + bytes(PROBE - 2 * LEAST) + b"\xff" * LEAST
        return (
            os.pread(fd, PROBE + 1, 0) == expected
            and after.st_size == before.st_size
            and (before.st_blocks - after.st_blocks) * 512 >= PROBE - 2 * LEAST
        )
    except OSError:
        return False
    finally:
        os.close(fd)
        with suppress(OSError):  # only now: some mounts take the bytes away from under an open descriptor
            os.unlink(path)


def runs_of(places: Iterable[Place], page: int) -> dict[int, list[tuple[int, int]]]:
    """The runs of whole pages (offset, length) that neighbouring dead records leave in each pack.

    A page that anything else touches is not among them.
    """
    runs: dict[int, list[tuple[int, int]]] = {}
    for pack, offset, total, _ in sorted(set(places)):
        found = runs.setdefault(pack, [])
        if found and found[-1][1] == offset:
            found[-1] = (found[-1][0], offset + total)
        else:
            found.append((offset, offset + total))
    whole: dict[int, list[tuple[int, int]]] = {}
    for pack, found in runs.items():
        pages = [(-(-start // page) * page, end // page * page) for start, end in found]
        if holes := [(first, last - first) for first, last in pages if last - first >= LEAST]:
            whole[pack] = holes
    return whole


def punch_dead(places: Iterable[Place], path: Callable[[int], str], page: int) -> int:
    """Give back what `runs_of` finds; `path` names a pack's file. Returns bytes. Raises DriverError; blocks."""
    given = 0
    for pack, holes in runs_of(places, page).items():
        with map_errors():
            try:
                fd = os.open(path(pack), OPEN)
            except FileNotFoundError:  # the whole pack went before
                continue
            try:
                for offset, length in holes:
                    punch(fd, offset, length)
                    given += length
            finally:
                os.close(fd)
    return given
