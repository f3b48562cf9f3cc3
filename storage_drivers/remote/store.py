"""The driver of any place that fsspec reaches (`sftp://`, `s3://`, `memory://`, `file://`): a store that is no mount.

Every blob, small or large, is one object ROOT/data/<aa>/<id> with the footer that a file on a mount has. It asks of the
place: make an object, read a range of it, list a directory, remove. Nobody promises that such a place syncs anything,
so the durability is `relaxed`, and only that.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from storage_drivers.base import UNTOLD, Buffer, Capabilities, Durability, Source, Usage, no_claim
from storage_drivers.blobs.rereading import next_piece
from storage_drivers.errors import BlobMissing, DriverError, StoreFailed, StoreGone, StoreUnfit
from storage_drivers.identity import Identity
from storage_drivers.journaling import Journaling
from storage_drivers.looking import check_identity
from storage_drivers.probing.probe import with_patience
from storage_drivers.probing.scratch import Progress
from storage_drivers.remote.contents import PREFIX, RemoteContents, make_identity, read_identity
from storage_drivers.remote.filesystem import NewObject, Remote
from storage_drivers.remote.journals import DIRECTORY, RemoteJournals
from storage_drivers.remote.reader import RemoteReader
from storage_drivers.remote.without_packs import WithoutPacks
from storage_drivers.remote.writing import RemoteBlob
from storage_drivers.streaming import Streaming
from storage_drivers.threads import Threads

P = ParamSpec("P")
T = TypeVar("T")

LOCATOR = re.compile(f"{PREFIX}[0-9a-f]{{16}}")
AT_ONCE = 64
"""Blobs that a walk looks at before it gives the first."""


def nowhere(_: str) -> None:
    """The crash hook of a driver that is not under test."""


class Found(NamedTuple):
    """What a look at the place found."""

    exclusive: bool
    """Objects can be made so that one which is there is refused."""

    @property
    def line(self) -> str:
        """All that counts in one line, for the log."""
        return f"reached by fsspec, {'exclusive create' if self.exclusive else 'no exclusive create: looks first'}"


class FsspecDriver(WithoutPacks, Streaming, Journaling):
    """One store at a URL, which `fsspec.core.url_to_fs` understands together with `options`.

    `threads` bounds the calls under way, and the connections. `create` False refuses a place without identity: give it
    when the index knows a store already, for then such a place is the wrong one. `at` is called with the name of every
    step of put and discard once it is done (crash tests).
    """

    _threads: Threads

    def __init__(
        self,
        url: str,
        *,
        durability: Durability = Durability.RELAXED,
        threads: int = 32,
        create: bool = True,
        at: Callable[[str], None] = nowhere,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.capabilities = Capabilities(
            durability=Durability.RELAXED, descriptors=False, nowait=False, one_process=is_of_one_process(url)
        )
        self.identity: Identity | None = None
        self.probe: Found | None = None
        """What was found of the place when the store started."""
        self._asked = durability
        self._create = create
        self._at = at
        self._threads = Threads(threads)
        self._remote = Remote(url, dict(options or {}), threads)
        self._contents = RemoteContents(self._remote)
        self._reader = RemoteReader(self._remote)
        self._journals = RemoteJournals(self._remote)

    # life
    async def start(self) -> None:
        """Make or check the store.

        Raises StoreFailed when there is another store or blobs of none, when a package is not installed, or when more
        durability is asked for than such a place can promise.
        """
        if self._asked is not Durability.RELAXED:
            raise StoreUnfit("durability", "no place that fsspec reaches survives a power cut: set it to relaxed")
        progress = Progress()
        self.identity = await with_patience(progress, lambda: self._open_store(progress))
        if self.identity is None:
            await asyncio.gather(*(self._hop(self._make_directory, low) for low in range(256)))
            self.identity = await self._hop(make_identity, self._remote)

    async def close(self) -> None:
        """Take no more calls. Threads end after those queued; not waited for, so that a stuck place stops no stop."""
        try:
            self._hop(self._remote.close)
        except StoreFailed:  # closed already
            return
        self._threads.shutdown()

    def look(self, known: Identity, *, write: bool) -> None:
        """Look whether the store of this identity is there; nothing is written."""
        try:
            found = read_identity(self._remote)
        except DriverError as error:
            raise StoreGone(f"its identity cannot be read: {error}") from error
        check_identity(found, known)

    def running(self) -> list[object]:
        """Blocking calls that run now."""
        return self._threads.running()

    @property
    def troubles(self) -> int:
        """Calls that failed."""
        return self._threads.troubles

    @property
    def held(self) -> int:
        """Nothing is kept."""
        return 0

    def give_up(self, error: DriverError) -> None:
        """Fail what is under way."""
        self._threads.give_up(error)

    def _open_store(self, progress: Progress) -> Identity | None:
        found = read_identity(self._remote)
        if found is None:
            if not self._create:
                raise StoreFailed("there is no store here: is this the right place?")
            progress.step("mkdir")
            self._remote.make_directory(f"{self._remote.root}/{DIRECTORY}")
        progress.step("probe")
        self.probe = Found(self._remote.probe(f"{self._remote.root}/probe-{secrets.token_hex(8)}"))
        return found

    def _make_directory(self, low: int) -> None:
        self._remote.make_directory(f"{self._remote.root}/data/{low:02x}")

    # blobs
    async def put(
        self,
        blob_id: int,
        source: Source,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        claim: Callable[[], bytes] = no_claim,
    ) -> str:
        """Write one blob."""
        if piece is None:
            piece = await source.read()
        spent = {} if timings is None else timings
        blob = RemoteBlob(
            NewObject(self._remote, self._contents.path(blob_id)), blob_id, source, claim, spent, self._at
        )
        await self._stream(blob, source, piece)
        return self.locator(blob_id)

    async def read(self, locator: str, offset: int, length: int) -> bytes:
        """Verified bytes, up to the end of the chunk of 1 MiB that they begin in."""
        return await self._hop(self._reader.read, *self._find(locator), locator, offset, length)

    def read_now(self, locator: str, offset: int, length: int) -> bytes | None:
        """Never: every read waits for the place."""
        self._find(locator)
        return None

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """Read the bytes once and give them to `take` in the thread that reads."""
        while length:
            count = await self._hop(self._feed_piece, locator, offset, length, take)
            offset += count
            length -= count

    def _feed_piece(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> int:
        piece = self._reader.read(*self._find(locator), locator, offset, length)
        take(piece)
        return len(piece)

    async def discard(self, locator: str) -> None:
        """Remove a blob's object."""
        await self._hop(self._remove, *self._find(locator))

    async def discard_many(self, locators: Sequence[str]) -> None:
        """Remove many blobs' objects, several at a time."""
        places = [self._find(locator) for locator in locators]
        await asyncio.gather(*(self._hop(self._remove, *place) for place in places))

    async def discard_id(self, blob_id: int) -> bool:
        """Remove the object that a dead writer may have left under this id."""
        return await self._hop(self._remove_if_there, self._contents.path(blob_id), blob_id)

    def _remove_if_there(self, path: str, blob_id: int) -> bool:
        # asked first: an object store says nothing of what was not there
        return self._remote.exists(path) and self._remove(path, blob_id)

    def _remove(self, path: str, blob_id: int) -> bool:
        self._reader.forget(blob_id)
        gone = self._remote.remove(path)
        self._at("discard.unlinked")
        return gone

    @property
    def _written(self) -> RemoteJournals:
        return self._journals

    async def discard_journals(self, ids: Sequence[int]) -> None:
        """Remove journals."""
        await self._hop(self._journals.discard, ids)

    # the whole store
    async def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        """Read a blob again, footer and all."""
        pieces = self._reader.chunks(*self._find(locator), locator)
        while (count := await self._hop(next_piece, pieces, take)) is not None:
            yield count

    async def walk(self) -> AsyncIterator[tuple[str, int]]:
        """Every blob's locator and size in bytes; objects that are none of ours are passed over."""
        if await self._hop(read_identity, self._remote) is None:
            raise StoreFailed("the store is gone")
        for low in range(256):
            listed = await self._hop(self._contents.listed, low)
            for first in range(0, len(listed), AT_ONCE):
                some = listed[first : first + AT_ONCE]
                for blob in await asyncio.gather(*(self._hop(self._blob, *one) for one in some)):
                    if blob is not None:
                        yield blob

    def _blob(self, blob_id: int, size: int) -> tuple[str, int] | None:
        try:
            return self.locator(blob_id), self._reader.length(self._contents.path(blob_id), blob_id, size)
        except BlobMissing:  # discarded meanwhile
            return None

    async def empty(self) -> bool:
        """Look for any object of ours."""
        return await self._hop(lambda: self._contents.empty)

    async def usage(self) -> Usage:
        """What is left is not known; this asks whether the store answers."""
        if await self._hop(read_identity, self._remote) is None:
            raise StoreFailed("the store is gone")
        return Usage(total=UNTOLD, free=UNTOLD, inodes=0, free_inodes=0)

    def contents(self) -> RemoteContents:
        """All that lies in the store, to be read without an index. Blocks."""
        return RemoteContents(self._remote)

    # names and threads
    def locator(self, blob_id: int) -> str:
        """The locator of a blob of this id."""
        return f"{PREFIX}{blob_id:016x}"

    def blob_id(self, locator: str) -> int:
        """The id of the blob at a locator."""
        if not LOCATOR.fullmatch(locator):
            raise BlobMissing(f"{locator!r} is no locator of this driver")
        return int(locator[len(PREFIX) :], 16)

    def _find(self, locator: str) -> tuple[str, int]:
        blob_id = self.blob_id(locator)
        return self._contents.path(blob_id), blob_id


def is_of_one_process(url: str) -> bool:
    """Whether what is stored at a URL can be seen by the process only that stored it."""
    return "memory" in (part.partition("://")[0] for part in url.split("::"))
