"""Pack methods for the sweep, fsck and compaction in the layout *objects*."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence

from sluice_s3.storage_drivers.base import PackFile, RecordInfo
from sluice_s3.storage_drivers.errors import BlobMissing, map_errors
from sluice_s3.storage_drivers.layout import DIRECTORIES, PACK_SUFFIX, WHOLE_PACK
from sluice_s3.storage_drivers.objects.common import ObjectsDriverBase
from sluice_s3.storage_drivers.packs.reader import PREFIX

NAME = re.compile("([0-9a-f]{16})" + re.escape(PACK_SUFFIX))


def packs_in(directory: str) -> list[int]:
    """Return the packs in a directory. Raises DriverError; blocks."""
    with map_errors():
        found = map(NAME.fullmatch, os.listdir(directory))
        return [int(name[1], 16) for name in found if name is not None]


class PackMaintenanceMixin(ObjectsDriverBase):
    """The pack methods of the driver."""

    async def pack_file(self, pack_id: int) -> PackFile | None:
        """Return the size of a pack's file, and its allocated bytes."""
        return await self._run_in_thread(self._pack_file, pack_id)

    def _pack_file(self, pack_id: int) -> PackFile | None:
        found = self._found(pack_id)
        if found is None:  # and not because the mount is missing: the index forgets deleted packs
            self._check_mounted()
            found = self._found(pack_id)
            self._check_mounted()
        return found

    def _found(self, pack_id: int) -> PackFile | None:
        try:
            with map_errors(committed=self.pack_locator(pack_id)):
                found = os.stat(self._names.pack(pack_id))
        except BlobMissing:
            return None
        return PackFile(found.st_size, found.st_blocks * 512)

    async def list_records(self, pack_id: int, offset: int, limit: int) -> tuple[list[RecordInfo], int]:
        """Return records of a pack with their headers."""
        return await self._run_in_thread(self._packs.list_records, pack_id, offset, limit)

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        """Copy records to a pack of moved records."""
        return await self._run_in_thread(self._packs.move, locators)

    async def close_unlinked(self) -> None:
        """Close the descriptors of deleted packs."""
        await self._run_in_thread(self._packs.close_unlinked)

    async def packs(self) -> AsyncIterator[int]:
        """Yield every pack."""
        for low in range(DIRECTORIES):
            for pack_id in await self._run_in_thread(packs_in, self._names.directory(low)):
                yield pack_id

    def pack_locator(self, pack_id: int) -> str:
        """Return the locator of a whole pack."""
        return f"{WHOLE_PACK}{pack_id:016x}"

    def whole_pack(self, locator: str) -> int:
        """Return the pack of such a locator."""
        return int(locator[len(WHOLE_PACK) :], 16) if locator.startswith(WHOLE_PACK) else 0

    def pack_prefix(self, pack_id: int) -> str:
        """Return the prefix of the locators of a pack's records."""
        return f"{PREFIX}{pack_id:x}."
