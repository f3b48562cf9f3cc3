"""Plain files as they are now: rows follow what others do to them (DESIGN §4, layout *tree*).

Whoever reads compares the file's stamp with the row's. Where they differ the gateway itself may be at it, which its
intent tells; else somebody else was, and the row is made what the file is. What is sent was read while the file had
the stamp of the row that the answer speaks of.
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

from app.errors import Overloaded, SourceGone, StoreUnavailable
from app.index.base import Index
from app.index.rows import Bucket, Found, Version, is_tree, without_upload
from app.store.calls import driver_calls
from storage_drivers.base import Buffer, FileSlice
from storage_drivers.errors import BlobDamaged, map_errors
from storage_drivers.files import read_exactly
from storage_drivers.threads import Threads
from storage_drivers.tree import FileChanged, FileGone, Stamp, TreeFiles
from storage_drivers.tree.base import refused

PATIENCE = 10.0
"""Seconds that a request waits for another one's change of the same key."""
PIECE = 512 * 1024
"""Bytes of a file in memory at a time."""
FED = 16 << 20
"""Bytes hashed in one hop."""
SMALL = 256 * 1024
"""Bytes up to which an answer is one bytes object."""
DEFAULT_TYPE = "binary/octet-stream"

T = TypeVar("T")


class Pause:
    """Short waits, each longer than the one before, until `PATIENCE` is over."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._deadline = monotonic() + patience
        self._next = 0.002

    async def wait(self) -> bool:
        """False, at once, when there was enough of it."""
        if monotonic() >= self._deadline:
            return False
        await asyncio.sleep(self._next * (0.5 + random.random()))
        self._next = min(self._next * 2, 0.05)
        return True


def placeholder(key: str, stamp: Stamp) -> str:
    """The ETag of a file that is not hashed yet. Of a form that nobody takes for an MD5."""
    return f"{xxh3_128_hexdigest(f'{stamp}/{key}'.encode())}-1"


def is_placeholder(version: Version) -> bool:
    """Whether a version's ETag says nothing of its bytes."""
    return version.parts == 0 and version.etag.endswith("-1")


def content_type(key: str) -> str:
    """What a file's name says of its content.

    Only the last name, and behind a slash: `mimetypes` takes what begins like a URL for one, and of `data:` URLs the
    type that they state, whatever it is.
    """
    return mimetypes.guess_type("/" + key.rpartition("/")[2], strict=False)[0] or DEFAULT_TYPE


