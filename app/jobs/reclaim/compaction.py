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
from sluice_s3.app.index.schema.tables import SEALED, SWEPT
from sluice_s3.app.index.upkeep_rows import BlobReference, Pack, PackReferences, RecordMove
from sluice_s3.app.store import recovery_headers
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.jobs")

RECORDS_PER_MOVE = 128
"""Records whose rows are rewritten in one transaction: some milliseconds of the index's write lock."""
BYTES_PER_MOVE = 4 << 20
"""Bytes that are moved before the rows are rewritten."""
MOVE_SECONDS = 0.5
"""Seconds of work in a round at most, so that the other jobs run."""
SCAN_SECONDS = 10.0
"""Seconds between two reads of the list of packs."""
BLOCK_BYTES = 4096
"""A pack that would free less than this stays."""
REFERENCES_PER_SCAN = 50_000
"""Rows that one scan of all rows returns at most; the next scan continues."""
SHARED_PER_BATCH = 1000
"""A record with more references stays where it is: all its rows would have to be rewritten at once."""
COUNTED_PER_BATCH = 256
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
    """Compaction of at most `rate` bytes a second.

    `count` is called with the bytes moved and freed. `grace` is how long discarded blobs wait, the usual way for a byte
    to become dead.
    """

    def __init__(
        self,
        store: Store,
        rate: int,
        grace: float,
        count: Callable[[int, int], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._index = store.index
        self._driver = store.driver
        self._rate = rate
        self._count = count
        self._now = now
        self._period = min(SCAN_SECONDS, grace)
        self._shortest_wait = 2 * grace
        self._looked = -SCAN_SECONDS
        self._allowance = 0.0
        self._refilled = now()
        self._passed: dict[int, int] = {}
        """Packs that are not worth it, or failed, with their dead bytes at that time."""
        self._chosen: deque[Pack] = deque()
        self._current: Pack | None = None
        self._offset = 0
        self._waiting: deque[Record] = deque()
        self._moved: dict[int, int] = {}
        """Bytes moved out of each pack that is not deleted yet."""
        self._rest: dict[int, Pack] = {}
        """Packs whose recovery headers were all followed, and that are not all dead yet."""
        self._swept: list[Pack] = []
        """Packs of dead writers that are not counted yet."""
        self._wait = self._shortest_wait
        self._next_scan = now() + self._shortest_wait
        self._wasted: list[tuple[int, int]] = []
        self._stuck: set[str] = set()
        """Unreadable records of packs in `_rest`: left to scrub and not tried again."""

    async def run_once(self) -> None:
        """Work for a while. Raises DomainError; the rest is done at another time."""
        now = self._now()
        self._allowance = min(self._allowance + self._rate * (now - self._refilled), float(self._rate))
        self._refilled = now
        if self._wasted:
            wasted, self._wasted = self._wasted, []
            await self._index.count_dead(wasted)
        while await self._step() and self._now() < now + MOVE_SECONDS:
            pass

    async def _step(self) -> bool:
        """Move one group of records, or scan once.

        Returns False when there is nothing to do now.
        """
        if self._waiting or self._current is not None:
            if self._allowance <= 0:
                return False
            if self._waiting:
                await self._move([self._waiting.popleft() for _ in range(min(RECORDS_PER_MOVE, len(self._waiting)))])
            else:
                await self._go_on()
            return True
        if self._chosen:
            await self._begin(self._chosen.popleft())
            return True
        if self._now() >= self._looked + self._period:
            self._looked = self._now()
            await self._look()
            if self._chosen:
                return True
        if self._now() < self._next_scan:
            return False
        if self._swept:
            await self._recount()
        elif self._rest:
            await self._scan()
        return bool(self._waiting)

    # choosing

    async def _look(self) -> None:
        """Retire dead packs, and choose the packs that are worth moving."""
        found = [pack for pack in await self._index.packs() if pack.store == self._store.name]
        self._swept = [pack for pack in found if pack.sealed == SWEPT][:COUNTED_PER_BATCH]
        packs = [pack for pack in found if pack.sealed == SEALED]
        rows = {pack.id: pack for pack in packs}
        self._rest = {number: rows[number] for number in self._rest if number in rows}
        self._passed = {number: dead for number, dead in self._passed.items() if number in rows}
        self._moved = {number: moved for number, moved in self._moved.items() if number in rows}
        for pack in packs:
            if self._live(pack) <= 0:
                await self._retire(pack.id)
        if not self._rate:
            return
        worth = [
            pack
            for pack in packs
            if 0 < self._live(pack) <= pack.dead
            and pack.id not in self._rest
            and self._passed.get(pack.id) != pack.dead
        ]
        self._chosen.extend(sorted(worth, key=self._live))

    def _live(self, pack: Pack) -> int:
        """Return the bytes that rows may reference: never fewer than they do."""
        return pack.size - self._driver.capabilities.pack_overhead - pack.dead

    async def _begin(self, pack: Pack) -> None:
        """Begin a pack if no more bytes must move than are freed.

        Punched holes were freed before.
        """
        with translate_driver_errors():
            file = await self._driver.pack_file(pack.id)
        live = self._live(pack)
        if file is None or file.allocated - live < max(live, BLOCK_BYTES):
            self._passed[pack.id] = pack.dead
            return
        self._current, self._offset = pack, 0

    # moving

    async def _go_on(self) -> None:
        """Read the pack's next records; those that their headers find referenced wait to be moved."""
        assert self._current is not None
        pack = self._current
        try:
            with translate_driver_errors():
                records, self._offset = await self._driver.list_records(pack.id, self._offset, RECORDS_PER_MOVE)
        except DataDamaged:
            self._passed[pack.id] = pack.dead
            self._current = None
            return
        totals = {record.locator: record.total for record in records}
        suspects = [recovery_headers.reference_hint(record.locator, record.recovery_header) for record in records]
        found = await self._index.find_holders([suspect for suspect in suspects if suspect is not None])
        self._waiting.extend(
            Record(locator, pack.id, totals[locator], references) for locator, references in found.items()
        )
        if not self._offset:
            self._current = None
            self._rest[pack.id] = pack
            self._wait = self._shortest_wait
            self._next_scan = max(self._next_scan, self._now() + self._wait)
            self._looked = -SCAN_SECONDS  # the pack may be all dead now

    async def _move(self, records: list[Record]) -> None:
        first, size = 0, 0
        for place, record in enumerate(records):
            size += record.total
            if size >= BYTES_PER_MOVE:
                await self._move_group(records[first : place + 1])
                first, size = place + 1, 0
        if first < len(records):
            await self._move_group(records[first:])

    async def _move_group(self, records: list[Record]) -> None:
        with translate_driver_errors():
            new = await self._driver.move([record.locator for record in records])
        crash_point("compact.appended")
        moves = []
        for locator, pack, total, holders in records:
            packed = self._driver.packed(new.get(locator, ""))
            if packed is not None:
                moves.append(RecordMove(locator, new[locator], pack, packed[0], total, holders))
            else:
                self._stuck.add(locator)
        if len(moves) < len(records):
            logger.warning("compaction: %d records cannot be read and stay where they are", len(records) - len(moves))
        self._allowance -= sum(move.total for move in moves)
        try:
            moved_flags = await self._index.move_records(moves)
        except CommitUnknown:
            raise
        except DomainError:
            self._wasted += [(move.new_pack, move.total) for move in moves]
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
        began = self._now()
        live = await self._index.referenced_bytes(list(by_prefix), self._size_of)
        self._next_scan = self._now() + max(self._shortest_wait, SCAN_PAUSE_FACTOR * (self._now() - began))
        self._swept = []
        for prefix, pack in by_prefix.items():
            true = pack.size - self._driver.capabilities.pack_overhead - live.get(prefix, 0)
            await self._index.correct_dead(pack.id, pack.dead, max(true, 0))
        crash_point("compact.counted")
        self._looked = -SCAN_SECONDS

    def _size_of(self, locator: str) -> int:
        packed = self._driver.packed(locator)
        return packed[1] if packed is not None else 0

    async def _scan(self) -> None:
        """Scan all rows for references to some packs.

        Referenced records are copied, the rest is counted dead.
        """
        packs = list(self._rest.values())
        by_prefix = {self._driver.pack_prefix(pack.id): pack for pack in packs}
        began = self._now()
        references = await self._index.find_references_in_packs(list(by_prefix), REFERENCES_PER_SCAN)
        spent = self._now() - began
        self._stuck.intersection_update(references.holders)
        found = self._records(references)
        self._waiting.extend(found)
        busy = {self._pack_of(locator) for locator in (*references.holders, *references.others)}
        buried = 0
        for pack in packs:
            if references.complete and pack.id not in busy and pack.id not in references.written:
                buried += await self._bury(pack)
        self._wait = self._shortest_wait if found or buried else min(2 * max(self._wait, 1.0), MAX_WAIT_SECONDS)
        self._next_scan = self._now() + max(self._wait, SCAN_PAUSE_FACTOR * spent)
        self._looked = -SCAN_SECONDS

    def _records(self, references: PackReferences) -> list[Record]:
        found = []
        for locator, holders in references.holders.items():
            packed = self._driver.packed(locator)
            if packed is not None and len(holders) <= SHARED_PER_BATCH and locator not in self._stuck:
                found.append(Record(locator, *packed, holders))
        return found

    def _pack_of(self, locator: str) -> int:
        packed = self._driver.packed(locator)
        return packed[0] if packed is not None else 0

    async def _bury(self, pack: Pack) -> bool:
        """Count a pack dead that no row references and that no writer can reference."""
        whole = pack.size - self._driver.capabilities.pack_overhead
        buried = await self._index.correct_dead(pack.id, pack.dead, whole)
        crash_point("compact.buried")
        return buried

    async def _retire(self, pack_id: int) -> None:
        with translate_driver_errors():
            file = await self._driver.pack_file(pack_id)
        await self._index.make_durable()
        overhead = self._driver.capabilities.pack_overhead
        if not await self._index.retire_pack(pack_id, overhead, self._driver.pack_locator(pack_id)):
            return
        crash_point("compact.retired")
        moved = self._moved.pop(pack_id, 0)
        self._rest.pop(pack_id, None)
        self._count(0, max(file.allocated - moved, 0) if file is not None else 0)
