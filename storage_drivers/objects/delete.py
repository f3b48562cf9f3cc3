"""Deletion of blobs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from sluice_s3.storage_drivers.errors import map_errors
from sluice_s3.storage_drivers.layout import FILE, MAX_STRIPES, number_of, shard_of
from sluice_s3.storage_drivers.objects.common import ObjectsDriverBase
from sluice_s3.storage_drivers.packs.reader import PREFIX as PACKED
from sluice_s3.storage_drivers.packs.reader import parse_locator

SECOND_SUFFIX = ".1"
"""Suffix of the second part's file: while it exists, other parts may."""


class DeleteMixin(ObjectsDriverBase):
    """The delete methods of the driver.

    A blob's first file is deleted only after its other parts are certainly gone, since they are found by it.
    """

    async def discard(self, locator: str) -> None:
        """Unlink a blob's files. A record stays until its pack is compacted."""
        if locator.startswith(PACKED):
            parse_locator(locator)
            return
        path = self._names.find(locator)
        if locator.startswith(FILE):
            further = await self._run_in_thread(self._further_parts, [number_of(locator)])
            if further:
                await self._run_in_thread(self._unlink_all, further)
        await self._run_in_thread(self._unlink, path)

    async def discard_many(self, locators: Sequence[str]) -> None:
        """Unlink many blobs' files and whole packs, and punch records out of packs.

        Each directory is synced once. Raises StoreGone when files are missing because the store is.
        """
        paths = [self._names.find(locator) for locator in locators if not locator.startswith(PACKED)]
        blobs = [number_of(locator) for locator in locators if locator.startswith(FILE)]
        if blobs:
            further = [path for some in await self._spread(self._further_parts, blobs) for path in some]
            await self._spread(self._unlink_all, [path for path in further if not path.endswith(SECOND_SUFFIX)])
            await self._spread(self._unlink_all, [path for path in further if path.endswith(SECOND_SUFFIX)])
        if paths:
            gone = sum(await self._spread(self._unlink_listed, paths))
            if gone < len(paths):  # deleted by a process that was killed before its sync, or the mount is missing
                await self._run_in_thread(self._check_mounted)
        if len(paths) < len(locators):
            records = [locator for locator in locators if locator.startswith(PACKED)]
            if await self._run_in_thread(self._packs.punch, records):
                self._at("discard.punched")

    async def discard_id(self, blob_id: int) -> bool:
        """Unlink all files that a dead writer may have left under this id."""
        further = [self._names.blob(blob_id, part) for part in range(1, MAX_STRIPES)]
        gone = sum(await self._spread(self._unlink_all, further))
        return gone + await self._run_in_thread(self._unlink_all, [self._names.blob(blob_id)]) > 0

    def _further_parts(self, blob_ids: Iterable[int]) -> list[str]:
        """Return files that may exist beside the first ones.

        If a blob has any, its second part is deleted last.
        """
        found = []
        for blob_id in blob_ids:
            with map_errors():
                try:
                    os.lstat(self._names.blob(blob_id, 1))
                except FileNotFoundError:
                    continue
            found += [self._names.blob(blob_id, part) for part in range(MAX_STRIPES - 1, 0, -1)]
        return found

    def _unlink_all(self, paths: Sequence[str]) -> int:
        gone = [path for path in paths if self._unlink(path)]
        self._sync_directories(gone)
        return len(gone)

    def _unlink_listed(self, paths: Sequence[str]) -> int:
        """Unlink files that were there. A process may have been killed between its unlink and its sync of one."""
        gone = sum(map(self._unlink, paths))
        self._sync_directories(paths)
        return gone

    def _sync_directories(self, paths: Sequence[str]) -> None:
        syncs = {low: self._directory(low) for low in sorted({shard_of(path) for path in paths})}
        if any(syncs.values()):
            with map_errors():
                for directory in syncs.values():
                    if directory is not None:
                        directory.sync()
            self._at("discard.synced")

    def _unlink(self, path: str) -> bool:
        with map_errors():
            try:
                os.unlink(path)
            except FileNotFoundError:
                return False
        self._at("discard.unlinked")
        return True
