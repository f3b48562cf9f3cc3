"""Compaction: it frees the space of mostly dead packs by moving their live records.

A pack is deleted only when every byte of it is counted dead. Bytes are counted when a blob is discarded, when its
record is moved (in the transaction that rewrites its rows), or when a scan of all rows finds no reference: a pack of a
dead writer is counted that way, once. Nothing is stored between two runs: after a crash a pack is begun again.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import CommitUnknown, DataDamaged, DomainError
from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.index.reclaim.rows import BlobReference, PackReferences, RecordMove
from sluice_s3.app.index.schema.tables import SEALED, SWEPT
from sluice_s3.app.jobs.pacing import Pacer, never_busy
from sluice_s3.app.store import recovery_headers
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.jobs")

RECORDS_PER_MOVE = 128
"""Records whose rows are rewritten in one transaction: some milliseconds of the index's write lock."""
BYTES_PER_MOVE = 4 << 20
"""Bytes that are moved before the rows are rewritten."""
LAG_SECONDS = 600.0
"""Seconds after which compaction does not yield to requests: at least half of what waits for it is dead."""
SCAN_SECONDS = 10.0
"""Seconds between two reads of the list of packs."""
BLOCK_BYTES = 4096
"""A pack that would free less than this stays."""
REFERENCES_PER_SCAN = 50_000
"""Rows that one scan of all rows returns at most; the next scan continues."""
MAX_REFERENCES = 1000
"""A record with more references stays where it is: all its rows would have to be rewritten at once."""
PACKS_PER_RECOUNT = 256
"""Packs that one scan of all rows counts."""
SCAN_PAUSE_FACTOR = 20
"""A scan of all rows is repeated only after this many times its own duration: 5 % of one thread."""
MAX_WAIT_SECONDS = 3600.0
"""Longest seconds between scans of all rows that found nothing to do."""


class Record(NamedTuple):
    """A record with its references."""

    locator: str
    pack: int
    total: int
    holders: tuple[BlobReference, ...]


