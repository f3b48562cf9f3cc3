"""What every driver without packs answers: each body is an object of its own, and of packs there are none.

A new driver inherits it and writes only what its store can do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from storage_drivers.base import Append, Buffer, ClaimedRecord, PackBook, PackFile
from storage_drivers.errors import BlobMissing, DriverError, StoreFailed


class WithoutPacks:
    """Answers whatever `Driver` asks of packs. `capabilities.append_limit` stays 0, so nothing is ever appended."""

    # writing
    def open_packs(self, book: PackBook) -> None:
        """There are none to open."""

    async def close_packs(self) -> None:
        """There are none to seal."""

    def append(self, entry: Append) -> None:
        """Raises StoreFailed: a body goes to `put`."""
        raise StoreFailed("this store has no packs")

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        """Nothing lies in a pack, so nothing is moved."""
        return {}

    # names
    def packed(self, locator: str) -> tuple[int, int] | None:
        """No blob lies in a pack."""
        return None

    def pack_locator(self, pack_id: int) -> str:
        """Raises StoreFailed."""
        raise StoreFailed("this store has no packs")

    def whole_pack(self, locator: str) -> int:
        """No locator is that of a pack."""
        return 0

    def pack_prefix(self, pack_id: int) -> str:
        """Raises StoreFailed."""
        raise StoreFailed("this store has no packs")

    # looking
    async def pack_file(self, pack_id: int) -> PackFile | None:
        """There is none."""
        return None

    async def packs(self) -> AsyncIterator[int]:
        """None."""
        none: tuple[int, ...] = ()
        for pack_id in none:
            yield pack_id

    async def claimed(self, pack_id: int, offset: int, limit: int) -> tuple[list[ClaimedRecord], int]:
        """No records."""
        return [], 0

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        """Every record is missing."""
        return {number: BlobMissing(locator) for number, locator in enumerate(locators)}

    async def forget_unlinked(self) -> None:
        """Nothing is kept open."""
