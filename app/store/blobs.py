"""Blob ids from ranges reserved in the index, so that the sweep after a crash asks for them by name (DESIGN §4)."""

from __future__ import annotations

import asyncio

from app.errors import DomainError, NotNow
from app.index.base import Index
from app.index.rows import IdRange

RANGE = 1024
"""Ids reserved at a time."""


class _Range:
    __slots__ = ("ids", "next", "unsettled")

    def __init__(self, ids: IdRange) -> None:
        self.ids = ids
        self.next = ids.first
        self.unsettled = 0


class BlobIds:
    """Hands out blob ids. Every id taken is settled once its blob is committed or gone for certain.

    An id of unknown outcome is never settled: its range stays in the index for the sweep.
    """

    def __init__(self, index: Index, count: int = RANGE) -> None:
        self._index = index
        self._count = count
        self._current: _Range | None = None
        self._owner: dict[int, _Range] = {}
        self._lock = asyncio.Lock()

    async def take(self) -> int:
        """An id that nothing else will ever use. Raises Overloaded or StoreUnavailable when none can be reserved."""
        current = await self._range()
        taken = current.next
        current.next += 1
        current.unsettled += 1
        self._owner[taken] = current
        return taken

    async def take_for_record(self) -> int:
        """An id for a record of a pack, which is not settled: the sweep asks for files only."""
        current = self._current
        if current is None or current.next > current.ids.last:
            current = await self._range()
        taken = current.next
        current.next += 1
        return taken

    def take_for_record_now(self) -> int:
        """The same without an await. Raises NotNow when a new range must be reserved."""
        current = self._current
        if current is None or current.next > current.ids.last:
            raise NotNow
        taken = current.next
        current.next += 1
        return taken

    async def _range(self) -> _Range:
        while (current := self._current) is None or current.next > current.ids.last:
            async with self._lock:
                if self._current is not current:
                    continue
                self._current = _Range(await self._index.reserve_ids(self._count))
                if current is not None and current.unsettled == 0:
                    await self._retire(current)
        return current

    async def settle(self, blob_id: int) -> None:
        """The blob of this id is committed, or nothing of it is left."""
        owner = self._owner.pop(blob_id)
        owner.unsettled -= 1
        if owner.unsettled == 0 and owner.next > owner.ids.last:
            await self._retire(owner)

    async def close(self) -> None:
        """Retire the current range if all of it that was taken is settled."""
        current = self._current
        if current is not None and current.unsettled == 0:
            self._current = None
            await self._retire(current)

    async def _retire(self, done: _Range) -> None:
        """Forget a range, which is of no matter to whoever settled the last of it."""
        try:
            await self._index.retire_range(done.ids)
        except DomainError:
            pass  # the sweep asks for it
