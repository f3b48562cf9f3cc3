"""Maintenance of the layout *objects*: journals, and reading all of it again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from itertools import groupby
from typing import ParamSpec, TypeVar

from sluice_s3.storage_drivers.base import Buffer
from sluice_s3.storage_drivers.blobs.footer import part_id
from sluice_s3.storage_drivers.blobs.verify import next_piece, verify_file, verify_pack
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, DriverError
from sluice_s3.storage_drivers.journal_mixin import JournalMixin
from sluice_s3.storage_drivers.layout import number_of
from sluice_s3.storage_drivers.objects.common import ObjectsDriverBase
from sluice_s3.storage_drivers.objects.journals import Journals
from sluice_s3.storage_drivers.objects.offline_reader import OfflineStoreReader
from sluice_s3.storage_drivers.packs.reader import parse_locator

P = ParamSpec("P")
T = TypeVar("T")


class MaintenanceMixin(ObjectsDriverBase, JournalMixin):
    """The journal and reread methods of the driver."""

    @property
    def _written(self) -> Journals:
        return self._journals

    def _unlink_all(self, paths: Sequence[str]) -> int:
        raise NotImplementedError

    async def _retry_missing(self, locator: str, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        raise NotImplementedError

    async def reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        """Read a blob again, past the page cache.

        Raises StoreGone when it is missing because the store is.
        """
        try:
            async for count in self._reread(locator, take):
                yield count
        except BlobMissing:
            await self._run_in_thread(self._check_mounted)
            raise

    async def _reread(self, locator: str, take: Callable[[Buffer], None] | None) -> AsyncIterator[int]:
        blob_id = number_of(locator)
        shape = await self._retry_missing(
            locator, self._files.shape, partial(self._names.blob, blob_id), blob_id, locator
        )
        for part in range(shape.parts):
            pieces = verify_file(self._names.blob(blob_id, part), part_id(blob_id, part), locator)
            size = 0
            while (count := await self._run_in_thread(next_piece, pieces, take)) is not None:
                size += count
                yield count
            if size != shape.size_of(part):
                raise BlobDamaged(f"{locator}: part {part} has {size} bytes of {shape.size_of(part)}")

    async def reread_records(
        self, locators: Sequence[str], take: Callable[[int, Buffer], None]
    ) -> dict[int, DriverError]:
        """Read records again, past the page cache.

        Raises StoreGone when some are missing because the store is.
        """
        return await self._run_in_thread(self._reread_records, locators, take)

    def _reread_records(self, locators: Sequence[str], take: Callable[[int, Buffer], None]) -> dict[int, DriverError]:
        errors: dict[int, DriverError] = {}
        locations = sorted((parse_locator(locator), number) for number, locator in enumerate(locators))
        for pack, some in groupby(locations, lambda one: one[0].pack):
            verify_pack(self._names.pack(pack), pack, list(some), take, errors)
        if any(isinstance(error, BlobMissing) for error in errors.values()):
            self._check_mounted()
        return errors

    async def empty(self) -> bool:
        """Return whether the store has no file of ours."""
        return await self._run_in_thread(lambda: self.contents().empty)

    def contents(self) -> OfflineStoreReader:
        """Return a reader of the whole store without an index. Blocks."""
        return OfflineStoreReader(self._root)
