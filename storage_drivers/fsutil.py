"""File calls with safe semantics: whole writes, whole reads, final sync failures."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from sluice_s3.storage_drivers.errors import BlobDamaged
from sluice_s3.storage_drivers.types import Buffer

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
BUFFERS = 512
"""Buffers of one pwritev(2); the kernel accepts 1024."""
NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""Errors of a mount that cannot sync a directory: it makes entries durable by itself, or not at all."""


def write_all(fd: int, piece: Buffer) -> None:
    """Write the whole piece at the descriptor's position; write(2) may write less."""
    done = os.write(fd, piece)
    if done == len(piece):
        return
    view = memoryview(piece)
    while done < len(view):
        done += os.write(fd, view[done:])


def read_exactly(fd: int, offset: int, length: int) -> bytes:
    """Return `length` bytes at `offset`, where pread(2) may return less.

    Raises BlobDamaged at an early end.
    """
    piece = os.pread(fd, length, offset)
    if len(piece) == length:
        return piece
    whole = bytearray(piece)
    while len(whole) < length:
        piece = os.pread(fd, length - len(whole), offset + len(whole))
        if not piece:
            raise BlobDamaged(f"ends {length - len(whole)} bytes early")
        whole += piece
    return bytes(whole)


def close_read(fd: int) -> None:
    """Close a descriptor that was only read from.

    An error of the mount is ignored, since the bytes read stay valid.
    """
    try:
        os.close(fd)
    except OSError:
        pass


def sync_directory(path: str | Path) -> None:
    """Sync the entries of a directory, if the mount can sync directories (see probe)."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
    finally:
        os.close(fd)


def write_durably(path: Path, content: bytes) -> None:
    """Create a file that survives a power cut. Raises FileExistsError."""
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    try:
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_directory(path.parent)


def write_buffers(fd: int, buffers: list[Buffer], offset: int) -> None:
    """Write all buffers in order; pwritev(2) may write less."""
    for first in range(0, len(buffers), BUFFERS):
        some = buffers[first : first + BUFFERS]
        size = sum(map(len, some))
        done = os.pwritev(fd, some, offset)
        if done < size:
            rest = memoryview(b"".join(some))[done:]
            while rest:
                done = os.pwrite(fd, rest, offset + size - len(rest))
                rest = rest[done:]
        offset += size


class _Round:
    __slots__ = ("done", "failure", "led")

    def __init__(self) -> None:
        self.led = False
        self.done = threading.Event()
        self.failure: OSError | None = None


class CoalescedFsync:
    """Syncs of one directory, where concurrent callers share one.

    A sync covers only entries created before it began, so a later caller waits for the next one. A failed sync fails
    all its callers and is not repeated: the kernel reports a lost page once and then marks it clean.
    """

    __slots__ = ("_busy", "_lock", "_next", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._busy = threading.Lock()
        self._lock = threading.Lock()
        self._next = _Round()

    def sync(self) -> None:
        """Block until every entry created before the call is durable."""
        with self._lock:
            turn = self._next
            leads, turn.led = not turn.led, True
        if leads:
            self._lead(turn)
        else:
            turn.done.wait()
        if turn.failure is not None:
            raise OSError(turn.failure.errno, turn.failure.strerror) from turn.failure

    def _lead(self, turn: _Round) -> None:
        with self._busy:
            with self._lock:
                self._next = _Round()
            try:
                sync_directory(self._path)
            except OSError as failure:
                turn.failure = failure
            finally:
                turn.done.set()
