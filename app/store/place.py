"""A driver with the name of its store: the one place where names get into locators and out of them.

The locators of the store `default` are those of its driver, such as `f:00000000000000a1`; those of every other store
have its name before them, such as `slow/f:00000000000000a1`. Drivers know nothing of names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from app.index.schema import DEFAULT
from storage_drivers.base import (
    Append,
    Buffer,
    Capabilities,
    ClaimedRecord,
    Decision,
    Driver,
    FileSlice,
    PackBook,
    PackFile,
    Probed,
    Source,
    Usage,
    no_claim,
)
from storage_drivers.errors import BlobMissing, DriverError
from storage_drivers.identity import Identity


def prefix_of(name: str) -> str:
    """What the locators of a store begin with."""
    return "" if name == DEFAULT else f"{name}/"


def owner(locator: str) -> str:
    """The name of the store that a locator belongs to."""
    return DEFAULT if locator[1:2] == ":" else locator.partition("/")[0]


class Place:
    """One store's driver, seen by the rest of the service. All calls of it go through here; see `Driver`.

    For the store `default` the calls of the hot path are the driver's own.
    """

    def __init__(self, driver: Driver, name: str = DEFAULT) -> None:
        self.name = name
        self.prefix = prefix_of(name)
        self._skipped = len(self.prefix)
        self.put_in(driver)

    def put_in(self, driver: Driver) -> None:
        """From now on calls go to this driver."""
        self.driver = driver
        if not self.prefix:
            self.append = driver.append  # type: ignore[method-assign]
            self.read_now = driver.read_now  # type: ignore[method-assign]
            self.packed = driver.packed  # type: ignore[method-assign]

    def _bare(self, locator: str) -> str:
        """The locator that the driver knows. Raises BlobMissing for another store's."""
        if not self.mine(locator):
            raise BlobMissing(f"{locator!r} is no locator of this store")
        return locator[self._skipped :]

    def mine(self, locator: str) -> bool:
        """Whether a locator is of this store."""
        return locator.startswith(self.prefix) if self.prefix else locator[1:2] == ":"

    @property
    def capabilities(self) -> Capabilities:
        """What the driver can do."""
        return self.driver.capabilities

    @property
    def identity(self) -> Identity | None:
        """Which store this is, once it is started."""
        return self.driver.identity

    @property
    def probe(self) -> Probed | None:
        """What was found of its mount."""
        return self.driver.probe

    # when the mount does not answer
    def look(self, known: Identity, *, write: bool) -> None:
        self.driver.look(known, write=write)

    def running(self) -> list[object]:
        return self.driver.running()

    @property
    def troubles(self) -> int:
        return self.driver.troubles

    @property
    def held(self) -> int:
        return self.driver.held

    def give_up(self, error: DriverError) -> None:
        self.driver.give_up(error)

    # life
    async def start(self) -> None:
        await self.driver.start()

    async def close(self) -> None:
        await self.driver.close()

    async def empty(self) -> bool:
        return await self.driver.empty()

    def open_packs(self, book: PackBook) -> None:
        self.driver.open_packs(book)

    async def close_packs(self) -> None:
        await self.driver.close_packs()

    # writing
    def append(self, entry: Append) -> None:
        told = entry.done

        def done(entry: Append) -> None:
            if entry.error is None:
                entry.locator = self.prefix + entry.locator
            told(entry)

        entry.done = done
        self.driver.append(entry)

    async def put(
        self,
        blob_id: int,
        source: Source,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        claim: Callable[[], bytes] = no_claim,
    ) -> str:
        return self.prefix + await self.driver.put(blob_id, source, timings, piece, claim)

    # reading
    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        return await self.driver.read(self._bare(locator), offset, length)

    def read_now(self, locator: str, offset: int, length: int) -> bytes | None:
        return self.driver.read_now(locator[self._skipped :], offset, length)

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        await self.driver.feed(self._bare(locator), offset, length, take)

    def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        return self.driver.reread(self._bare(locator), take)

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        return await self.driver.reread_records([self._bare(locator) for locator in locators], take)

    # space
    async def discard(self, locator: str) -> None:
        await self.driver.discard(self._bare(locator))

    async def discard_many(self, locators: Sequence[str]) -> None:
        await self.driver.discard_many([self._bare(locator) for locator in locators])

    async def discard_id(self, blob_id: int) -> bool:
        return await self.driver.discard_id(blob_id)

    async def usage(self) -> Usage:
        return await self.driver.usage()

    async def forget_unlinked(self) -> None:
        await self.driver.forget_unlinked()

    # names
    def locator(self, blob_id: int) -> str:
        return self.prefix + self.driver.locator(blob_id)

    def blob_id(self, locator: str) -> int:
        return self.driver.blob_id(self._bare(locator))

    def packed(self, locator: str) -> tuple[int, int] | None:
        return self.driver.packed(locator[self._skipped :]) if locator.startswith(self.prefix) else None

    def pack_locator(self, pack_id: int) -> str:
        return self.prefix + self.driver.pack_locator(pack_id)

    def whole_pack(self, locator: str) -> int:
        return self.driver.whole_pack(self._bare(locator))

    def pack_prefix(self, pack_id: int) -> str:
        return self.prefix + self.driver.pack_prefix(pack_id)

    # packs
    async def pack_file(self, pack_id: int) -> PackFile | None:
        return await self.driver.pack_file(pack_id)

    def packs(self) -> AsyncIterator[int]:
        return self.driver.packs()

    async def claimed(self, pack_id: int, offset: int, limit: int) -> tuple[list[ClaimedRecord], int]:
        records, end = await self.driver.claimed(pack_id, offset, limit)
        if self.prefix:
            records = [record._replace(locator=self.prefix + record.locator) for record in records]
        return records, end

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        moved = await self.driver.move([self._bare(locator) for locator in locators])
        return {self.prefix + old: self.prefix + new for old, new in moved.items()}

    # journals
    async def write_journal(self, journal_id: int, decisions: Sequence[Decision]) -> int:
        return await self.driver.write_journal(journal_id, decisions)

    async def end_journal(self, journal_id: int) -> None:
        await self.driver.end_journal(journal_id)

    async def discard_journals(self, ids: Sequence[int]) -> None:
        await self.driver.discard_journals(ids)

    async def check_journal(self, journal_id: int) -> bool:
        return await self.driver.check_journal(journal_id)

    async def walk(self) -> AsyncIterator[tuple[str, int]]:
        async for locator, size in self.driver.walk():
            yield self.prefix + locator, size
