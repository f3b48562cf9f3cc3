"""What jobs and commands ask of the layout *objects* beside blobs: journals, and reading all of it again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from itertools import groupby
from typing import ParamSpec, TypeVar

from storage_drivers.base import Buffer
from storage_drivers.blobs.footer import part_id
from storage_drivers.blobs.rereading import next_piece, reread_file, reread_pack
from storage_drivers.errors import BlobDamaged, BlobMissing, DriverError
from storage_drivers.journaling import Journaling
from storage_drivers.names import number_of
from storage_drivers.objects.common import Common
from storage_drivers.objects.contents import Contents
from storage_drivers.objects.journals import Journals
from storage_drivers.packs.reader import place_of

P = ParamSpec("P")
T = TypeVar("T")


class Upkeep(Common, Journaling):
    """A part of the driver."""

    @property
    def _written(self) -> Journals:
        return self._journals

    def _unlink_all(self, paths: Sequence[str]) -> int:
        raise NotImplementedError

    async def _patiently(self, locator: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        raise NotImplementedError

    async def discard_journals(self, ids: Sequence[int]) -> None:
        """Unlink journals."""
        await self._hop(self._unlink_all, [self._names.journal(journal_id) for journal_id in ids])

    async def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        """Read a blob again, past the page cache. Raises StoreGone when it is missing because the store is."""
        try:
            async for count in self._reread(locator, take):
                yield count
        except BlobMissing:
            await self._hop(self._check_mounted)
            raise

    async def _reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        blob_id = number_of(locator)
        shape = await self._patiently(locator, self._files.shape, partial(self._names.blob, blob_id), blob_id, locator)
        for part in range(shape.parts):
            pieces = reread_file(self._names.blob(blob_id, part), part_id(blob_id, part), locator)
            size = 0
            while (count := await self._hop(next_piece, pieces, take)) is not None:
                size += count
                yield count
            if size != shape.size_of(part):
                raise BlobDamaged(f"{locator}: part {part} has {size} bytes of {shape.size_of(part)}")

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        """Read records again, past the page cache. Raises StoreGone when some are missing because the store is."""
        return await self._hop(self._reread_records, locators, take)

    def _reread_records(self, locators: Sequence[str], take: Callable[[int, Buffer], None]) -> dict[int, DriverError]:
        errors: dict[int, DriverError] = {}
        places = sorted((place_of(locator), number) for number, locator in enumerate(locators))
        for pack, some in groupby(places, lambda one: one[0].pack):
            reread_pack(self._names.pack(pack), pack, list(some), take, errors)
        if any(isinstance(error, BlobMissing) for error in errors.values()):
            self._check_mounted()
        return errors

    async def empty(self) -> bool:
        """Look for any file of ours."""
        return await self._hop(lambda: self.contents().empty)

    def contents(self) -> Contents:
        """All that lies in the store, to be read without an index. Blocks."""
        return Contents(self._root)
