"""What the sweep, fsck and compaction ask of the packs of the layout *objects*."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Sequence

from storage_drivers.base import ClaimedRecord, PackFile
from storage_drivers.errors import BlobMissing, map_errors
from storage_drivers.names import DIRECTORIES, PACK_SUFFIX, WHOLE_PACK
from storage_drivers.objects.common import Common
from storage_drivers.packs.reader import PREFIX

NAME = re.compile("([0-9a-f]{16})" + re.escape(PACK_SUFFIX))


def packs_in(directory: str) -> list[int]:
    """The packs in a directory. Raises DriverError; blocks."""
    with map_errors():
        found = map(NAME.fullmatch, os.listdir(directory))
        return [int(name[1], 16) for name in found if name is not None]


class PackUpkeep(Common):
    """A part of the driver."""

    async def pack_file(self, pack_id: int) -> PackFile | None:
        """Bytes of a pack's file, and those that take up space."""
        return await self._hop(self._pack_file, pack_id)

    def _pack_file(self, pack_id: int) -> PackFile | None:
        found = self._found(pack_id)
        if found is None:  # and not because its mount is missing: what is taken for gone is forgotten
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

    async def claimed(self, pack_id: int, offset: int, limit: int) -> tuple[list[ClaimedRecord], int]:
        """Records of a pack with their claims."""
        return await self._hop(self._packs.claimed, pack_id, offset, limit)

    async def move(self, locators: Sequence[str]) -> dict[str, str]:
        """Write records again in a pack of those that were moved."""
        return await self._hop(self._packs.move, locators)

    async def forget_unlinked(self) -> None:
        """Close the descriptors of packs that were unlinked."""
        await self._hop(self._packs.forget_unlinked)

    async def packs(self) -> AsyncIterator[int]:
        """Every pack."""
        for low in range(DIRECTORIES):
            for pack_id in await self._hop(packs_in, self._names.directory(low)):
                yield pack_id

    def pack_locator(self, pack_id: int) -> str:
        """The locator of a whole pack."""
        return f"{WHOLE_PACK}{pack_id:016x}"

    def whole_pack(self, locator: str) -> int:
        """The pack behind such a locator."""
        return int(locator[len(WHOLE_PACK) :], 16) if locator.startswith(WHOLE_PACK) else 0

    def pack_prefix(self, pack_id: int) -> str:
        """The beginning of the locators of a pack's records."""
        return f"{PREFIX}{pack_id:x}."
