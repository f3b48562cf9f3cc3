"""Reads of blob files that return only chunks recently written or verified here.

A chunk is checked when a process that did not write it first reads it, again when the file changed (times, size,
inode), and again after an hour. In between it goes to the socket unchecked: damage in the page cache or below it is not
seen then.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from sluice_s3.storage_drivers.base import Buffer, FileSlice
from sluice_s3.storage_drivers.blobs.footer import (
    CHUNK,
    Footer,
    Shape,
    chunk_check,
    part_id,
    read_footer,
    read_shape,
    whole,
)
from sluice_s3.storage_drivers.errors import BlobDamaged, map_errors
from sluice_s3.storage_drivers.fsutil import close_read, read_exactly

OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Open flags: never through a link, and never waiting for the writer of a FIFO in a blob's place."""
VERIFIED_SECONDS = 3600.0
"""Seconds for which a checked chunk is valid."""
MAX_OPEN = 16_384
"""Files whose verified chunks are cached."""
KEPT_CHECKS = 1024
"""Bytes of checks that are cached of a file: those of 128 MiB."""
CHUNKS_AT_ONCE = 4
"""Chunks checked in one call to a thread, once a reader has its first."""

FEED_PIECE = 1 << 20
FEED_HOP = 8 << 20
"""Bytes that `feed` reads in one call to a thread, so that a cancelled reader's thread is soon free."""

Stamp = tuple[int, int, int, int]
Files = Callable[[int], str]
"""Path of each part of a blob."""


class VerifiedChunks:
    """The cached facts of a file."""

    __slots__ = ("body", "chunks", "footer", "shape", "stamp", "until")

    def __init__(self, stamp: Stamp, body: int, shape: Shape, until: float) -> None:
        self.stamp = stamp
        self.body = body
        """Bytes of the body in this file."""
        self.shape = shape
        """The shape of the whole blob, if this is its first part."""
        self.until = until
        self.footer: Footer | None = None
        """The footer, if it is small."""
        self.chunks = 0
        """One bit for each verified chunk."""

    def covers(self, offset: int, length: int) -> bool:
        """Return whether every chunk of a range is verified."""
        wanted = _bits(offset, length)
        return self.chunks & wanted == wanted


def _bits(offset: int, length: int) -> int:
    if not length:
        return 0
    first, last = offset // CHUNK, (offset + length - 1) // CHUNK
    return ((1 << (last - first + 1)) - 1) << first


