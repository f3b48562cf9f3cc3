"""The calls of a driver that are about its journals, in its threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from storage_drivers.errors import BlobMissing
from storage_drivers.pooled import Pooled
from storage_drivers.values import Decision


class WrittenJournals(Protocol):
    """The journals of one store. Methods block, raise DriverError, and are called by one thread at a time."""

    def append(self, journal_id: int, decisions: Sequence[Decision]) -> int: ...

    def end(self, journal_id: int) -> None: ...

    def read(self, journal_id: int) -> Iterator[Decision | None]: ...


class Journaling(Pooled):
    """A part of a driver: see `storage_drivers.base.Driver`."""

    @property
    def _written(self) -> WrittenJournals:
        raise NotImplementedError

    async def write_journal(self, journal_id: int, decisions: Sequence[Decision]) -> int:
        """Add records to a journal, as durable as declared."""
        return await self._hop(self._written.append, journal_id, decisions)

    async def end_journal(self, journal_id: int) -> None:
        """Write no more of a journal."""
        await self._hop(self._written.end, journal_id)

    async def check_journal(self, journal_id: int) -> bool:
        """Read a journal whole."""
        return await self._hop(self._journal_is_whole, journal_id)

    def _journal_is_whole(self, journal_id: int) -> bool:
        try:
            return all(record is not None for record in self._written.read(journal_id))
        except BlobMissing:
            return True
