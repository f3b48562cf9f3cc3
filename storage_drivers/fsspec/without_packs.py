"""The pack methods of every driver without packs.

There each body is an object of its own. A new driver inherits this class and writes only what its store can do.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from sluice_s3.storage_drivers.base import AppendRequest, Buffer, PackFile, PackRegistry, RecordInfo
from sluice_s3.storage_drivers.errors import BlobMissing, DriverError, StoreFailed


class UnpackedMixin:
    """The pack methods of `Driver` for stores without packs.

    `capabilities.append_limit` stays 0, so nothing is ever appended.
    """

    # writing
    def open_packs(self, book: PackRegistry) -> None:
        """Do nothing: there are no packs."""

    async def close_packs(self) -> None:
        """Do nothing: there are no packs."""

    def append(self, entry: AppendRequest) -> None:
        """Raise StoreFailed: bodies go to `put`."""
        raise StoreFailed("this store has no packs")

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        """Return no locators: there are no packs."""
        return {}

    # names
    def packed(self, locator: str) -> tuple[int, int] | None:
        """Return None: no blob is in a pack."""
        return None

    def pack_locator(self, pack_id: int) -> str:
        """Raise StoreFailed."""
        raise StoreFailed("this store has no packs")

    def whole_pack(self, locator: str) -> int:
        """Return 0: no locator is a pack's."""
        return 0

    def pack_prefix(self, pack_id: int) -> str:
        """Raise StoreFailed."""
        raise StoreFailed("this store has no packs")

    # looking
    async def pack_file(self, pack_id: int) -> PackFile | None:
        """Return None: there are no packs."""
        return None

    async def packs(self) -> AsyncIterator[int]:
        """Yield nothing."""
        none: tuple[int, ...] = ()
        for pack_id in none:
            yield pack_id

    async def list_records(self, pack_id: int, offset: int, limit: int) -> tuple[list[RecordInfo], int]:
        """Return no records."""
        return [], 0

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        """Report every record as missing."""
        return {number: BlobMissing(locator) for number, locator in enumerate(locators)}

    async def close_unlinked(self) -> None:
        """Do nothing: nothing is open."""
