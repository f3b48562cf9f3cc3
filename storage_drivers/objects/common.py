"""What every part of a driver of the layout *objects* has."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from storage_drivers.base import Capabilities, Durability
from storage_drivers.blobs.reader import BlobReader
from storage_drivers.files import SharedSync
from storage_drivers.identity import Identity
from storage_drivers.looking import look
from storage_drivers.names import Names
from storage_drivers.objects.journals import Journals
from storage_drivers.objects.recipe import Recipe
from storage_drivers.packs.packs import Packs
from storage_drivers.pooled import Pooled
from storage_drivers.threads import Threads

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")


class Common(Pooled):
    """Names, threads and readers. Made by `ObjectsDriver`."""

    capabilities: Capabilities
    identity: Identity | None
    _recipe: Recipe
    _root: Path
    _names: Names
    _threads: Threads
    _files: BlobReader
    _packs: Packs
    _journals: Journals
    _syncs: list[SharedSync]
    _at: Callable[[str], None]

    async def _spread(self, call: Callable[[Sequence[S]], T], items: Sequence[S]) -> list[T]:
        """Call with shares of the items, in as many threads at once as the recipe writes to at once."""
        shares = [items[first :: self._recipe.parts] for first in range(min(self._recipe.parts, len(items)))]
        return await asyncio.gather(*(self._hop(call, share) for share in shares))

    def _check_mounted(self) -> None:
        """Raise StoreGone unless the store that was started on is there. Blocks."""
        if self.identity is not None:
            look(self._root, self.identity, write=False)

    def _directory(self, low: int) -> SharedSync | None:
        """Syncs of the directory with this number (its low byte counts); None on a store that is not durable."""
        return self._syncs[low & 0xFF] if self.capabilities.durability is Durability.FULL else None
