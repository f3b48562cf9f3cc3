"""The journal writer: it writes commits into journals beside the data.

It writes shortly after the commits and nothing waits for it: a lost index loses the commits that are not journaled yet.
A batch of changes becomes one synced record, and only then the watermark moves. When most of the journals is out of
date, all current rows are written again as a snapshot, a slice each round, and older journals are deleted.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

import orjson
from xxhash import xxh3_64_intdigest

from sluice_s3.app.crash import crash_point
from sluice_s3.app.encryption.keyring import parse_ring_number
from sluice_s3.app.index.journals.queries import SCAN_START, ScanPosition
from sluice_s3.app.index.journals.rows import KEYRING, KEYRING_JOURNALED, SETTLED, WHOLE, Changes, Journal
from sluice_s3.app.index.sql.transaction import of_store
from sluice_s3.app.jobs.journals.health import JournalHealth
from sluice_s3.app.jobs.journals.position import require_current
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.journals.encoding import CHANGES, END, SNAPSHOT, SUPPLEMENT, RecordHeader, encode
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.base import JournalRecord
from sluice_s3.storage_drivers.errors import StoreFull

logger = logging.getLogger("sluice.jobs")

SETTINGS_CHECK_SECONDS = 60.0
"""Seconds after which accounts, keys and buckets are compared although the epoch did not change."""
RETAINED_MS = 90_000
"""Minimum milliseconds that tombstones stay in the index.

They contradict recovery headers without a journal record. Before they go, the journals have a settled number that does.
"""
MIN_SNAPSHOT_ROWS = 50_000
MAX_JOURNALS = 64
JOURNAL_BYTES = 256 << 20
IDLE_COMMITS = 10_000
"""Maximum commit sequence numbers beyond the watermark to reread in each round while none of them is the store's."""
SLICE_SECONDS = 0.3
"""Seconds of a round that a snapshot may take."""
NO_BOUND = 1 << 63

Records = AsyncGenerator[tuple[list[JournalRecord], int], None]


async def other_stores_watermark(store: Store) -> int:
    """Return the number up to which other stores' journals allow queued discards.

    Journals that lack changes still reference bodies that were discarded later. They matter where objects of a storage
    class lie on this store.
    """
    bound = NO_BOUND
    for other in store.all.values() if store.name in store.classes.values() else ():
        if other is not store and (await store.index.journal_lag(other.name))[0]:
            bound = min(bound, await store.index.watermark(other.name))
    return bound


