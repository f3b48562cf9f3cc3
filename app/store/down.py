"""What stands for the driver of a store that is out of service: it says no to everything, at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import NoReturn

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
from storage_drivers.errors import DriverError, StoreSilent
from storage_drivers.identity import Identity


class Down:
    """Names and capabilities are those of `driver`, which is never called for anything that touches its mount."""

    def __init__(self, driver: Driver, reason: str) -> None:
        self._reason = reason
        self.capabilities: Capabilities = driver.capabilities
        self.identity: Identity | None = driver.identity
        self.probe: Probed | None = driver.probe
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
        self._no()

    async def close(self) -> None:
        """Nothing is open."""

    async def empty(self) -> bool:
        self._no()

    def running(self) -> list[object]:
        """Nothing runs."""
        return []

    @property
    def troubles(self) -> int:
        """There were none."""
        return 0

    @property
    def held(self) -> int:
        """Nothing is kept."""
        return 0

    def give_up(self, error: DriverError) -> None:
        """Nothing is under way."""

    def open_packs(self, book: PackBook) -> None:
        """None is opened."""

    async def close_packs(self) -> None:
        """None is open."""

    # writing
    def append(self, entry: Append) -> None:
        self._no()

    async def put(
        self,
        blob_id: int,
        source: Source,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        claim: Callable[[], bytes] = no_claim,
    ) -> str:
        self._no()

    # reading
    async def read(self, locator: str, offset: int, length: int) -> FileSlice | bytes:
        self._no()

    def read_now(self, locator: str, offset: int, length: int) -> bytes | None:
        """Never at once: `read` says why."""
        return None

    async def feed(self, locator: str, offset: int, length: int, take: Callable[[Buffer], None]) -> None:
        self._no()

    async def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        self._no()
        yield 0

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        self._no()

    # space
    async def discard(self, locator: str) -> None:
        self._no()

    async def discard_many(self, locators: Sequence[str]) -> None:
        self._no()

    async def discard_id(self, blob_id: int) -> bool:
        self._no()

    async def usage(self) -> Usage:
        self._no()

    async def forget_unlinked(self) -> None:
        """Nothing is open."""

    # packs
    async def pack_file(self, pack_id: int) -> PackFile | None:
        self._no()

    async def packs(self) -> AsyncIterator[int]:
        self._no()
        yield 0

    async def claimed(self, pack_id: int, offset: int, limit: int) -> tuple[list[ClaimedRecord], int]:
        self._no()

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        self._no()

    # journals
    async def write_journal(self, journal_id: int, decisions: Sequence[Decision]) -> int:
        self._no()

    async def end_journal(self, journal_id: int) -> None:
        """None is open."""

    async def discard_journals(self, ids: Sequence[int]) -> None:
        self._no()

    async def check_journal(self, journal_id: int) -> bool:
        self._no()

    async def walk(self) -> AsyncIterator[tuple[str, int]]:
        self._no()
        yield "", 0
