"""The garbage collector: it removes unreferenced blobs that no request can be reading (law 2).

An entry of the discard queue is first *seen*. Its blob is removed when every running request began after that, and a
grace has passed, at the pace of `app.jobs.pacing`. Nothing of this is stored: after a restart the wait begins again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from sluice_s3.app.crash import crash_point
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.object_lock.retention_clock import clock
from sluice_s3.app.index.reclaim.rows import QueuedDiscard
from sluice_s3.app.jobs.pacing import SPREAD_SECONDS, Pacer, spread_seconds
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.errors import StoreFailed

logger = logging.getLogger("sluice.jobs")

BLOBS_PER_BATCH = 1000
LOOK_MS = 1000
"""Milliseconds between two reads of the queue while entries are removed."""
RECORDS_PER_STEP = 250
"""Records of packs: holes are made where neighbours of one step are dead."""
ENTRIES_PER_COMMIT = 100
"""Rows of one transaction: writes wait for it."""
MAX_WAITING = 100_000
"""Entries held in memory; the rest wait in the index."""


class _Batch(NamedTuple):
    seen_at: int
    entries: list[QueuedDiscard]


class GarbageCollector:
    """Garbage collector of one store.

    `oldest` returns the CLOCK_BOOTTIME in milliseconds at which the oldest running request of any worker began.
    `journaled_until` returns the number up to which changes are journaled: entries with greater ids wait. `pieces` says
    whether to handle bodies of pieces, which lie in no store; with False for `blobs` nothing else is handled.
    `elsewhere` returns the same bound for the journals of other stores, and is called when there are new entries.
    `pacer` is the pace of the removal.
    """

    def __init__(
        self,
        store: Store,
        oldest: Callable[[], int],
        now: Callable[[], int],
        grace: float,
        journaled_until: Callable[[], int] | None = None,
        *,
        blobs: bool = True,
        pieces: bool = True,
        elsewhere: Callable[[], Awaitable[int]] | None = None,
        pacer: Pacer | None = None,
    ) -> None:
        self._store = store
        self._oldest = oldest
        self._now = now
        self._grace = int(grace * 1000)
        self._journaled_until = journaled_until
        self._elsewhere = elsewhere
        self._blobs = blobs
        self._pieces = pieces
        self._pacer = pacer or Pacer()
        self._waiting: deque[_Batch] = deque()
        self._due: deque[tuple[int, _Batch]] = deque()
        """Batches that may be removed, each with the time since when."""
        self._due_entries = 0
        self._looked_at = 0
        self._quarantined: list[QueuedDiscard] = []
        """Quarantined entries that are not due yet."""
        self._waiting_entries = 0
        self._last_id = 0

    async def run_once(self) -> int:
        """Read new entries and remove those that have waited long enough; return how many."""
        removed = 0
        await self._look()
        while self._due:
            _, batch = self._due[0]
            try:
                await self._discard(batch.entries)
            except BaseException as error:
                self._due.rotate(-1)  # after the others, so that an entry that always fails does not block them
                if type(error.__cause__) is StoreFailed:  # perhaps of one file; not so of a missing or silent store
                    self._split_last()
                raise
            self._due.popleft()
            self._due_entries -= len(batch.entries)
            self._waiting_entries -= len(batch.entries)
            removed += len(batch.entries)
        return removed

    def _split_last(self) -> None:
        """Halve the last batch, so that an entry that always fails ends up alone."""
        since, batch = self._due.pop()
        half = (len(batch.entries) + 1) // 2
        for some in (batch.entries[:half], batch.entries[half:]):
            if some:
                self._due.append((since, _Batch(batch.seen_at, some)))

    async def _look(self) -> None:
        """Read new entries, and find those that are due."""
        self._looked_at = self._now()
        await self._read_queue()
        self._release_quarantined()
        while (
            self._waiting
            and self._waiting[0].seen_at + self._grace <= (now := self._now())
            and self._waiting[0].seen_at < self._oldest()
        ):
            self._due.append((now, self._waiting.popleft()))
            self._due_entries += len(self._due[-1][1].entries)

    def _slot(self) -> float:
        """Return how many seconds the removal of an entry may take, 0 when it must not wait.

        The rate is what is due over its `spread_seconds`, and the first batch is removed within SPREAD_SECONDS.
        """
        if self._store.full or self._waiting_entries >= MAX_WAITING:
            return 0.0
        due_at, batch = self._due[0]
        left = max(due_at / 1000 + SPREAD_SECONDS - self._now() / 1000, 0.0)
        return min(spread_seconds(self._due_entries) / self._due_entries, left / len(batch.entries))

    async def _read_queue(self) -> None:
        while self._waiting_entries < MAX_WAITING:
            entries = await self._store.index.discards(self._last_id, BLOBS_PER_BATCH)
            now = self._now()  # after the query: before it, a request may still have found them in rows
            if self._journaled_until is not None:
                bound = self._journaled_until()
                entries = [entry for entry in entries if entry.id <= bound]
            if entries and self._elsewhere is not None:
                bound = await self._elsewhere()
                entries = [entry for entry in entries if entry.id <= bound]
            # after the query: if no backup holds removals now, those that follow begin after these discards
            if not entries or await self._store.index.removals_are_held():
                return
            self._last_id = entries[-1].id
            entries = [entry for entry in entries if self._is_ours(entry.body)]
            now_ms = clock.now_ms()
            self._quarantined += [entry for entry in entries if entry.quarantined_until_ms > now_ms]
            entries = [entry for entry in entries if entry.quarantined_until_ms <= now_ms]
            if entries:
                self._waiting.append(_Batch(now, entries))
                self._waiting_entries += len(entries)

    def _release_quarantined(self) -> None:
        """Release entries that `fsck --repair` queued, once due; then they wait like all others."""
        now_ms = clock.now_ms()
        due = [entry for entry in self._quarantined if entry.quarantined_until_ms <= now_ms]
        if due:
            self._quarantined = [entry for entry in self._quarantined if entry.quarantined_until_ms > now_ms]
            self._waiting.append(_Batch(self._now(), due))
            self._waiting_entries += len(due)

    def _is_ours(self, body: str) -> bool:
        if body.startswith(PIECES):
            return self._pieces
        return self._blobs and store_of_locator(body) == self._store.name

    async def _discard(self, entries: list[QueuedDiscard]) -> None:
        blobs = [entry for entry in entries if not entry.body.startswith(PIECES)]
        driver = self._store.driver
        files = [entry.body for entry in blobs if driver.packed(entry.body) is None]
        files.sort(key=lambda body: body[::-1])  # by directory, of which each step syncs some
        records = [entry.body for entry in blobs if driver.packed(entry.body) is not None]
        records.sort(key=_place)  # a hole takes neighbours
        if blobs:
            # else a power cut may bring back the rows of relaxed commits, without their data
            await self._store.index.make_durable()
        await self._pacer.spread(files, self._remove, self._slot, driver.capabilities.discards_at_once)
        await self._pacer.spread(records, self._remove, self._slot, RECORDS_PER_STEP)
        crash_point("garbage.discarded")
        discarded = [self._discarded_entry(entry) for entry in blobs]
        for first in range(0, len(discarded), ENTRIES_PER_COMMIT):
            await self._store.index.forget_discards(discarded[first : first + ENTRIES_PER_COMMIT])
        pieces = [entry for entry in entries if entry.body.startswith(PIECES)]
        await self._pacer.spread(pieces, self._expand, self._slot)

    async def _expand(self, entries: Sequence[QueuedDiscard]) -> None:
        for entry in entries:
            while not await self._store.index.expand_discard(entry, ENTRIES_PER_COMMIT):
                pass
        await self._look_again()

    async def _remove(self, locators: Sequence[str]) -> None:
        with translate_driver_errors():
            await self._store.driver.discard_many(locators)
        await self._look_again()

    async def _look_again(self) -> None:
        """Look each second of a long removal: the grace of new entries must not begin at its end."""
        if self._now() >= self._looked_at + LOOK_MS:
            await self._look()

    def _discarded_entry(self, entry: QueuedDiscard) -> tuple[int, int, int]:
        """Return the entry, its pack, and the bytes that die there; see `Index.forget_discards`."""
        driver = self._store.driver
        pack_id, size = driver.packed(entry.body) or (driver.whole_pack(entry.body), 0)
        return entry.id, pack_id, size


def _place(locator: str) -> list[tuple[int, str]]:
    """Return what sorts locators of records by pack and offset, which are numbers without leading zeros."""
    return [(len(field), field) for field in locator.split(".")]