class BlobReader:
    """Reader of blob files.

    Its methods may be called in any thread; `open` and `read` block, `try_open` and `try_read` do not.
    """

    def __init__(self, max_open: int = MAX_OPEN, trust_seconds: float = VERIFIED_SECONDS) -> None:
        self._max_open = max_open
        self._trust_seconds = trust_seconds
        self._files: OrderedDict[int, VerifiedChunks] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, files: Files, blob_id: int, locator: str, offset: int, length: int) -> FileSlice:
        """Return a slice of the first of `length` bytes at `offset`, all verified.

        It has at least one byte, and all of them if they were verified before. Raises BlobMissing, BlobDamaged.
        """
        with map_errors(committed=locator):
            at = self._open_at(files, blob_id, locator, offset, length)
            try:
                return FileSlice(at.fd, at.offset, self._checked_count(at, locator, at.length, CHUNKS_AT_ONCE))
            except BaseException:
                close_read(at.fd)
                raise

    def read(self, files: Files, blob_id: int, locator: str, offset: int, length: int) -> bytes:
        """Return the first of `length` bytes at `offset`, verified, up to their chunk's end.

        Raises BlobMissing, BlobDamaged.
        """
        with map_errors(committed=locator):
            at = self._open_at(files, blob_id, locator, offset, length)
            try:
                skip = at.offset % CHUNK
                count = min(at.length, CHUNK - skip)
                kept: list[bytes] = []
                self._checked_count(at, locator, count, 1, kept)
                if not kept:
                    return read_exactly(at.fd, at.offset, count)
                return kept[0] if count == len(kept[0]) else kept[0][skip : skip + count]
            finally:
                close_read(at.fd)

    def find_shape(self, blob_id: int) -> Shape | None:
        """Return a blob's cached shape, if it was recently read or written here.

        Does not block.
        """
        known = self._files.get(blob_id)
        return None if known is None else known.shape

    def shape(self, files: Files, blob_id: int, locator: str) -> Shape:
        """Read the shape of a blob again. Raises BlobMissing, BlobDamaged."""
        with map_errors(committed=locator):
            fd = os.open(files(0), OPEN)
            try:
                return read_footer(fd, os.fstat(fd).st_size, blob_id, locator).shape
            finally:
                close_read(fd)

    def _open_at(self, files: Files, blob_id: int, locator: str, offset: int, length: int) -> _At:
        """Open the part in which a range begins."""
        known = self._files.get(blob_id)
        if known is None or known.shape.parts == 1:
            at = self._open_part(files(0), blob_id, locator, offset, length)
            shape = at.known.shape
            if shape.parts == 1:
                return at
            if offset < shape.size:
                return at._replace(length=min(length, shape.size - offset))
            close_read(at.fd)
        else:
            shape = known.shape  # of a write-once blob, whatever happened to the first part since
        if offset + length > shape.total:
            raise BlobDamaged(f"{locator} ends {offset + length - shape.total} bytes early")
        part, inside, count = shape.locate(offset, length)
        return self._open_part(files(part), part_id(blob_id, part), locator, inside, count)

    def _open_part(self, path: str, number: int, locator: str, offset: int, length: int) -> _At:
        """Open one file, and find its cached facts."""
        fd = os.open(path, OPEN)
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise BlobDamaged(f"{locator} is no file")
            known, footer = self._known(number, _stamp(found)), None
            if known is None:
                footer = read_footer(fd, found.st_size, number, locator)
                known = self._note(number, found, footer)
            missing = offset + length - known.shape.total
            if missing > 0:
                raise BlobDamaged(f"{locator} ends {missing} bytes early")
        except BaseException:
            close_read(fd)
            raise
        return _At(fd, found.st_size, number, offset, length, known, footer)

    def _note(self, blob_id: int, found: os.stat_result, footer: Footer) -> VerifiedChunks:
        made = VerifiedChunks(_stamp(found), footer.body, footer.shape, time.monotonic() + self._trust_seconds)
        if len(footer.checks) <= KEPT_CHECKS:
            made.footer = footer._replace(recovery_header=b"")
        return self._remember(blob_id, made)

    def wrote(self, blob_id: int, shape: Shape, part: int, fd: int, body: int) -> None:
        """Note that this process wrote a part of `body` bytes through `fd`. Raises OSError."""
        known = VerifiedChunks(
            _stamp(os.fstat(fd)), body, whole(body) if part else shape, time.monotonic() + self._trust_seconds
        )
        known.chunks = _bits(0, body)
        self._remember(part_id(blob_id, part), known)

    def try_open(self, files: Files, blob_id: int, offset: int, length: int) -> FileSlice | None:
        """Return a slice as `open`, if all of it is verified; else None. Raises OSError."""
        first = self._files.get(blob_id)
        if first is None or offset + length > first.shape.total:
            return None
        part, inside, count = first.shape.locate(offset, length)
        known = self._files.get(part_id(blob_id, part))
        if known is None or not known.covers(inside, count) or inside + count > known.body:
            return None
        fd = os.open(files(part), OPEN)
        try:
            if _stamp(os.fstat(fd)) == known.stamp and time.monotonic() < known.until:
                return FileSlice(fd, inside, count)
        except BaseException:
            close_read(fd)
            raise
        close_read(fd)
        return None

    def try_read(self, files: Files, blob_id: int, offset: int, length: int) -> bytes | None:
        """Return the bytes if they are verified and in the page cache. Raises OSError."""
        opened = self.try_open(files, blob_id, offset, length)
        if opened is None:
            return None
        buffer = bytearray(length)
        try:
            count = os.preadv(opened.fd, [buffer], opened.offset, os.RWF_NOWAIT) if opened.count == length else 0
        finally:
            opened.release()
        return bytes(buffer) if count == length else None

    def size(self, files: Files, blob_id: int) -> int:
        """Return the present bytes of the body, from the trailers; 0 if none is readable.

        Raises FileNotFoundError when there is no first part.
        """
        shape = _shape_of(files(0), blob_id)
        if shape is None or shape.parts == 1:
            return 0 if shape is None else shape.total
        for part in range(1, shape.parts):
            try:
                found = _shape_of(files(part), part_id(blob_id, part))
            except FileNotFoundError:
                found = None
            if found is None or found.total != shape.size_of(part):
                return part * shape.size
        return shape.total

    def forget(self, blob_id: int) -> None:
        """Forget a blob, so that its next read checks it again."""
        with self._lock:
            self._files.pop(blob_id, None)

    def _checked_count(self, at: _At, locator: str, length: int, most: int, kept: list[bytes] | None = None) -> int:
        """Return how many of `length` bytes are verified, after reading at most `most` chunks.

        `kept` receives those chunks.
        """
        fd, size, number, offset, _, known, footer = at
        if known.covers(offset, length):
            return length
        footer = footer or known.footer or read_footer(fd, size, number, locator)
        first, last = offset // CHUNK, (offset + length - 1) // CHUNK
        chunk, left = first, 1 if not first or not known.chunks >> (first - 1) & 1 else most
        while chunk <= last:
            if not known.chunks >> chunk & 1:
                if not left:
                    break
                left -= 1
                piece = _check_chunk(fd, footer, chunk, number, locator)
                if kept is not None:
                    kept.append(piece)
                with self._lock:
                    known.chunks |= 1 << chunk
            chunk += 1
        return min(offset + length, chunk * CHUNK) - offset

    def _known(self, blob_id: int, stamp: Stamp) -> VerifiedChunks | None:
        with self._lock:
            known = self._files.get(blob_id)
            if known is None:
                return None
            if known.stamp != stamp or time.monotonic() >= known.until:
                del self._files[blob_id]
                return None
            self._files.move_to_end(blob_id)
            return known

    def _remember(self, blob_id: int, made: VerifiedChunks) -> VerifiedChunks:
        with self._lock:
            known = self._files.setdefault(blob_id, made)
            if known.stamp != made.stamp:
                known = self._files[blob_id] = made
            if len(self._files) > self._max_open:
                self._files.popitem(last=False)
        return known


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


