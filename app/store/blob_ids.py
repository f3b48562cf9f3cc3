"""Blob ids from ranges reserved in the index.

After a crash, the orphan sweeper looks up blobs by these ids.
"""

from __future__ import annotations

import asyncio

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.cluster.rows import IdRange
from sluice_s3.app.index.interface import Index

RANGE = 1024
"""Ids reserved at a time."""


class _Range:
    __slots__ = ("ids", "next", "unsettled")

    def __init__(self, ids: IdRange) -> None:
        self.ids = ids
        self.next = ids.first
        self.unsettled = 0


class BlobIds:
    """Source of blob ids.

    Every id taken is settled once its blob is committed or certainly gone. An id of unknown outcome is never settled:
    its range stays in the index for the orphan sweeper.
    """

    def __init__(self, index: Index, count: int = RANGE) -> None:
        self._index = index
        self._count = count
        self._current: _Range | None = None
        self._owner: dict[int, _Range] = {}
        self._lock = asyncio.Lock()

    async def take(self) -> int:
        """Return an id that is never used again.

        Raises Overloaded or StoreUnavailable when none can be reserved.
        """
        current = await self._range()
        taken = current.next
        current.next += 1
        current.unsettled += 1
        self._owner[taken] = current
        return taken

    async def take_for_record(self) -> int:
        """Return an id for a record of a pack.

        Such an id is not settled: the orphan sweeper looks for files only.
        """
        current = self._current
        if current is None or current.next > current.ids.last:
            current = await self._range()
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
        """Note that the blob of this id is committed or completely gone."""
        owner = self._owner.pop(blob_id)
        owner.unsettled -= 1
        if owner.unsettled == 0 and owner.next > owner.ids.last:
            await self._retire(owner)

    async def close(self) -> None:
        """Retire the current range if all ids taken from it are settled."""
        current = self._current
        if current is not None and current.unsettled == 0:
            self._current = None
            await self._retire(current)

    async def _retire(self, exhausted: _Range) -> None:
        """Delete a range from the index.

        Failure does not concern the caller that settled its last id.
        """
        try:
            await self._index.retire_range(exhausted.ids)
        except DomainError:
            pass  # the orphan sweeper looks for it
