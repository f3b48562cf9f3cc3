"""Reads blobs: by descriptors for sockets, from the page cache at once, or in threads as bytes."""

from __future__ import annotations

import asyncio
import errno
import functools
import os
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from storage_drivers.base import Buffer, FileSlice
from storage_drivers.blobs.footer import Shape
from storage_drivers.blobs.reader import Files, feed_some
from storage_drivers.errors import BlobDamaged, BlobMissing, DriverError
from storage_drivers.names import WHOLE_PACK, number_of
from storage_drivers.objects.common import Common
from storage_drivers.objects.read_ahead import ReadAhead, pieces
from storage_drivers.packs.reader import PREFIX as PACKED
from storage_drivers.packs.reader import place_of

P = ParamSpec("P")
T = TypeVar("T")

NOW_BYTES = 256 * 1024
"""`read_now` leaves larger reads to a thread: copying them would hold up the event loop."""
FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
"""Seconds between two looks for a blob that is not there."""


class Getting(Common):
    """A part of the driver."""

    _nowait: bool
    _descriptors: bool
    _ahead: ReadAhead

    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """Open `length` bytes at `offset` of a committed blob, or read them."""
        if locator.startswith(PACKED):
            return await self._patiently(locator, self._packs.read, locator, offset, length)
        if self._descriptors:
            return await self._open(locator, offset, length)
        return await self._read(locator, offset, length)

    def _blob_files(self, locator: str) -> tuple[Files, int]:
        """The files of a blob, and its id; of a whole pack, which fsck looks for by reading nothing of it."""
        number = number_of(locator)
        if locator.startswith(WHOLE_PACK):
            return lambda _: self._names.pack(number), number
        return functools.partial(self._names.blob, number), number

    async def _open(self, locator: str, offset: int, length: int) -> FileSlice:
        opening = self._hop(self._open_slice, locator, offset, length)
        try:
            return await opening
        except asyncio.CancelledError:
            opening.add_done_callback(_release)
            raise

    def _open_slice(self, locator: str, offset: int, length: int) -> FileSlice:
        opened = self._files.open(*self._blob_files(locator), locator, offset, length)
        opened.threads = self._threads
        return opened

    async def _read(self, locator: str, offset: int, length: int) -> bytes:
        """The first piece of a range; those that follow are read at the same time, for the calls to come."""
        files, blob_id = self._blob_files(locator)
        end = offset + length
        shape = self._files.known_shape(blob_id)
        if shape is not None and length and end <= shape.total:
            _, length = next(pieces(shape, offset, length))
            self._look_ahead(shape, locator, offset + length, end)
        begun = self._ahead.take(locator, offset, length)
        if begun is not None:
            try:
                return await begun
            except DriverError:  # which is seen again, or was of a moment
                pass
        piece = await self._patiently(locator, self._files.read, files, blob_id, locator, offset, length)
        if shape is None and (shape := self._files.known_shape(blob_id)) is not None:
            self._look_ahead(shape, locator, offset + len(piece), end)
        return piece

    def _look_ahead(self, shape: Shape, locator: str, offset: int, end: int) -> None:
        for _, piece in zip(range(self._recipe.read_ahead - 1), pieces(shape, offset, end - offset), strict=False):
            self._ahead.begin(locator, *piece)

    def _begin_read(self, locator: str, offset: int, length: int) -> asyncio.Future[bytes]:
        return self._hop(self._files.read, *self._blob_files(locator), locator, offset, length)

    async def _patiently(self, locator: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call in a thread; again for a while when the blob is not there, which a client of NFS may only believe.

        Raises BlobMissing when it stays away, or stale; BlobDamaged when a record stays wrong.
        """
        until = time.monotonic() + self._recipe.patience
        pause = FIRST_PAUSE
        while True:
            try:
                return await self._hop(call, *args, **kwargs)
            except DriverError as error:
                if not self._recipe.patience or not _may_come(error, locator):
                    raise
                if time.monotonic() + pause > until:
                    if isinstance(error, BlobDamaged):
                        raise
                    raise BlobMissing(locator) from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            await self._hop(self._look_anew, locator)

    def _look_anew(self, locator: str) -> None:
        """Forget what is open of a blob, and open its directory: that asks the server, not the client's memory."""
        if locator.startswith(PACKED):
            pack = place_of(locator).pack
            self._packs.forget(pack)
            directory = self._names.directory(pack)
        else:
            self._files.forget(number_of(locator))
            directory = self._names.directory(number_of(locator))
        try:
            os.close(os.open(directory, os.O_RDONLY | os.O_DIRECTORY))
        except OSError:
            pass  # the next look will tell

    def read_now(self, locator: str, offset: int, length: int) -> bytes | None:
        """The bytes when the page cache has them all. None also for whatever is wrong: `read` says what it is."""
        if not self._nowait or length > NOW_BYTES:
            return None
        if locator.startswith(PACKED):
            return self._packs.read_now(place_of(locator), offset, length)
        try:
            return self._files.read_now(*self._blob_files(locator), offset, length)
        except OSError as error:
            if error.errno == errno.EOPNOTSUPP:
                self._nowait = False
            return None

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """Read the bytes once and give them to `take` in the thread that reads, or in another one."""
        if locator.startswith(PACKED):
            await self._patiently(locator, self._feed_record, locator, offset, length, take)
            return
        while length:
            if self._descriptors:
                count = await self._feed_slice(locator, offset, length, take)
            else:
                piece = await self._read(locator, offset, length)
                await self._hop(take, piece)
                count = len(piece)
            offset += count
            length -= count

    def _feed_record(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        take(self._packs.read(locator, offset, length))

    async def _feed_slice(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> int:
        opened = await self._open(locator, offset, length)
        count = opened.count
        while opened.count:
            reading = self._hop(feed_some, opened, locator, take)
            try:
                await asyncio.shield(reading)
            except BaseException:
                reading.add_done_callback(lambda _: opened.release())  # once its thread is done, or given up
                raise
        opened.release()
        return count


def _may_come(error: DriverError, locator: str) -> bool:
    """Whether a blob may be there all the same.

    Another host's records come into a pack that was looked at before: its end, and the bytes there, may be remembered
    from then (nfs(5): attributes are believed for some seconds).
    """
    cause = error.__cause__
    late = isinstance(error, BlobDamaged) and locator.startswith(PACKED)
    return late or isinstance(error, BlobMissing) or (isinstance(cause, OSError) and cause.errno == errno.ESTALE)


def _release(opening: asyncio.Future[FileSlice]) -> None:
    """Close what a cancelled reader will not fetch."""
    if not opening.cancelled() and opening.exception() is None:
        opening.result().release()
