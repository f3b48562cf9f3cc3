"""The base of all parts of a driver of the layout *objects*."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from sluice_s3.storage_drivers.base import Capabilities, Durability
from sluice_s3.storage_drivers.blobs.reader import BlobReader
from sluice_s3.storage_drivers.fsutil import CoalescedFsync
from sluice_s3.storage_drivers.health import check_store
from sluice_s3.storage_drivers.identity import Identity
from sluice_s3.storage_drivers.layout import ObjectsLayout
from sluice_s3.storage_drivers.objects.journals import Journals
from sluice_s3.storage_drivers.objects.mount_profile import MountProfile
from sluice_s3.storage_drivers.packs.manager import PackManager
from sluice_s3.storage_drivers.pooled import ThreadPoolMixin
from sluice_s3.storage_drivers.threads import StoreThreadPool

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")


class ObjectsDriverBase(ThreadPoolMixin):
    """Names, threads and readers. Created by `ObjectsDriver`."""

    capabilities: Capabilities
    identity: Identity | None
    _profile: MountProfile
    _root: Path
    _names: ObjectsLayout
    _threads: StoreThreadPool
    _files: BlobReader
    _packs: PackManager
    _journals: Journals
    _syncs: list[CoalescedFsync]
    _at: Callable[[str], None]

    async def _spread(self, call: Callable[[Sequence[S]], T], items: Sequence[S]) -> list[T]:
        """Call with shares of the items, in as many threads as the profile has parts."""
        shares = [items[first :: self._profile.parts] for first in range(min(self._profile.parts, len(items)))]
        return await asyncio.gather(*(self._run_in_thread(call, share) for share in shares))

    def _check_mounted(self) -> None:
        """Raise StoreGone unless the mounted store is the one of the start. Blocks."""
        if self.identity is not None:
            check_store(self._root, self.identity, write=False)

    def _directory(self, low: int) -> CoalescedFsync | None:
        """Return the syncs of a numbered directory; None on a store that is not durable.

        Only the low byte of the number counts.
        """
        return self._syncs[low & 0xFF] if self.capabilities.durability is Durability.FULL else None
