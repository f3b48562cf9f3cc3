"""Plain file calls done right: whole writes, whole reads, syncs whose failure is final."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

from storage_drivers.errors import BlobDamaged
from storage_drivers.values import Buffer

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700
BUFFERS = 512
"""Buffers of one pwritev(2); the kernel takes 1024."""
NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""What a mount answers that cannot sync a directory: its entries are as durable as the mount makes them by itself."""


def write_all(fd: int, piece: Buffer) -> None:
    """Write the whole piece at the descriptor's position; write(2) may take less than it was given."""
    done = os.write(fd, piece)
    if done == len(piece):
        return
    view = memoryview(piece)
    while done < len(view):
        done += os.write(fd, view[done:])


def read_exactly(fd: int, offset: int, length: int) -> bytes:
    """`length` bytes at `offset`; pread(2) may give less than it was asked for. Raises BlobDamaged at an early end."""
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
    """Close a descriptor that nothing was written through: what was read is no worse when the mount objects."""
    try:
        os.close(fd)
    except OSError:
        pass


def sync_directory(path: str | Path) -> None:
    """Make the entries of a directory survive a power cut, as far as the mount syncs directories at all (see probe)."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in NO_SYNC:
            raise
    finally:
        os.close(fd)


def write_durably(path: Path, content: bytes) -> None:
    """Make a new file that survives a power cut. Raises FileExistsError."""
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE)
    try:
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)
    sync_directory(path.parent)


def write_buffers(fd: int, buffers: list[Buffer], offset: int) -> None:
    """Write all of them, one behind the other; pwritev(2) may take less than it was given."""
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


class SharedSync:
    """Syncs of one directory, where those who wait together share one.

    A sync covers only entries made before it began, so whoever arrives later waits for the next. A failed sync fails
    everyone it was for and is not repeated: the kernel reports a lost page once and then calls it clean.
    """

    __slots__ = ("_busy", "_lock", "_next", "_path")

    def __init__(self, path: str) -> None:
        self._path = path
        self._busy = threading.Lock()
        self._lock = threading.Lock()
        self._next = _Round()

    def sync(self) -> None:
        """Return when every entry made before the call is durable. Blocks the thread."""
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