class JournalWriter:
    """Writer of one store's journals, for its buckets.

    `now` returns milliseconds since the epoch. `retained` is the number of milliseconds that tombstones stay.
    """

    def __init__(
        self, store: Store, now: Callable[[], int] = lambda: time.time_ns() // 1_000_000, retained: int = RETAINED_MS
    ) -> None:
        self._store = store
        self._name = store.name
        self._now = now
        self._retained = retained
        self._journals: dict[int, Journal] | None = None
        self._current: Journal | None = None
        self._watermark = 0
        self._idle_until = 0
        """No commit is between the watermark and this number of the commit sequence."""
        self._completed = 0
        """All uploads that were completed up to this number are journaled."""
        self._next_completed: tuple[int, int] | None = None
        """A number that `_completed` becomes once everything up to another number is journaled."""
        self._journaled_at = 0
        self._generation = -1
        self._settings = 0
        self._settings_seen = 0.0
        self._keyring = 0
        self._settled = 0
        self._watermark_moves: deque[tuple[int, int]] = deque()
        """Milliseconds of the monotonic clock, and the new watermark."""
        self._full = False
        self._snapshot_requested = False
        self._rows_to_check = MIN_SNAPSHOT_ROWS
        self._snapshot: tuple[Journal, Records] | None = None
        self.health = JournalHealth(store)

    def bound(self) -> int:
        """Return the number up to which the journals allow queued discards.

        Journals still reference bodies that were discarded later. When the store has no space for journals, all
        discards proceed: otherwise space would never be freed.
        """
        return NO_BOUND if self._full else max(self._watermark, self._idle_until)

    def request_snapshot(self) -> None:
        """Write everything again with the next round: a journal is damaged."""
        self._snapshot_requested = True

    async def run_once(self) -> int:
        """Journal the commits since the last call; return how many rows."""
        try:
            if self._journals is None:
                await self._load()
            written = await self._write_changes()
            self._full = False
            await self._continue_snapshot()
            await self.health.recovered()
        except BaseException as error:
            self._full = isinstance(error.__cause__, StoreFull)
            await self._start_over()
            await self.health.failed(error)
            raise
        return written

    async def _load(self) -> None:
        index = self._store.index
        position = await require_current(self._store)
        if position.cut:
            logger.warning("journals of store %s: %d are cut off: all is written again", self._name, len(position.cut))
            self._snapshot_requested = True
        self._watermark = await index.watermark(self._name)
        self._settled = int(await index.note(of_store(SETTLED, self._name)) or 0)
        self._completed, self._next_completed = 0, None  # the previous writer may have died between two batches
        found = await index.journals(self._name)
        await self._discard([journal for journal in found if journal.snapshot == 1])
        self._journals = {journal.id: journal for journal in found if journal.snapshot != 1}

    async def _start_over(self) -> None:
        """Close a journal that failed; nothing more is written to it."""
        current, self._current = self._current, None
        self._journals = None
        self._settings = 0
        snapshot, self._snapshot = self._snapshot, None
        if snapshot is not None:
            await snapshot[1].aclose()
        for journal in (current, snapshot and snapshot[0]):
            if journal is not None:
                await self._store.driver.end_journal(journal.id)

    # changes
    async def _write_changes(self) -> int:
        written = 0
        while True:
            journaled_at = self._now()
            changes = await self._store.index.changes(self._watermark, store=self._name, completed=self._completed)
            # Not before: a reader of a number relies on the bucket, and its store, as they were up to that number.
            settings = await self._changed_settings()
            if not changes.number and settings is None and changes.until < self._watermark + IDLE_COMMITS:
                self._idle_until = changes.until
                self._note_completed(changes)
                return written
            if changes.more:  # what follows these changes may have been committed long ago
                journaled_at = self._journaled_at
            header = RecordHeader(CHANGES, self._watermark, changes.until, journaled_at)
            records: list[JournalRecord] = []
            if changes.uploads:
                supplement = header._replace(kind=SUPPLEMENT)
                records = [record async for record in self._pieces(supplement, changes.uploads)]
            self._settle()
            fields = {"settled": str(self._settled), "versions": changes.versions, "removals": changes.removals}
            if settings is not None:
                fields["settings"] = settings
            await self._append([*records, encode(header, **fields)], changes.number)
            if settings is not None:
                await self._note_keyring(settings)
            self._journaled_at = journaled_at
            written += changes.number
            if not changes.more:
                self._note_completed(changes)
                return written

    def _note_completed(self, changes: Changes) -> None:
        """Note that everything up to `changes.until` is journaled.

        Rows of uploads of that time may be numbered up to `changes.newest`.
        """
        until, newest = self._next_completed or (changes.until, changes.newest)
        if changes.until >= newest:
            self._completed, self._next_completed = until, None
        else:
            self._next_completed = until, newest

    async def _changed_settings(self) -> str | None:
        """Return accounts, keys and buckets if they differ from what was journaled last."""
        index = self._store.index
        generation = index.generation
        now = time.monotonic()
        if generation == self._generation and self._settings and now < self._settings_seen + SETTINGS_CHECK_SECONDS:
            return None
        text = await index.settings_rows()
        digest = xxh3_64_intdigest(text.encode()) | 1
        self._settings_seen, self._generation = now, generation
        if digest == self._settings:
            return None
        self._settings = digest
        return text

    async def _note_keyring(self, settings: str) -> None:
        """Note which key ring is journaled: its new keys are not used before."""
        number = parse_ring_number(orjson.loads(settings)[KEYRING] or "")
        if number != self._keyring:
            await self._store.index.set_note(of_store(KEYRING_JOURNALED, self._name), str(number))
            self._keyring = number

    async def _pieces(self, header: RecordHeader, uploads: list[int] | None) -> AsyncGenerator[JournalRecord, None]:
        """Yield records of completed uploads (all without `uploads`) and of their pieces."""
        index = self._store.index
        if uploads is not None:
            yield encode(header, uploads=await index.upload_rows(uploads))
        else:
            after: int | None = 0
            while after is not None:
                rows, after = await index.upload_rows_after(after, self._name)
                yield encode(header, uploads=rows)
        position: ScanPosition | None = SCAN_START
        while position is not None:
            rows, position = await index.piece_rows(uploads, position, self._name)
            yield encode(header, pieces=rows)

    async def _append(self, records: list[JournalRecord], rows: int) -> None:
        """Write records of changes, the last of which states their end, and move the watermark."""
        assert self._journals is not None
        current = self._current
        if current is not None and current.bytes > JOURNAL_BYTES:
            await self._end_current()
            current = None
        if current is None:
            current = Journal(await self._store.index.open_journal(0, self._name), 0, 0, 0, self._name)
            self._journals[current.id] = current
        until = records[-1].number
        await self._store.index.announce(self._name, self._watermark, until)
        crash_point("decisions.announced")
        current = await self._write(current, records, rows)
        crash_point("decisions.written")
        await _finish(self._store.index.advance_watermark(current, until, self._settled))
        crash_point("decisions.moved")
        self._watermark_moves.append((_elapsed_ms(), until))
        self._watermark = until
        self._current = self._journals[current.id] = current

    def _settle(self) -> None:
        """Settle what was journaled long enough ago: every later write names a greater drawn number."""
        latest = _elapsed_ms() - self._retained
        while self._watermark_moves and self._watermark_moves[0][0] <= latest:
            self._settled = max(self._settled, self._watermark_moves.popleft()[1])

    async def _write(self, journal: Journal, records: list[JournalRecord], rows: int) -> Journal:
        with translate_driver_errors():
            length = await self._store.driver.write_journal(journal.id, records)
        return journal._replace(bytes=length, rows=journal.rows + rows)

    async def _end_current(self) -> None:
        if self._current is not None:
            with translate_driver_errors():
                await self._store.driver.end_journal(self._current.id)
            self._current = None

    # snapshots
    async def _continue_snapshot(self) -> None:
        assert self._journals is not None
        if self._snapshot is None:
            if not await self._is_snapshot_due():
                return
            await self._end_current()  # later changes go into a journal that stays
            journal = Journal(await self._store.index.open_journal(1, self._name), 1, 0, 0, self._name)
            self._snapshot = (
                journal,
                self._read_snapshot(RecordHeader(SNAPSHOT, 0, self._watermark, self._journaled_at)),
            )
        journal, batches = self._snapshot
        deadline = time.monotonic() + SLICE_SECONDS
        while time.monotonic() < deadline:
            try:
                records, rows = await anext(batches)
            except StopAsyncIteration:
                await self._end_snapshot(journal)
                return
            journal = await self._write(journal, records, rows)
            self._snapshot = journal, batches

    async def _is_snapshot_due(self) -> bool:
        assert self._journals is not None
        if self._snapshot_requested or len(self._journals) > MAX_JOURNALS:
            self._snapshot_requested = False
            return True
        if await self._store.index.snapshot_is_due(self._name, max(self._watermark, self._idle_until)):
            return True
        rows = sum(journal.rows for journal in self._journals.values())
        if rows < self._rows_to_check:
            return False
        threshold = 2 * await self._store.index.versions_count(self._name) + MIN_SNAPSHOT_ROWS
        self._rows_to_check = rows + MIN_SNAPSHOT_ROWS + max(threshold - rows, 0) // 2
        return rows > threshold

    async def _read_snapshot(self, header: RecordHeader) -> Records:
        """Yield every row up to the watermark as it is now.

        Later changes of these rows are journaled as changes.
        """
        index = self._store.index
        after, more, records = 0, True, 1
        # Settings go at both ends: without the buckets no other row has a meaning.
        yield [encode(header, settings=await index.settings_rows())], 0
        while more:
            changes = await index.changes(after, header.until, self._name)
            after, more = changes.until, changes.more
            records += 1
            yield [encode(header, versions=changes.versions, removals=changes.removals)], changes.number
        async for record in self._pieces(header, None):
            records += 1
            yield [record], 0
        # A row with a newer number since the watermark is journaled as a change only, and older journals are deleted
        # now.
        await self._write_changes()
        settings = await index.settings_rows()
        last = {"settled": str(self._settled), "settings": settings, "records": str(records)}
        yield [encode(header._replace(kind=END), **last)], 0

    async def _end_snapshot(self, journal: Journal) -> None:
        assert self._journals is not None
        with translate_driver_errors():
            await self._store.driver.end_journal(journal.id)
        self._snapshot = None
        journal = journal._replace(snapshot=WHOLE)
        await self._store.index.set_journal(journal)
        crash_point("decisions.snapshot")
        older = [replaced for number, replaced in self._journals.items() if number < journal.id]
        self._journals[journal.id] = journal
        await self._discard(older)
        for replaced in older:
            del self._journals[replaced.id]
        logger.info("journals: a snapshot of %d rows replaces %d journals", journal.rows, len(older))

    async def _discard(self, journals: list[Journal]) -> None:
        if not journals:
            return
        with translate_driver_errors():
            await self._store.driver.discard_journals([journal.id for journal in journals])
        await self._store.index.forget_journals([journal.id for journal in journals])


def _elapsed_ms() -> int:
    return time.monotonic_ns() // 1_000_000


async def _finish(commit: Coroutine[Any, Any, None]) -> None:
    """Wait for a commit, also when cancelled.

    The commit takes place anyway, and the last round reads what it changed.
    """
    task = asyncio.create_task(commit)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