class Compactor:
    """Compaction of at most `rate` bytes a second, at the pace of `app.jobs.pacing`.

    `count` is called with the bytes moved and freed. `discard_seconds` is how long a discarded blob may wait for its
    removal, the usual way for a byte to become dead: scans of all rows give it time. `busy` says whether requests are
    being answered.
    """

    def __init__(
        self,
        store: Store,
        rate: int,
        discard_seconds: float,
        count: Callable[[int, int], None],
        now: Callable[[], float] = time.monotonic,
        busy: Callable[[], bool] = never_busy,
    ) -> None:
        self._store = store
        self._index = store.index
        self._driver = store.driver
        self._rate = rate
        self._count = count
        self._now = now
        self._list_interval = min(SCAN_SECONDS, discard_seconds)
        self._shortest_wait = 2 * discard_seconds
        self._listed_at = -SCAN_SECONDS
        self._pacer = Pacer(busy, rate, most_lag=LAG_SECONDS, now=now)
        self._moved_bytes = 0
        """Bytes moved in this step."""
        self._skipped: dict[int, int] = {}
        """Packs that are not worth it, or failed, with their dead bytes at that time."""
        self._chosen: deque[Pack] = deque()
        self._current_pack: Pack | None = None
        self._offset = 0
        self._pending: deque[Record] = deque()
        self._moved: dict[int, int] = {}
        """Bytes moved out of each pack that is not deleted yet."""
        self._awaiting_scan: dict[int, Pack] = {}
        """Packs whose recovery headers were all followed, and that are not all dead yet."""
        self._swept: list[Pack] = []
        """Packs of dead writers that are not counted yet."""
        self._wait = self._shortest_wait
        self._next_scan = now() + self._shortest_wait
        self._dead_copies: list[tuple[int, int]] = []
        self._unreadable: set[str] = set()
        """Unreadable records of packs in `_awaiting_scan`: left to scrub and not tried again."""

    async def run_once(self) -> None:
        """Do all that there is to do now. Raises DomainError; the rest is done at another time."""
        began = started = self._now()
        if self._dead_copies:
            dead_copies, self._dead_copies = self._dead_copies, []
            await self._index.count_dead(dead_copies)
        while await self._step():
            ended = self._now()
            moved, self._moved_bytes = self._moved_bytes, 0
            await self._pacer.wait(ended - started, moved, lag=ended - began)
            started = self._now()

    async def _step(self) -> bool:
        """Move one group of records, or scan once.

        Returns False when there is nothing to do now.
        """
        if self._pending or self._current_pack is not None:
            if self._pending:
                await self._move([self._pending.popleft() for _ in range(min(RECORDS_PER_MOVE, len(self._pending)))])
            else:
                await self._read_records()
            return True
        if self._chosen:
            await self._start_pack(self._chosen.popleft())
            return True
        if self._now() >= self._listed_at + self._list_interval:
            self._listed_at = self._now()
            await self._choose_packs()
            if self._chosen:
                return True
        if self._now() < self._next_scan:
            return False
        if self._swept:
            await self._recount()
        elif self._awaiting_scan:
            await self._scan()
        return bool(self._pending)

    # choosing

    async def _choose_packs(self) -> None:
        """Retire dead packs, and choose the packs that are worth moving."""
        own_packs = [pack for pack in await self._index.packs() if pack.store == self._store.name]
        self._swept = [pack for pack in own_packs if pack.sealed == SWEPT][:PACKS_PER_RECOUNT]
        sealed = [pack for pack in own_packs if pack.sealed == SEALED]
        by_id = {pack.id: pack for pack in sealed}
        self._awaiting_scan = {number: by_id[number] for number in self._awaiting_scan if number in by_id}
        self._skipped = {number: dead for number, dead in self._skipped.items() if number in by_id}
        self._moved = {number: moved for number, moved in self._moved.items() if number in by_id}
        for pack in sealed:
            if self._live_bytes(pack) <= 0:
                await self._retire(pack.id)
        if not self._rate:
            return
        candidates = [
            pack
            for pack in sealed
            if 0 < self._live_bytes(pack) <= pack.dead
            and pack.id not in self._awaiting_scan
            and self._skipped.get(pack.id) != pack.dead
        ]
        self._chosen.extend(sorted(candidates, key=self._live_bytes))

    def _live_bytes(self, pack: Pack) -> int:
        """Return the bytes that rows may reference: never fewer than they do."""
        return pack.size - self._driver.capabilities.pack_overhead - pack.dead

    async def _start_pack(self, pack: Pack) -> None:
        """Begin a pack if no more bytes must move than are freed.

        Punched holes were freed before.
        """
        with translate_driver_errors():
            file = await self._driver.pack_file(pack.id)
        live = self._live_bytes(pack)
        if file is None or file.allocated - live < max(live, BLOCK_BYTES):
            self._skipped[pack.id] = pack.dead
            return
        self._current_pack, self._offset = pack, 0

    # moving

    async def _read_records(self) -> None:
        """Read the pack's next records; those that their headers find referenced wait to be moved."""
        assert self._current_pack is not None
        pack = self._current_pack
        try:
            with translate_driver_errors():
                records, self._offset = await self._driver.list_records(pack.id, self._offset, RECORDS_PER_MOVE)
        except DataDamaged:
            self._skipped[pack.id] = pack.dead
            self._current_pack = None
            return
        totals = {record.locator: record.total for record in records}
        hints = [recovery_headers.reference_hint(record.locator, record.recovery_header) for record in records]
        holders = await self._index.find_holders([hint for hint in hints if hint is not None])
        self._pending.extend(
            Record(locator, pack.id, totals[locator], references) for locator, references in holders.items()
        )
        if not self._offset:
            self._current_pack = None
            self._awaiting_scan[pack.id] = pack
            self._wait = self._shortest_wait
            self._next_scan = max(self._next_scan, self._now() + self._wait)
            self._listed_at = -SCAN_SECONDS  # the pack may be all dead now

    async def _move(self, records: list[Record]) -> None:
        first, size = 0, 0
        for position, record in enumerate(records):
            size += record.total
            if size >= BYTES_PER_MOVE:
                await self._move_group(records[first : position + 1])
                first, size = position + 1, 0
        if first < len(records):
            await self._move_group(records[first:])

    async def _move_group(self, records: list[Record]) -> None:
        with translate_driver_errors():
            copies = await self._driver.move([record.locator for record in records])
        crash_point("compact.appended")
        moves = []
        for locator, pack, total, holders in records:
            location = self._driver.packed(copies.get(locator, ""))
            if location is not None:
                moves.append(RecordMove(locator, copies[locator], pack, location[0], total, holders))
            else:
                self._unreadable.add(locator)
        if len(moves) < len(records):
            logger.warning("compaction: %d records cannot be read and stay where they are", len(records) - len(moves))
        self._moved_bytes += sum(move.total for move in moves)
        try:
            moved_flags = await self._index.move_records(moves)
        except CommitUnknown:
            raise
        except DomainError:
            self._dead_copies += [(move.new_pack, move.total) for move in moves]
            raise
        crash_point("compact.moved")
        for move, moved in zip(moves, moved_flags, strict=True):
            if moved:
                self._moved[move.old_pack] = self._moved.get(move.old_pack, 0) + move.total
        self._count(sum(move.total for move in moves), 0)

    # records that the headers did not find

    async def _recount(self) -> None:
        """Count the uncommitted bytes of dead writers.

        None of it can be committed later (law 5).
        """
        by_prefix = {self._driver.pack_prefix(pack.id): pack for pack in self._swept}
        started = self._now()
        live = await self._index.referenced_bytes(list(by_prefix), self._size_of)
        self._next_scan = self._now() + max(self._shortest_wait, SCAN_PAUSE_FACTOR * (self._now() - started))
        self._swept = []
        for prefix, pack in by_prefix.items():
            dead = pack.size - self._driver.capabilities.pack_overhead - live.get(prefix, 0)
            await self._index.correct_dead(pack.id, pack.dead, max(dead, 0))
        crash_point("compact.counted")
        self._listed_at = -SCAN_SECONDS

    def _size_of(self, locator: str) -> int:
        location = self._driver.packed(locator)
        return location[1] if location is not None else 0

    async def _scan(self) -> None:
        """Scan all rows for references to some packs.

        Referenced records are copied, the rest is counted dead.
        """
        packs = list(self._awaiting_scan.values())
        by_prefix = {self._driver.pack_prefix(pack.id): pack for pack in packs}
        started = self._now()
        references = await self._index.find_references_in_packs(list(by_prefix), REFERENCES_PER_SCAN)
        elapsed = self._now() - started
        self._unreadable.intersection_update(references.holders)
        records = self._movable_records(references)
        self._pending.extend(records)
        referenced_packs = {self._pack_of(locator) for locator in (*references.holders, *references.others)}
        dead_packs = 0
        for pack in packs:
            if references.complete and pack.id not in referenced_packs and pack.id not in references.written:
                dead_packs += await self._mark_fully_dead(pack)
        self._wait = self._shortest_wait if records or dead_packs else min(2 * max(self._wait, 1.0), MAX_WAIT_SECONDS)
        self._next_scan = self._now() + max(self._wait, SCAN_PAUSE_FACTOR * elapsed)
        self._listed_at = -SCAN_SECONDS

    def _movable_records(self, references: PackReferences) -> list[Record]:
        records = []
        for locator, holders in references.holders.items():
            location = self._driver.packed(locator)
            if location is not None and len(holders) <= MAX_REFERENCES and locator not in self._unreadable:
                records.append(Record(locator, *location, holders))
        return records

    def _pack_of(self, locator: str) -> int:
        location = self._driver.packed(locator)
        return location[0] if location is not None else 0

    async def _mark_fully_dead(self, pack: Pack) -> bool:
        """Count a pack dead that no row references and that no writer can reference."""
        record_bytes = pack.size - self._driver.capabilities.pack_overhead
        counted = await self._index.correct_dead(pack.id, pack.dead, record_bytes)
        crash_point("compact.buried")
        return counted

    async def _retire(self, pack_id: int) -> None:
        with translate_driver_errors():
            file = await self._driver.pack_file(pack_id)
        await self._index.make_durable()
        overhead = self._driver.capabilities.pack_overhead
        if not await self._index.retire_pack(pack_id, overhead, self._driver.pack_locator(pack_id)):
            return
        crash_point("compact.retired")
        moved = self._moved.pop(pack_id, 0)
        self._awaiting_scan.pop(pack_id, None)
        self._count(0, max(file.allocated - moved, 0) if file is not None else 0)
