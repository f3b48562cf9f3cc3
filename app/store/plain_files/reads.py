"""Reads of plain files, whose rows follow external changes (layout `tree`).

Each read compares the file's stamp with the row's. If they differ, either the gateway is changing the file, which a
write intent shows, or another program changed it, and the row is corrected. The bytes of an answer were read while the
file had the stamp of the row that the answer describes.
"""

from __future__ import annotations

import asyncio
import mimetypes
import random
from collections.abc import AsyncGenerator, Callable
from time import monotonic
from typing import TypeVar

import orjson
from xxhash import xxh3_128_hexdigest

from sluice_s3.app.errors import Overloaded, SourceGone, StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.plain_files.rows import ExternalFile, is_plain_file, without_upload
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.storage_drivers.base import Buffer, FileSlice
from sluice_s3.storage_drivers.errors import BlobDamaged, map_errors
from sluice_s3.storage_drivers.fsutil import read_exactly
from sluice_s3.storage_drivers.threads import StoreThreadPool
from sluice_s3.storage_drivers.tree import FileChanged, FileGone, Stamp, TreeFiles
from sluice_s3.storage_drivers.tree.types import refused

STABLE_WAIT_SECONDS = 10.0
"""Seconds that a request waits for another change of the same key."""
PIECE_BYTES = 512 * 1024
"""Bytes of a file in memory at a time."""
FEED_BYTES = 16 << 20
"""Bytes hashed in one call to a thread."""
SMALL_FILE_BYTES = 256 * 1024
"""Bytes up to which an answer is one bytes object."""
DEFAULT_TYPE = "binary/octet-stream"

T = TypeVar("T")


class Backoff:
    """Growing waits, until `STABLE_WAIT_SECONDS` are over."""

    def __init__(self, timeout: float = STABLE_WAIT_SECONDS) -> None:
        self._deadline = monotonic() + timeout
        self._next = 0.002

    async def wait(self) -> bool:
        """Wait; return False at once when the time is over."""
        if monotonic() >= self._deadline:
            return False
        await asyncio.sleep(self._next * (0.5 + random.random()))
        self._next = min(self._next * 2, 0.05)
        return True


def provisional_etag(key: str, stamp: Stamp) -> str:
    """Return the ETag of a file that is not hashed yet.

    It cannot be mistaken for an MD5.
    """
    return f"{xxh3_128_hexdigest(f'{stamp}/{key}'.encode())}-1"


def is_provisional_etag(version: Version) -> bool:
    """Return whether a version's ETag does not depend on its bytes."""
    return version.parts == 0 and version.etag.endswith("-1")


def content_type(key: str) -> str:
    """Return the content type that a file's name implies.

    Only the last name counts, with a slash before it: `mimetypes` treats names that begin like a URL as URLs, and takes
    any type that a `data:` URL states.
    """
    return mimetypes.guess_type("/" + key.rpartition("/")[2], strict=False)[0] or DEFAULT_TYPE