class _At(NamedTuple):
    """An open file of a blob, and a range in it."""

    fd: int
    size: int
    number: int
    """The seed of its checks: `footer.part_id`."""
    offset: int
    length: int
    known: VerifiedChunks
    footer: Footer | None
    """The footer, if it was just read."""


def _shape_of(path: str, blob_id: int) -> Shape | None:
    """Return the shape from a file's trailer; None if it is unreadable.

    Raises FileNotFoundError.
    """
    try:
        fd = os.open(path, OPEN)
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link is no blob
            return None
        raise
    try:
        return read_shape(fd, os.fstat(fd).st_size, blob_id, "")
    except BlobDamaged:
        return None
    finally:
        close_read(fd)


def _check_chunk(fd: int, footer: Footer, chunk: int, blob_id: int, locator: str) -> bytes:
    """Read and check a chunk.

    Raises BlobDamaged if it differs from what was written, also on the device.
    """
    start = chunk * CHUNK
    length = min(CHUNK, footer.body - start)
    expected = footer.check(chunk)
    piece = read_exactly(fd, start, length)
    if chunk_check(piece, blob_id) == expected:
        return piece
    try:
        os.posix_fadvise(fd, start, length, os.POSIX_FADV_DONTNEED)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
    piece = read_exactly(fd, start, length)
    if chunk_check(piece, blob_id) != expected:
        raise BlobDamaged(f"{locator} is not what was written, in the {CHUNK} bytes at {start}")
    return piece


def feed_some(opened: FileSlice, locator: str, take: Callable[[Buffer], None]) -> None:
    """Feed the next `FEED_HOP` bytes of a slice and move its start behind them."""
    end = opened.offset + min(opened.count, FEED_HOP)
    while opened.offset < end:
        with map_errors(committed=locator):
            piece = read_exactly(opened.fd, opened.offset, min(FEED_PIECE, end - opened.offset))
        take(piece)
        opened.offset += len(piece)
        opened.count -= len(piece)
