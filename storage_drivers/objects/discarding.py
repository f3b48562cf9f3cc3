"""Gives the space of blobs back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from storage_drivers.errors import map_errors
from storage_drivers.names import FILE, MOST_PARTS, low_of, number_of
from storage_drivers.objects.common import Common
from storage_drivers.packs.reader import PREFIX as PACKED
from storage_drivers.packs.reader import place_of

SECOND = ".1"
"""How the file of the second part ends: while it is there, others may be."""


class Discarding(Common):
    """A part of the driver.

    A blob's first file goes when its other parts are gone for certain: it is by the first that they are found again.
    """

    async def discard(self, locator: str) -> None:
        """Unlink a blob's files. A record stays until its pack is compacted."""
        if locator.startswith(PACKED):
            place_of(locator)
            return
        path = self._names.find(locator)
        if locator.startswith(FILE):
            further = await self._hop(self._further_parts, [number_of(locator)])
            if further:
                await self._hop(self._unlink_all, further)
        await self._hop(self._unlink, path)

    async def discard_many(self, locators: Sequence[str]) -> None:
        """Unlink many blobs' files (and whole packs) and sync each directory once; punch records out of their packs.

        Raises StoreGone when some are missing because the store is.
        """
        paths = [self._names.find(locator) for locator in locators if not locator.startswith(PACKED)]
        blobs = [number_of(locator) for locator in locators if locator.startswith(FILE)]
        if blobs:
            further = [path for some in await self._spread(self._further_parts, blobs) for path in some]
            await self._spread(self._unlink_all, [path for path in further if not path.endswith(SECOND)])
            await self._spread(self._unlink_all, [path for path in further if path.endswith(SECOND)])
        if paths:
            gone = sum(await self._spread(self._unlink_all, paths))
            if gone < len(paths):  # by somebody who was killed behind it, or their mount is missing
                await self._hop(self._check_mounted)
        if len(paths) < len(locators):
            records = [locator for locator in locators if locator.startswith(PACKED)]
            if await self._hop(self._packs.punch, records):
                self._at("discard.punched")

    async def discard_id(self, blob_id: int) -> bool:
        """Unlink the files that a dead writer may have left under this id, however far it came."""
        further = [self._names.blob(blob_id, part) for part in range(1, MOST_PARTS)]
        gone = sum(await self._spread(self._unlink_all, further))
        return gone + await self._hop(self._unlink_all, [self._names.blob(blob_id)]) > 0

    def _further_parts(self, blob_ids: Iterable[int]) -> list[str]:
        """Files that may be there beside the first ones; of a blob that has such, the second goes last."""
        found = []
        for blob_id in blob_ids:
            with map_errors():
                try:
                    os.lstat(self._names.blob(blob_id, 1))
                except FileNotFoundError:
                    continue
            found += [self._names.blob(blob_id, part) for part in range(MOST_PARTS - 1, 0, -1)]
        return found

    def _unlink_all(self, paths: Sequence[str]) -> int:
        gone = [path for path in paths if self._unlink(path)]
        syncs = {low: self._directory(low) for low in sorted({low_of(path) for path in gone})}
        if any(syncs.values()):
            with map_errors():
                for directory in syncs.values():
                    if directory is not None:
                        directory.sync()
            self._at("discard.synced")
        return len(gone)

    def _unlink(self, path: str) -> bool:
        with map_errors():
            try:
                os.unlink(path)
            except FileNotFoundError:
                return False
        self._at("discard.unlinked")
        return True
