"""The driver of any fsspec place (`sftp://`, `s3://`, `memory://`, `file://`) that is no mount.

Every blob, small or large, is one object ROOT/data/<aa>/<id> with the footer that a file on a mount has. The place must
support: create an object, read a range of it, list a directory, remove. Such a place promises no sync, so the only
durability is `relaxed`.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from sluice_s3.storage_drivers.base import (
    UNKNOWN_SIZE,
    BodySource,
    Buffer,
    Capabilities,
    Durability,
    Usage,
    no_recovery_header,
)
from sluice_s3.storage_drivers.blobs.verify import next_piece
from sluice_s3.storage_drivers.errors import BlobMissing, DriverError, StoreFailed, StoreGone, StoreUnfit
from sluice_s3.storage_drivers.fsspec.contents import PREFIX, RemoteContents, make_identity, read_identity
from sluice_s3.storage_drivers.fsspec.filesystem import FsspecClient, NewObject
from sluice_s3.storage_drivers.fsspec.journals import DIRECTORY, RemoteJournals
from sluice_s3.storage_drivers.fsspec.reader import RemoteReader
from sluice_s3.storage_drivers.fsspec.without_packs import UnpackedMixin
from sluice_s3.storage_drivers.fsspec.writing import RemoteBlob
from sluice_s3.storage_drivers.health import check_identity
from sluice_s3.storage_drivers.identity import Identity
from sluice_s3.storage_drivers.journal_mixin import JournalMixin
from sluice_s3.storage_drivers.probing.probe import run_with_timeout
from sluice_s3.storage_drivers.probing.scratch import Progress
from sluice_s3.storage_drivers.streaming import StreamingWriteMixin
from sluice_s3.storage_drivers.threads import StoreThreadPool
from sluice_s3.storage_drivers.types import no_crash_hook

P = ParamSpec("P")
T = TypeVar("T")

LOCATOR = re.compile(f"{PREFIX}[0-9a-f]{{16}}")
CONCURRENCY = 64
"""Blobs that a walk reads before it yields the first."""


class ProbeResult(NamedTuple):
    """The result of the place's probe."""

    exclusive: bool
    """Whether creating an existing object is refused."""

    @property
    def lacks(self) -> list[str]:
        """What was seen not to work."""
        return [] if self.exclusive else ["exclusive create"]

    @property
    def warnings(self) -> list[str]:
        """What the operator had better change."""
        return []

    @property
    def line(self) -> str:
        """The findings in one line, for the log."""
        return f"reached by fsspec, {'exclusive create' if self.exclusive else 'no exclusive create: looks first'}"


