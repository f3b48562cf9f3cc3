"""Reads of blobs: descriptors for sockets, cached bytes at once, or bytes read in threads."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sluice_s3.storage_drivers.base import Buffer, FileSlice
from sluice_s3.storage_drivers.blobs.footer import Shape
from sluice_s3.storage_drivers.blobs.reader import Files, feed_some
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, DriverError
from sluice_s3.storage_drivers.layout import WHOLE_PACK, number_of
from sluice_s3.storage_drivers.objects.common import ObjectsDriverBase
from sluice_s3.storage_drivers.objects.read_ahead import ReadAhead, pieces
from sluice_s3.storage_drivers.packs.reader import PREFIX as PACKED
from sluice_s3.storage_drivers.packs.reader import parse_locator

P = ParamSpec("P")
T = TypeVar("T")

INLINE_READ_BYTES = 256 * 1024
"""Largest read of `try_read`: copying more would hold up the event loop."""
FIRST_PAUSE_SECONDS = 0.05
MAX_PAUSE_SECONDS = 1.0
"""Longest pause in seconds between two attempts at a missing blob."""


class ReadMixin(ObjectsDriverBase):
    """The read methods of the driver."""

    _nowait: bool
    _descriptors: bool
    _ahead: ReadAhead

    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """Open `length` bytes at `offset` of a committed blob, or read them."""
        if locator.startswith(PACKED):
            return await self._retry_missing(locator, self._packs.read, locator, offset, length)
        if self._descriptors:
            return await self._open(locator, offset, length)
        return await self._read(locator, offset, length)

    def _blob_files(self, locator: str) -> tuple[Files, int]:
        """Return the files of a blob, and its id.

        For a whole pack, which fsck checks by a read of nothing, it returns the pack's file.
        """
        number = number_of(locator)
        if locator.startswith(WHOLE_PACK):
            return lambda _: self._names.pack(number), number
        return functools.partial(self._names.blob, number), number

    def _try_open(self, locator: str, offset: int, length: int) -> FileSlice | None:
        """Open a file on the event loop, where that cannot hang and nothing has to be read of it.

        After any error it returns None, and `_open` raises the error.
        """
        if not self._nowait:
            return None
        try:
            opened = self._files.try_open(*self._blob_files(locator), offset, length)
        except OSError:
            return None
        if opened is not None:
            opened.threads, opened.nowait = self._threads, True
        return opened

    async def _open(self, locator: str, offset: int, length: int) -> FileSlice:
        if (opened := self._try_open(locator, offset, length)) is not None:
            return opened
        opening = self._run_in_thread(self._open_slice, locator, offset, length)
        try:
            return await opening
        except asyncio.CancelledError:
            opening.add_done_callback(_release)
            raise

    def _open_slice(self, locator: str, offset: int, length: int) -> FileSlice:
        opened = self._files.open(*self._blob_files(locator), locator, offset, length)
        opened.threads = self._threads
        opened.nowait = self._nowait
        return opened

    async def _read(self, locator: str, offset: int, length: int) -> bytes:
        """Return the first piece of a range, and begin to read the next ones."""
        files, blob_id = self._blob_files(locator)
        end = offset + length
        shape = self._files.find_shape(blob_id)
        if shape is not None and length and end <= shape.total:
            _, length = next(pieces(shape, offset, length))
            self._look_ahead(shape, locator, offset + length, end)
        begun = self._ahead.take(locator, offset, length)
        if begun is not None:
            try:
                return await begun
            except DriverError:  # the reader sees it again, or it was temporary
                pass
        piece = await self._retry_missing(locator, self._files.read, files, blob_id, locator, offset, length)
        if shape is None and (shape := self._files.find_shape(blob_id)) is not None:
            self._look_ahead(shape, locator, offset + len(piece), end)
        return piece

    def _look_ahead(self, shape: Shape, locator: str, offset: int, end: int) -> None:
        for _, piece in zip(range(self._profile.read_ahead - 1), pieces(shape, offset, end - offset), strict=False):
            self._ahead.begin(locator, *piece)

    def _begin_read(self, locator: str, offset: int, length: int) -> asyncio.Future[bytes]:
        return self._run_in_thread(self._files.read, *self._blob_files(locator), locator, offset, length)

    async def _retry_missing(self, locator: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call in a thread; repeat for a while when the blob seems missing.

        A client of NFS may report it missing by mistake. Raises BlobMissing when it stays missing or stale; BlobDamaged
        when a record stays damaged.
        """
        until = time.monotonic() + self._profile.retry_seconds
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                return await self._run_in_thread(call, *args, **kwargs)
            except DriverError as error:
                if not self._profile.retry_seconds or not _may_come(error, locator):
                    raise
                if time.monotonic() + pause > until:
                    if isinstance(error, BlobDamaged):
                        raise
                    raise BlobMissing(locator) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_SECONDS)
            await self._run_in_thread(self._look_anew, locator)

    def _look_anew(self, locator: str) -> None:
        """Close a blob's descriptors and open its directory.

        Opening it asks the server, not the client's cache.
        """
        if locator.startswith(PACKED):
            pack = parse_locator(locator).pack
            self._packs.forget(pack)
            directory = self._names.directory(pack)
        else:
            self._files.forget(number_of(locator))
            directory = self._names.directory(number_of(locator))
        try:
            os.close(os.open(directory, os.O_RDONLY | os.O_DIRECTORY))
        except OSError:
            pass  # the next attempt raises it

    def try_read(self, locator: str, offset: int, length: int) -> bytes | None:
        """Return the bytes if the page cache has them all.

        After any error it returns None, and `read` raises the error.
        """
        if not self._nowait or length > INLINE_READ_BYTES:
            return None
        if locator.startswith(PACKED):
            return self._packs.try_read(parse_locator(locator), offset, length)
        try:
            return self._files.try_read(*self._blob_files(locator), offset, length)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                self._nowait = False
            return None

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """Read the bytes once and pass them to `take`, in a thread."""
        if locator.startswith(PACKED):
            await self._retry_missing(locator, self._feed_record, locator, offset, length, take)
            return
        while length:
            if self._descriptors:
                count = await self._feed_slice(locator, offset, length, take)
            else:
                piece = await self._read(locator, offset, length)
                await self._run_in_thread(take, piece)
                count = len(piece)
            offset += count
            length -= count

    def _feed_record(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        take(self._packs.read(locator, offset, length))

    async def _feed_slice(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> int:
        opened = await self._open(locator, offset, length)
        count = opened.count
        while opened.count:
            reading = self._run_in_thread(feed_some, opened, locator, take)
            try:
                await asyncio.shield(reading)
            except BaseException:
                reading.add_done_callback(lambda _: opened.release())  # once its thread has ended, or is abandoned
                raise
        opened.release()
        return count


def _may_come(error: DriverError, locator: str) -> bool:
    """Return whether a blob may still exist.

    Another host's records arrive in a pack that was read before: its end, and the bytes there, may be cached from that
    time (nfs(5): attributes are valid for some seconds).
    """
    cause = error.__cause__
    late = isinstance(error, BlobDamaged) and locator.startswith(PACKED)
    return late or isinstance(error, BlobMissing) or (isinstance(cause, OSError) and cause.errno == errno.ESTALE)


def _release(opening: asyncio.Future[FileSlice]) -> None:
    """Close what a cancelled reader will not receive."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().release()
