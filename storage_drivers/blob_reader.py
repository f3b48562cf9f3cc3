"""Reads files of blobs, and believes only chunks that were written here, or whose check held, not long ago.

A chunk is checked when it is first read by a process that did not write it, again when the file changed (times, size,
inode), and again after an hour. In between it goes to the socket without being looked at: what rots in the page cache
or under it is not seen then.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future

from storage_drivers.base import Buffer, FileSlice
from storage_drivers.errors import BlobDamaged, map_errors
from storage_drivers.files import read_exactly
from storage_drivers.footer import CHUNK, Footer, body_length, chunk_check, read_footer

OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Never through a link, and never waiting for the writer of a FIFO that somebody put in a blob's place."""
TRUSTED = 3600.0
"""Seconds for which a chunk that was checked is believed."""
KEPT = 16_384
"""Files of which it is remembered what was checked."""
CHUNKS_AT_ONCE = 4
"""Chunks checked in one hop, once a reader has got its first."""

FEED_PIECE = 1 << 20
FEED_HOP = 8 << 20
"""Bytes that `feed` reads in one hop, so that a cancelled reader's thread is soon free again."""

Stamp = tuple[int, int, int, int]


class Checked:
    """What is known of a file."""

    __slots__ = ("body", "chunks", "stamp", "until")

    def __init__(self, stamp: Stamp, body: int, until: float) -> None:
        self.stamp = stamp
        self.body = body
        self.until = until
        self.chunks = 0
        """One bit a chunk that was checked."""

    def covers(self, offset: int, length: int) -> bool:
        """Whether every chunk of a range was checked."""
        wanted = _bits(offset, length)
        return self.chunks & wanted == wanted


def _bits(offset: int, length: int) -> int:
    if not length:
        return 0
    first, last = offset // CHUNK, (offset + length - 1) // CHUNK
    return ((1 << (last - first + 1)) - 1) << first