class FsspecDriver(UnpackedMixin, StreamingWriteMixin, JournalMixin):
    """One store at a URL, which `fsspec.core.url_to_fs` understands together with `options`.

    `threads` bounds the calls under way, and the connections. `create` False refuses a place without identity: pass it
    when the index already knows a store, since such a place is then the wrong one. `at` is called with the name of
    every completed step of put and discard (crash tests).
    """

    _threads: StoreThreadPool

    def __init__(
        self,
        url: str,
        *,
        durability: Durability = Durability.RELAXED,
        threads: int = 32,
        create: bool = True,
        at: Callable[[str], None] = no_crash_hook,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.capabilities = Capabilities(
            durability=Durability.RELAXED,
            descriptors=False,
            nowait=False,
            discards_at_once=threads,
            one_process=is_in_memory(url),
        )
        self.identity: Identity | None = None
        self.probe: ProbeResult | None = None
        """The result of the place's probe when the store started."""
        self._asked = durability
        self._create = create
        self._at = at
        self._threads = StoreThreadPool(threads)
        self._remote = FsspecClient(url, dict(options or {}), threads)
        self._contents = RemoteContents(self._remote)
        self._reader = RemoteReader(self._remote)
        self._journals = RemoteJournals(self._remote)

    # life
    async def start(self) -> None:
        """Create or check the store.

        Raises StoreFailed when there is another store or blobs without an identity, when a package is not installed, or
        when the required durability is more than such a place can promise.
        """
        if self._asked is not Durability.RELAXED:
            raise StoreUnfit("durability", "no place that fsspec reaches survives a power cut: set it to relaxed")
        progress = Progress()
        self.identity = await run_with_timeout(progress, lambda: self._open_store(progress))
        if self.identity is None:
            await asyncio.gather(*(self._run_in_thread(self._make_directory, low) for low in range(256)))
            self.identity = await self._run_in_thread(make_identity, self._remote)

    async def close(self) -> None:
        """Refuse further calls.

        Threads end after queued calls; `close` does not wait for them, so that a stuck place blocks no stop.
        """
        try:
            self._run_in_thread(self._remote.close)
        except StoreFailed:  # closed already
            return
        self._threads.shutdown()

    def look(self, known: Identity, *, write: bool) -> None:
        """Check whether the store of this identity is there; nothing is written."""
        try:
            found = read_identity(self._remote)
        except DriverError as error:
            raise StoreGone(f"its identity cannot be read: {error}") from error
        check_identity(found, known)

    def running(self) -> list[object]:
        """Return the blocking calls that run now."""
        return self._threads.running()

    @property
    def troubles(self) -> int:
        """The number of calls that failed."""
        return self._threads.troubles

    @property
    def cached_bytes(self) -> int:
        """Always 0: nothing is cached."""
        return 0

    def give_up(self, error: DriverError) -> None:
        """Fail the calls under way."""
        self._threads.give_up(error)

    def _open_store(self, progress: Progress) -> Identity | None:
        found = read_identity(self._remote)
        if found is None:
            if not self._create:
                raise StoreFailed("there is no store here: is this the right place?")
            progress.step("mkdir")
            self._remote.make_directory(f"{self._remote.root}/{DIRECTORY}")
        progress.step("probe")
        self.probe = ProbeResult(self._remote.probe(f"{self._remote.root}/probe-{secrets.token_hex(8)}"))
        return found

    def _make_directory(self, low: int) -> None:
        self._remote.make_directory(f"{self._remote.root}/data/{low:02x}")

    # blobs
    async def put(
        self,
        blob_id: int,
        source: BodySource,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        make_header: Callable[[], bytes] = no_recovery_header,
    ) -> str:
        """Write one blob."""
        if piece is None:
            piece = await source.read()
        spent = {} if timings is None else timings
        blob = RemoteBlob(
            NewObject(self._remote, self._contents.path(blob_id)), blob_id, source, make_header, spent, self._at
        )
        await self._stream(blob, source, piece)
        return self.locator(blob_id)

    async def read(self, locator: str, offset: int, length: int) -> bytes:
        """Return verified bytes, up to the end of their 1 MiB chunk."""
        return await self._run_in_thread(self._reader.read, *self._find(locator), locator, offset, length)

    def try_read(self, locator: str, offset: int, length: int) -> bytes | None:
        """Return None: every read waits for the place."""
        self._find(locator)
        return None

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """Read the bytes once and pass them to `take` in the reading thread."""
        while length:
            count = await self._run_in_thread(self._feed_piece, locator, offset, length, take)
            offset += count
            length -= count

    def _feed_piece(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> int:
        piece = self._reader.read(*self._find(locator), locator, offset, length)
        take(piece)
        return len(piece)

    async def discard(self, locator: str) -> None:
        """Remove a blob's object."""
        await self._run_in_thread(self._remove, *self._find(locator))

    async def discard_many(self, locators: Sequence[str]) -> None:
        """Remove many blobs' objects, several at a time."""
        places = [self._find(locator) for locator in locators]
        await asyncio.gather(*(self._run_in_thread(self._remove, *place) for place in places))

    async def discard_id(self, blob_id: int) -> bool:
        """Remove the object that a dead writer may have left under this id."""
        return await self._run_in_thread(self._remove_if_there, self._contents.path(blob_id), blob_id)

    def _remove_if_there(self, path: str, blob_id: int) -> bool:
        # Check first: an object store does not report that an object was missing.
        return self._remote.exists(path) and self._remove(path, blob_id)

    def _remove(self, path: str, blob_id: int) -> bool:
        self._reader.forget(blob_id)
        gone = self._remote.remove(path)
        self._at("discard.unlinked")
        return gone

    @property
    def _written(self) -> RemoteJournals:
        return self._journals

    # the whole store
    async def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        """Read a blob again, including its footer."""
        pieces = self._reader.chunks(*self._find(locator), locator)
        while (count := await self._run_in_thread(next_piece, pieces, take)) is not None:
            yield count

    async def walk(self) -> AsyncIterator[tuple[str, int]]:
        """Yield every blob's locator and size in bytes, without foreign objects."""
        if await self._run_in_thread(read_identity, self._remote) is None:
            raise StoreFailed("the store is gone")
        for low in range(256):
            listed = await self._run_in_thread(self._contents.listed, low)
            for first in range(0, len(listed), CONCURRENCY):
                some = listed[first : first + CONCURRENCY]
                for blob in await asyncio.gather(*(self._run_in_thread(self._blob, *one) for one in some)):
                    if blob is not None:
                        yield blob

    def _blob(self, blob_id: int, size: int) -> tuple[str, int] | None:
        try:
            return self.locator(blob_id), self._reader.length(self._contents.path(blob_id), blob_id, size)
        except BlobMissing:  # discarded meanwhile
            return None

    async def empty(self) -> bool:
        """Return whether the store has no object of ours."""
        return await self._run_in_thread(lambda: self._contents.empty)

    async def usage(self) -> Usage:
        """Check that the store answers; the space left is unknown."""
        if await self._run_in_thread(read_identity, self._remote) is None:
            raise StoreFailed("the store is gone")
        return Usage(total=UNKNOWN_SIZE, free=UNKNOWN_SIZE, inodes=0, free_inodes=0)

    def contents(self) -> RemoteContents:
        """Return a reader of the whole store without an index. Blocks."""
        return RemoteContents(self._remote)

    # names and threads
    def locator(self, blob_id: int) -> str:
        """Return the locator of a blob of this id."""
        return f"{PREFIX}{blob_id:016x}"

    def blob_id(self, locator: str) -> int:
        """Return the id of the blob at a locator."""
        if not LOCATOR.fullmatch(locator):
            raise BlobMissing(f"{locator!r} is no locator of this driver")
        return int(locator[len(PREFIX) :], 16)

    def _find(self, locator: str) -> tuple[str, int]:
        blob_id = self.blob_id(locator)
        return self._contents.path(blob_id), blob_id


def is_in_memory(url: str) -> bool:
    """Return whether only the process that stores something at a URL can see it."""
    return "memory" in (part.partition("://")[0] for part in url.split("::"))
