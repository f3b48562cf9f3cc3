"""The driver of a store out of service: it refuses every call at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NoReturn

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
from sluice_s3.storage_drivers.errors import DriverError, StoreSilent
from sluice_s3.storage_drivers.identity import Identity


class UnavailableDriver:
    """A stand-in with the names and capabilities of `driver`.

    It never calls `driver` for anything that touches its mount.
    """

    def __init__(self, driver: Driver, reason: str) -> None:
        self._reason = reason
        self.capabilities: Capabilities = driver.capabilities
        self.identity: Identity | None = driver.identity
        self.probe: ProbeResult | None = driver.probe
        self.locator = driver.locator
        self.blob_id = driver.blob_id
        self.packed = driver.packed
        self.pack_locator = driver.pack_locator
        self.whole_pack = driver.whole_pack
        self.pack_prefix = driver.pack_prefix
        self.look = driver.look

    def _no(self) -> NoReturn:
        raise StoreSilent(self._reason)

    # life
    async def start(self) -> None:
        """See `Driver`."""
        self._no()

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    async def empty(self) -> bool:
        """See `Driver`."""
        self._no()

    def running(self) -> list[object]:
        """Return an empty list: nothing runs."""
        return []

    @property
    def troubles(self) -> int:
        """Always 0."""
        return 0

    @property
    def cached_bytes(self) -> int:
        """Always 0: nothing is in memory."""
        return 0

    def give_up(self, error: DriverError) -> None:
        """Do nothing: no call is under way."""

    def open_packs(self, book: PackRegistry) -> None:
        """Do nothing: no pack is opened."""

    async def close_packs(self) -> None:
        """Do nothing: no pack is open."""

    # writing
    def append(self, entry: AppendRequest) -> None:
        """See `Driver`."""
        self._no()

    async def put(
        self,
        blob_id: int,
        source: BodySource,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        make_header: Callable[[], bytes] = no_recovery_header,
    ) -> str:
        """See `Driver`."""
        self._no()

    # reading
    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        """See `Driver`."""
        self._no()

    def try_read(self, locator: str, offset: int, length: int) -> bytes | None:
        """Return None; `read` raises the reason."""
        return None

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        """See `Driver`."""
        self._no()

    async def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        """See `Driver`."""
        self._no()
        yield 0

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        """See `Driver`."""
        self._no()

    # space
    async def discard(self, locator: str) -> None:
        """See `Driver`."""
        self._no()

    async def discard_many(self, locators: Sequence[str]) -> None:
        """See `Driver`."""
        self._no()

    async def discard_id(self, blob_id: int) -> bool:
        """See `Driver`."""
        self._no()

    async def usage(self) -> Usage:
        """See `Driver`."""
        self._no()

    async def close_unlinked(self) -> None:
        """Do nothing: nothing is open."""

    # packs
    async def pack_file(self, pack_id: int) -> PackFile | None:
        """See `Driver`."""
        self._no()

    async def packs(self) -> AsyncIterator[int]:
        """See `Driver`."""
        self._no()
        yield 0

    async def list_records(self, pack_id: int, offset: int, limit: int) -> tuple[list[RecordInfo], int]:
        """See `Driver`."""
        self._no()

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        """See `Driver`."""
        self._no()

    # journals
    async def write_journal(self, journal_id: int, records: Sequence[JournalRecord]) -> int:
        """See `Driver`."""
        self._no()

    async def end_journal(self, journal_id: int) -> None:
        """Do nothing: no journal is open."""

    async def journal_sizes(self) -> dict[int, int]:
        """See `Driver`."""
        self._no()

    async def read_journal(self, journal_id: int) -> AsyncIterator[JournalRecord | None]:
        """See `Driver`."""
        self._no()
        yield None

    async def journal_tail(self, journal_id: int, length: int) -> list[JournalRecord | None]:
        """See `Driver`."""
        self._no()

    async def discard_journals(self, ids: Sequence[int]) -> None:
        """See `Driver`."""
        self._no()

    async def check_journal(self, journal_id: int) -> bool:
        """See `Driver`."""
        self._no()

    async def walk(self) -> AsyncIterator[tuple[str, int]]:
        """See `Driver`."""
        self._no()
        yield "", 0