def external_file_row(key: str, body: str, stamp: Stamp, seen: int) -> ExternalFile:
    """Return the row of a file that another program changed.

    `seen` is the sequence of its old row.
    """
    headers = orjson.dumps({"content-type": content_type(key)}).decode()
    return ExternalFile(
        key, seen, stamp.size, provisional_etag(key, stamp), headers, body, max(stamp.mtime_ns // 1_000_000, 0)
    )


class Rest:
    """The bytes of an open file up to `end`, in pieces.

    The owner must close it.
    """

    def __init__(self, tree: PlainFileReader, opened: FileSlice, body: str, offset: int, end: int) -> None:
        self._tree = tree
        self._opened = opened
        self._body = body
        self._offset = offset
        self._end = end

    async def __anext__(self) -> bytes:
        """Return the next piece.

        Raises StoreUnavailable when the file changed; the answer is then cut off.
        """
        if self._offset >= self._end:
            raise StopAsyncIteration
        count = min(PIECE_BYTES, self._end - self._offset)
        piece = await self._tree.piece(self._opened, self._body, self._offset, count)
        if piece is None:
            raise StoreUnavailable(reason="the file was changed while it was read")
        self._offset += count
        return piece

    async def aclose(self) -> None:
        """Close the file."""
        self._opened.release()


class PlainFileReader:
    """Reader of the plain files of one store.

    `prefix` begins the store's locators in the index.
    """

    def __init__(self, index: Index, files: TreeFiles, threads: StoreThreadPool, prefix: str) -> None:
        self.index = index
        self.files = files
        self._threads = threads
        self._prefix = prefix

    def body_of(self, path: str, stamp: Stamp) -> str:
        """Return the locator of a file for the index."""
        return self._prefix + self.files.locator(path, stamp)

    def locator(self, body: str) -> str:
        """Return the locator without the prefix."""
        return without_upload(body)[len(self._prefix) :]

    def parse(self, body: str) -> tuple[str, Stamp]:
        """Return path and stamp of a body."""
        return self.files.parse(self.locator(body))

    async def in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        """Run a blocking call in a thread of the store."""
        return await self._threads.call(call, *arguments)

    async def finish_interrupted_of(self, bucket_id: int, key: str) -> bool:
        """Finish what this process has left in the middle of a key; return whether there was anything."""
        raise NotImplementedError

    # the current file of a key
    async def find(self, bucket: Bucket, key: str, version_id: str | None = None) -> Version | None:
        """Return the current object of a key, after correcting its row to match the file.

        Raises Overloaded when a change of the key takes too long, StoreUnavailable when the store is not mounted.
        """
        backoff = Backoff()
        while True:
            version = await self.index.version(bucket.id, key, version_id)
            if version is None and version_id not in (None, "null"):
                return None
            if version is not None and not is_plain_file(version.body):
                return version
            location = await self._locate(bucket, key, version)
            if version is None and location is None:
                return None
            if version is not None and location is not None and location == self.parse(version.body):
                return version
            latest = await self.index.version(bucket.id, key, version_id)
            if (latest and latest.seq) != (version and version.seq):
                continue
            busy = await self.index.intent_on(bucket.id, key) is not None
            if busy and await self.finish_interrupted_of(bucket.id, key):
                continue
            if (busy or not await self._correct(bucket, key, version, location)) and not await backoff.wait():
                raise Overloaded(reason="the file is being changed")

    async def _locate(self, bucket: Bucket, key: str, version: Version | None) -> tuple[str, Stamp] | None:
        """Return path and stamp of a key's file; None when there is none."""
        with translate_driver_errors():
            if version is None:
                file = await self.files.find_key(bucket.name, key)
                return None if file is None else (file.path, file.stamp)
            path = self.parse(version.body)[0]
            stamp = await self.files.find(path)
            return None if stamp is None else (path, stamp)

    async def _correct(
        self, bucket: Bucket, key: str, version: Version | None, location: tuple[str, Stamp] | None
    ) -> bool:
        """Correct the row to match the file; return False to check again later."""
        if location is None:
            assert version is not None
            return (await self.index.forget_vanished(bucket.id, [(key, version.seq)]))[0]
        if not self.files.is_settled(location[1]):
            return False
        position = await self.index.position()
        if await self._locate(bucket, key, version) != location:
            return False
        seen = version.seq if version is not None else 0
        new = external_file_row(key, self.body_of(*location), location[1], seen)
        return (await self.index.adopt(bucket.id, bucket.owner_id, position, [new]))[0] != 0

    # bytes
    async def open(self, body: str, offset: int, length: int) -> FileSlice:
        """Open the bytes of a file.

        Raises SourceGone when the file was replaced: find the version again.
        """
        with translate_driver_errors():
            try:
                return await self.files.open(self.locator(body), offset, length)
            except (FileChanged, FileGone):
                raise SourceGone() from None

    async def read(self, body: str, offset: int, length: int) -> bytes | tuple[bytes, Rest]:
        """Return `length` bytes at `offset`; of many, the first ones and the rest.

        Every piece is read while the file has the stamp of the body, so no complete answer mixes two states. Raises
        SourceGone when the file was replaced: find it again.
        """
        if length <= SMALL_FILE_BYTES:
            with translate_driver_errors():
                try:
                    return await self.files.read(self.locator(body), offset, length)
                except (FileChanged, FileGone):
                    raise SourceGone() from None
        opened = await self.open(body, offset, length)
        first: bytes | None = None
        try:
            first = await self.piece(opened, body, offset, min(PIECE_BYTES, length))
            if first is None:
                raise SourceGone()
        finally:
            if first is None or len(first) == length:
                opened.release()
        if len(first) == length:
            return first
        return first, Rest(self, opened, body, offset + len(first), offset + length)

    async def piece(self, opened: FileSlice, body: str, offset: int, length: int) -> bytes | None:
        """Read one piece in a thread; return None when the file changed."""
        with translate_driver_errors():
            return await self.in_thread(self._read, opened, body, offset, length)

    def _read(self, opened: FileSlice, body: str, offset: int, length: int) -> bytes | None:
        """Read bytes in a thread; return None when the file does not match the body."""
        with map_errors():
            try:
                piece = read_exactly(opened.fd, offset, length)
            except BlobDamaged:
                return None
            except OSError as error:
                raise refused(error) from error
        return piece if self.files.is_unchanged(opened, self.locator(body)) else None

    async def feed(self, body: str, offset: int, length: int, update: Callable[[Buffer], None]) -> None:
        """Read bytes once and pass them in order to `update`, in a thread.

        Raises SourceGone when they changed.
        """
        opened = await self.open(body, offset, length)
        end = offset + length
        try:
            while offset < end:
                with translate_driver_errors():
                    count = await self.in_thread(
                        self._feed, opened, body, offset, min(FEED_BYTES, end - offset), update
                    )
                if not count:
                    raise SourceGone()
                offset += count
        finally:
            opened.release()

    def _feed(self, opened: FileSlice, body: str, offset: int, length: int, update: Callable[[Buffer], None]) -> int:
        for start in range(offset, offset + length, PIECE_BYTES):
            piece = self._read(opened, body, start, min(PIECE_BYTES, offset + length - start))
            if piece is None:
                return 0
            update(piece)
        return length

    async def slices(self, body: str, size: int) -> AsyncGenerator[FileSlice | bytes, None]:
        """Yield all bytes of a file, for a copy within the mount.

        Raises SourceGone after them when the file changed.
        """
        opened = await self.open(body, 0, size)
        try:
            yield opened
            with translate_driver_errors():
                if not await self.in_thread(self.files.is_unchanged, opened, self.locator(body)):
                    raise SourceGone()
        finally:
            opened.release()
