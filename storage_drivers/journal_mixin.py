"""The journal calls of a driver, in its threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from typing import Protocol

from sluice_s3.storage_drivers.errors import BlobMissing
from sluice_s3.storage_drivers.pooled import ThreadPoolMixin
from sluice_s3.storage_drivers.types import JournalRecord

RECORDS_AT_ONCE = 64
"""Records of a journal that are read in one call to a thread."""


class JournalFiles(Protocol):
    """The journals of one store.

    Methods block, raise DriverError, and are called by one thread at a time.
    """

    def append(self, journal_id: int, records: Sequence[JournalRecord]) -> int:
        """See `Driver.write_journal`."""
        ...

    def end(self, journal_id: int) -> None:
        """See `Driver.end_journal`."""
        ...

    def read(self, journal_id: int) -> Iterator[JournalRecord | None]:
        """See `Driver.read_journal`."""
        ...

    def sizes(self) -> dict[int, int]:
        """See `Driver.journal_sizes`."""
        ...

    def tail(self, journal_id: int, length: int) -> Iterator[JournalRecord | None]:
        """See `Driver.journal_tail`."""
        ...

    def discard(self, ids: Sequence[int]) -> None:
        """See `Driver.discard_journals`."""
        ...


def _next_records(records: Iterator[JournalRecord | None]) -> list[JournalRecord | None]:
    return list(islice(records, RECORDS_AT_ONCE))


class JournalMixin(ThreadPoolMixin):
    """The journal methods of a driver: see `storage_drivers.base.Driver`."""

    @property
    def _written(self) -> JournalFiles:
        raise NotImplementedError

    async def write_journal(self, journal_id: int, records: Sequence[JournalRecord]) -> int:
        """Append records to a journal, as durable as declared."""
        return await self._run_in_thread(self._written.append, journal_id, records)

    async def end_journal(self, journal_id: int) -> None:
        """Close a journal for writing."""
        await self._run_in_thread(self._written.end, journal_id)

    async def discard_journals(self, ids: Sequence[int]) -> None:
        """Remove journals."""
        await self._run_in_thread(self._written.discard, ids)

    async def journal_sizes(self) -> dict[int, int]:
        """Return the journals, and the bytes of each."""
        return await self._run_in_thread(self._written.sizes)

    async def read_journal(self, journal_id: int) -> AsyncIterator[JournalRecord | None]:
        """Yield all records of a journal, read some at a time."""
        records = self._written.read(journal_id)
        while some := await self._run_in_thread(_next_records, records):
            for record in some:
                yield record

    async def journal_tail(self, journal_id: int, length: int) -> list[JournalRecord | None]:
        """Return the records behind the first `length` bytes of a journal, without their bodies."""
        return await self._run_in_thread(self._tail, journal_id, length)

    def _tail(self, journal_id: int, length: int) -> list[JournalRecord | None]:
        found = self._written.tail(journal_id, length)
        return [None if record is None else record._replace(body=b"") for record in found]

    async def check_journal(self, journal_id: int) -> bool:
        """Return whether every record of a journal is whole."""
        return await self._run_in_thread(self._journal_is_whole, journal_id)

    def _journal_is_whole(self, journal_id: int) -> bool:
        try:
            return all(record is not None for record in self._written.read(journal_id))
        except BlobMissing:
            return True