class BlobReader:
    """Its methods may be called in any thread; `open` blocks and `read_now` does not."""

    def __init__(self, kept: int = KEPT, trusted: float = TRUSTED) -> None:
        self._kept = kept
        self._trusted = trusted
        self._files: OrderedDict[int, Checked] = OrderedDict()
        self._lock = threading.Lock()

    def open(self, path: str, blob_id: int, locator: str, offset: int, length: int) -> FileSlice:
        """The first of `length` bytes at `offset`, all of them checked: at least one, and all when they were checked.

        Raises BlobMissing, BlobDamaged.
        """
        with map_errors(committed=locator):
            fd = os.open(path, OPEN)
            try:
                return FileSlice(fd, offset, self._checked_count(fd, blob_id, locator, offset, length))
            except BaseException:
                os.close(fd)
                raise

    def wrote(self, blob_id: int, fd: int, body: int) -> None:
        """A file of `body` bytes was written whole through `fd` by this process. Raises OSError."""
        known = Checked(_stamp(os.fstat(fd)), body, time.monotonic() + self._trusted)
        known.chunks = _bits(0, body)
        self._remember(blob_id, known)

    def read_now(self, path: str, blob_id: int, offset: int, length: int) -> bytes | None:
        """The bytes when they were checked and the page cache has them all. Raises OSError."""
        known = self._files.get(blob_id)
        if known is None or not known.covers(offset, length) or offset + length > known.body:
            return None
        buffer = bytearray(length)
        fd = os.open(path, OPEN)
        try:
            if _stamp(os.fstat(fd)) != known.stamp or time.monotonic() >= known.until:
                return None
            count = os.preadv(fd, [buffer], offset, os.RWF_NOWAIT)
        finally:
            os.close(fd)
        return bytes(buffer) if count == length else None

    def size(self, path: str, blob_id: int) -> int:
        """Bytes of the body as the trailer says; 0 when there is none that can be read. Raises FileNotFoundError."""
        try:
            fd = os.open(path, OPEN)
        except OSError as error:
            if error.errno == errno.ELOOP:  # a link is no blob
                return 0
            raise
        try:
            return body_length(fd, os.fstat(fd).st_size, blob_id, "")
        except BlobDamaged:
            return 0
        finally:
            os.close(fd)

    def inspect(self, path: str, blob_id: int, locator: str) -> Footer:
        """The footer of a file. Raises BlobMissing, BlobDamaged."""
        with map_errors(committed=locator):
            fd = os.open(path, OPEN)
            try:
                return read_footer(fd, os.fstat(fd).st_size, blob_id, locator)
            finally:
                os.close(fd)

    def forget(self, blob_id: int) -> None:
        """Check the file anew when it is read next."""
        with self._lock:
            self._files.pop(blob_id, None)

    def _checked_count(self, fd: int, blob_id: int, locator: str, offset: int, length: int) -> int:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise BlobDamaged(f"{locator} is no file")
        known = self._known(blob_id, _stamp(found))
        footer: Footer | None = None
        if known is None:
            footer = read_footer(fd, found.st_size, blob_id, locator)
            known = self._remember(blob_id, Checked(_stamp(found), footer.body, time.monotonic() + self._trusted))
        if offset + length > known.body:
            raise BlobDamaged(f"{locator} ends {offset + length - known.body} bytes early")
        if known.covers(offset, length):
            return length
        if footer is None:
            footer = read_footer(fd, found.st_size, blob_id, locator)
        first, last = offset // CHUNK, (offset + length - 1) // CHUNK
        chunk, left = first, 1 if not first or not known.chunks >> (first - 1) & 1 else CHUNKS_AT_ONCE
        while chunk <= last:
            if not known.chunks >> chunk & 1:
                if not left:
                    break
                left -= 1
                _check_chunk(fd, footer, chunk, blob_id, locator)
                with self._lock:
                    known.chunks |= 1 << chunk
            chunk += 1
        return min(offset + length, chunk * CHUNK) - offset

    def _known(self, blob_id: int, stamp: Stamp) -> Checked | None:
        with self._lock:
            known = self._files.get(blob_id)
            if known is None:
                return None
            if known.stamp != stamp or time.monotonic() >= known.until:
                del self._files[blob_id]
                return None
            self._files.move_to_end(blob_id)
            return known

    def _remember(self, blob_id: int, made: Checked) -> Checked:
        with self._lock:
            known = self._files.setdefault(blob_id, made)
            if known.stamp != made.stamp:
                known = self._files[blob_id] = made
            if len(self._files) > self._kept:
                self._files.popitem(last=False)
        return known


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _check_chunk(fd: int, footer: Footer, chunk: int, blob_id: int, locator: str) -> None:
    """Raises BlobDamaged when the chunk is not what was written, on the device either."""
    start = chunk * CHUNK
    length = min(CHUNK, footer.body - start)
    expected = footer.check(chunk)
    if chunk_check(read_exactly(fd, start, length), blob_id) == expected:
        return
    try:
        os.posix_fadvise(fd, start, length, os.POSIX_FADV_DONTNEED)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
    if chunk_check(read_exactly(fd, start, length), blob_id) != expected:
        raise BlobDamaged(f"{locator} is not what was written, in the {CHUNK} bytes at {start}")


class Release:
    """Close a slice when the thread that reads it is done."""

    def __init__(self, opened: FileSlice) -> None:
        self._opened = opened

    def __call__(self, _: Future[None]) -> None:
        self._opened.release()


def feed_some(opened: FileSlice, locator: str, take: Callable[[Buffer], None]) -> None:
    """Feed the next `FEED_HOP` bytes of a slice and move its start behind them."""
    end = opened.offset + min(opened.count, FEED_HOP)
    while opened.offset < end:
        with map_errors(committed=locator):
            piece = read_exactly(opened.fd, opened.offset, min(FEED_PIECE, end - opened.offset))
        take(piece)
        opened.offset += len(piece)
        opened.count -= len(piece)
