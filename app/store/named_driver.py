"""A driver with the name of its store.

Only this module adds names to locators and removes them. Locators of the store `default` are those of its driver, such
as `f:00000000000000a1`; those of every other store begin with its name, such as `slow/f:00000000000000a1`. Drivers know
no names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.storage_drivers.base import (
    AppendRequest,
    BodySource,
    Buffer,
    Capabilities,
    Driver,
    FileSlice,
    JournalRecord,
    PackFile,
    PackRegistry,
    ProbeResult,
    RecordInfo,
    Usage,
    no_recovery_header,
)
from sluice_s3.storage_drivers.errors import BlobMissing, DriverError
from sluice_s3.storage_drivers.identity import Identity


def locator_prefix(name: str) -> str:
    """Return the prefix of a store's locators."""
    return "" if name == DEFAULT else f"{name}/"


def store_of_locator(locator: str) -> str:
    """Return the name of the store that a locator belongs to."""
    return DEFAULT if locator[1:2] == ":" else locator.partition("/")[0]


class NamedDriver:
    """One store's driver, as the rest of the service uses it; see `Driver`.

    All calls of the driver go through here. For the store `default` the calls of the hot path are the driver's own.
    """

    def __init__(self, driver: Driver, name: str = DEFAULT) -> None:
        self.name = name
        self.prefix = locator_prefix(name)
        self._skipped = len(self.prefix)
        self.replace_driver(driver)

    def replace_driver(self, driver: Driver) -> None:
        """Send all further calls to this driver."""
        self.driver = driver
        if not self.prefix:
            self.append = driver.append  # type: ignore[method-assign]
            self.try_read = driver.try_read  # type: ignore[method-assign]
            self.packed = driver.packed  # type: ignore[method-assign]

    def _bare(self, locator: str) -> str:
        """Return the locator that the driver knows. Raises BlobMissing for another store's."""
        if not self.owns(locator):
            raise BlobMissing(f"{locator!r} is no locator of this store")
        return locator[self._skipped :]

    def owns(self, locator: str) -> bool:
        """Return whether a locator belongs to this store."""
        return locator.startswith(self.prefix) if self.prefix else locator[1:2] == ":"

    @property
    def capabilities(self) -> Capabilities:
        """The driver's capabilities."""
        return self.driver.capabilities

    @property
    def identity(self) -> Identity | None:
        """The identity of the store, once it is started."""
        return self.driver.identity

    @property
    def probe(self) -> ProbeResult | None:
        """The result of the mount's probe."""
        return self.driver.probe

    # when the mount does not answer
    def look(self, known: Identity, *, write: bool) -> None:
        """See `Driver`."""
        self.driver.look(known, write=write)

    def running(self) -> list[object]:
        """See `Driver`."""
        return self.driver.running()

    @property
    def troubles(self) -> int:
        """See `Driver`."""
        return self.driver.troubles

    @property
    def cached_bytes(self) -> int:
        """See `Driver`."""
        return self.driver.cached_bytes

    def give_up(self, error: DriverError) -> None:
        """See `Driver`."""
        self.driver.give_up(error)

    # life
    async def start(self) -> None:
        """See `Driver`."""
        await self.driver.start()

    async def close(self) -> None:
        """See `Driver`."""
        await self.driver.close()

    async def empty(self) -> bool:
        """See `Driver`."""
        return await self.driver.empty()

    def open_packs(self, book: PackRegistry) -> None:
        """See `Driver`."""
        self.driver.open_packs(book)

    async def close_packs(self) -> None:
        """See `Driver`."""
        await self.driver.close_packs()

    # writing
    def append(self, entry: AppendRequest) -> None:
        """See `Driver`."""
        on_done = entry.on_done

        def complete_entry(entry: AppendRequest) -> None:
            if entry.error is None:
                entry.locator = self.prefix + entry.locator
            on_done(entry)

        entry.on_done = complete_entry
        self.driver.append(entry)

    async def put(
        self,
        blob_id: int,
        source: BodySource,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        make_header: Callable[[], bytes] = no_recovery_header,
    ) -> str:
        """See `Driver`."""
        return self.prefix + await self.driver.put(blob_id, source, timings, piece, make_header)

    # reading
    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """See `Driver`."""
        return await self.driver.read(self._bare(locator), offset, length)

    def try_read(self, locator: str, offset: int, length: int) -> bytes | None:
        """See `Driver`."""
        return self.driver.try_read(locator[self._skipped :], offset, length)

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """See `Driver`."""
        await self.driver.feed(self._bare(locator), offset, length, take)

    def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        """See `Driver`."""
        return self.driver.reread(self._bare(locator), take)

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        """See `Driver`."""
        return await self.driver.reread_records([self._bare(locator) for locator in locators], take)

    # space
    async def discard(self, locator: str) -> None:
        """See `Driver`."""
        await self.driver.discard(self._bare(locator))

    async def discard_many(self, locators: Sequence[str]) -> None:
        """See `Driver`."""
        await self.driver.discard_many([self._bare(locator) for locator in locators])

    async def discard_id(self, blob_id: int) -> bool:
        """See `Driver`."""
        return await self.driver.discard_id(blob_id)

    async def usage(self) -> Usage:
        """See `Driver`."""
        return await self.driver.usage()

    async def close_unlinked(self) -> None:
        """See `Driver`."""
        await self.driver.close_unlinked()

    # names
    def locator(self, blob_id: int) -> str:
        """See `Driver`."""
        return self.prefix + self.driver.locator(blob_id)

    def blob_id(self, locator: str) -> int:
        """See `Driver`."""
        return self.driver.blob_id(self._bare(locator))

    def packed(self, locator: str) -> tuple[int, int] | None:
        """See `Driver`."""
        return self.driver.packed(locator[self._skipped :]) if locator.startswith(self.prefix) else None

    def pack_locator(self, pack_id: int) -> str:
        """See `Driver`."""
        return self.prefix + self.driver.pack_locator(pack_id)

    def whole_pack(self, locator: str) -> int:
        """See `Driver`."""
        return self.driver.whole_pack(self._bare(locator))

    def pack_prefix(self, pack_id: int) -> str:
        """See `Driver`."""
        return self.prefix + self.driver.pack_prefix(pack_id)

    # packs
    async def pack_file(self, pack_id: int) -> PackFile | None:
        """See `Driver`."""
        return await self.driver.pack_file(pack_id)

    def packs(self) -> AsyncIterator[int]:
        """See `Driver`."""
        return self.driver.packs()

    async def list_records(self, pack_id: int, offset: int, limit: int) -> tuple[list[RecordInfo], int]:
        """See `Driver`."""
        records, end = await self.driver.list_records(pack_id, offset, limit)
        if self.prefix:
            records = [record._replace(locator=self.prefix + record.locator) for record in records]
        return records, end

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        """See `Driver`."""
        moved = await self.driver.move([self._bare(locator) for locator in locators])
        return {self.prefix + old: self.prefix + new for old, new in moved.items()}

    # journals
    async def write_journal(self, journal_id: int, records: Sequence[JournalRecord]) -> int:
        """See `Driver`."""
        return await self.driver.write_journal(journal_id, records)

    async def end_journal(self, journal_id: int) -> None:
        """See `Driver`."""
        await self.driver.end_journal(journal_id)

    async def journal_sizes(self) -> dict[int, int]:
        """See `Driver`."""
        return await self.driver.journal_sizes()

    def read_journal(self, journal_id: int) -> AsyncIterator[JournalRecord | None]:
        """See `Driver`."""
        return self.driver.read_journal(journal_id)

    async def journal_tail(self, journal_id: int, length: int) -> list[JournalRecord | None]:
        """See `Driver`."""
        return await self.driver.journal_tail(journal_id, length)

    async def discard_journals(self, ids: Sequence[int]) -> None:
        """See `Driver`."""
        await self.driver.discard_journals(ids)

    async def check_journal(self, journal_id: int) -> bool:
        """See `Driver`."""
        return await self.driver.check_journal(journal_id)

    async def walk(self) -> AsyncIterator[tuple[str, int]]:
        """See `Driver`."""
        async for locator, size in self.driver.walk():
            yield self.prefix + locator, size