def describe(key: str, body: str, stamp: Stamp, seen: int) -> Found:
    """The row of a file that others made or changed; `seen` is the sequence of the row that it had."""
    headers = orjson.dumps({"content-type": content_type(key)}).decode()
    return Found(key, seen, stamp.size, placeholder(key, stamp), headers, body, max(stamp.mtime_ns // 1_000_000, 0))


class Rest:
    """The bytes of an open file up to `end`, in pieces. Whoever has it closes it."""

    def __init__(self, tree: TreeReader, opened: FileSlice, body: str, offset: int, end: int) -> None:
        self._tree = tree
        self._opened = opened
        self._body = body
        self._offset = offset
        self._end = end

    async def __anext__(self) -> bytes:
        """The next piece. Raises StoreUnavailable when the file was changed: the answer is cut off."""
        if self._offset >= self._end:
            raise StopAsyncIteration
        count = min(PIECE, self._end - self._offset)
        piece = await self._tree.piece(self._opened, self._body, self._offset, count)
        if piece is None:
            raise StoreUnavailable(reason="the file was changed while it was read")
        self._offset += count
        return piece

    async def aclose(self) -> None:
        """Close the file."""
        self._opened.release()


class TreeReader:
    """Reads the plain files of one store. `prefix` is what the store's locators begin with in the index."""

    def __init__(self, index: Index, files: TreeFiles, threads: Threads, prefix: str) -> None:
        self.index = index
        self.files = files
        self._threads = threads
        self._prefix = prefix

    def body_of(self, path: str, stamp: Stamp) -> str:
        """The locator of a file as the index keeps it."""
        return self._prefix + self.files.locator(path, stamp)

    def locator(self, body: str) -> str:
        """The locator that the files know."""
        return without_upload(body)[len(self._prefix) :]

    def parse(self, body: str) -> tuple[str, Stamp]:
        """Path and stamp of a body."""
        return self.files.parse(self.locator(body))

    async def in_thread(self, call: Callable[..., T], *arguments: object) -> T:
        """Run what blocks in a thread of the store's."""
        return await self._threads.call(call, *arguments)

    # what a key is now
    async def find(self, bucket: Bucket, key: str, version_id: str | None = None) -> Version | None:
        """The current object of a key, after its row was made what its file is now.

        Raises Overloaded when a change of the key takes too long, StoreUnavailable when the store is not mounted.
        """
        pause = Pause()
        while True:
            version = await self.index.version(bucket.id, key, version_id)
            if version is None and version_id not in (None, "null"):
                return None
            if version is not None and not is_tree(version.body):
                return version
            stamp = await self._stamp(bucket, key, version)
            if version is None and stamp is None:
                return None
            if version is not None and stamp is not None and stamp == self.parse(version.body):
                return version
            again = await self.index.version(bucket.id, key, version_id)
            if (again and again.seq) != (version and version.seq):
                continue
            busy = await self.index.intent_on(bucket.id, key) is not None
            if (busy or not await self._correct(bucket, key, version, stamp)) and not await pause.wait():
                raise Overloaded(reason="the file is being changed")

    async def _stamp(self, bucket: Bucket, key: str, version: Version | None) -> tuple[str, Stamp] | None:
        """Path and stamp of a key's file, None when there is none."""
        with driver_calls():
            if version is None:
                found = await self.files.find_key(bucket.name, key)
                return None if found is None else (found.path, found.stamp)
            path = self.parse(version.body)[0]
            stamp = await self.files.find(path)
            return None if stamp is None else (path, stamp)

    async def _correct(
        self, bucket: Bucket, key: str, version: Version | None, found: tuple[str, Stamp] | None
    ) -> bool:
        """Make the row what the file is; False when it must be looked at again, a moment later."""
        if found is None:
            assert version is not None
            return (await self.index.forget_vanished(bucket.id, [(key, version.seq)]))[0]
        if not self.files.settled(found[1]):
            return False
        position = await self.index.position()
        if await self._stamp(bucket, key, version) != found:
            return False
        seen = version.seq if version is not None else 0
        new = describe(key, self.body_of(*found), found[1], seen)
        return (await self.index.adopt(bucket.id, bucket.owner_id, position, [new]))[0] != 0

    # bytes
    async def open(self, body: str, offset: int, length: int) -> FileSlice:
        """The bytes of a file. Raises SourceGone when it is another one by now: find it again."""
        with driver_calls():
            try:
                return await self.files.open(self.locator(body), offset, length)
            except (FileChanged, FileGone):
                raise SourceGone() from None

    async def read(self, body: str, offset: int, length: int) -> bytes | tuple[bytes, Rest]:
        """`length` bytes at `offset`: at once when they are few, else the first of them and the rest.

        Every piece was read while the file had the stamp of the body, so that no mixture is ever whole. Raises
        SourceGone when the file is another one by now: find it again.
        """
        if length <= SMALL:
            with driver_calls():
                try:
                    return await self.files.read(self.locator(body), offset, length)
                except (FileChanged, FileGone):
                    raise SourceGone() from None
        opened = await self.open(body, offset, length)
        first: bytes | None = None
        try:
            first = await self.piece(opened, body, offset, min(PIECE, length))
            if first is None:
                raise SourceGone()
        finally:
            if first is None or len(first) == length:
                opened.release()
        if len(first) == length:
            return first
        return first, Rest(self, opened, body, offset + len(first), offset + length)

    async def piece(self, opened: FileSlice, body: str, offset: int, length: int) -> bytes | None:
        with driver_calls():
            return await self.in_thread(self._read, opened, body, offset, length)

    def _read(self, opened: FileSlice, body: str, offset: int, length: int) -> bytes | None:
        """None when the file is not what the body says any more. In a thread."""
        with map_errors():
            try:
                piece = read_exactly(opened.fd, offset, length)
            except BlobDamaged:
                return None
            except OSError as error:
                raise refused(error) from error
        return piece if self.files.still(opened, self.locator(body)) else None

    async def feed(self, body: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """Read bytes once and give them in order to `take`, in a thread. Raises SourceGone when they were changed."""
        opened = await self.open(body, offset, length)
        end = offset + length
        try:
            while offset < end:
                with driver_calls():
                    count = await self.in_thread(self._feed, opened, body, offset, min(FED, end - offset), take)
                if not count:
                    raise SourceGone()
                offset += count
        finally:
            opened.release()

    def _feed(self, opened: FileSlice, body: str, offset: int, length: int, take: Callable[[Buffer], None]) -> int:
        for start in range(offset, offset + length, PIECE):
            piece = self._read(opened, body, start, min(PIECE, offset + length - start))
            if piece is None:
                return 0
            take(piece)
        return length

    async def slices(self, body: str, size: int) -> AsyncGenerator[FileSlice | bytes, None]:
        """All bytes of a file, to be copied within the mount. Raises SourceGone behind them when they were changed."""
        opened = await self.open(body, 0, size)
        try:
            yield opened
            with driver_calls():
                if not await self.in_thread(self.files.still, opened, self.locator(body)):
                    raise SourceGone()
        finally:
            opened.release()
