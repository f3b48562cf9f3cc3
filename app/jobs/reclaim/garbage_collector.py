"""The garbage collector: it removes unreferenced blobs that no request can be reading (law 2).

An entry of the discard queue is first *seen*. Its blob is removed when every running request began after that, and a
grace has passed. Nothing of this is stored: after a restart the wait begins again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from sluice_s3.app.crash import crash_point
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.object_lock.retention_clock import clock
from sluice_s3.app.index.reclaim.rows import QueuedDiscard
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.jobs")

BLOBS_PER_BATCH = 1000
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
    ) -> None:
        self._store = store
        self._oldest = oldest
        self._now = now
        self._grace = int(grace * 1000)
        self._journaled_until = journaled_until
        self._elsewhere = elsewhere
        self._blobs = blobs
        self._pieces = pieces
        self._waiting: deque[_Batch] = deque()
        self._quarantined: list[QueuedDiscard] = []
        """Quarantined entries that are not due yet."""
        self._waiting_entries = 0
        self._last_id = 0

    async def run_once(self) -> int:
        """Read new entries and remove those that have waited long enough; return how many."""
        await self._read_queue()
        self._release_quarantined()
        removed = 0
        while (
            self._waiting
            and self._waiting[0].seen_at + self._grace <= self._now()
            and self._waiting[0].seen_at < self._oldest()
        ):
            batch = self._waiting.popleft()
            try:
                removed += await self._discard(batch.entries)
            except BaseException:
                self._waiting.append(batch)  # after the others, so that an entry that always fails does not block them
                raise
            self._waiting_entries -= len(batch.entries)
        return removed

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
            if not entries:
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

    async def _discard(self, entries: list[QueuedDiscard]) -> int:
        blobs = [entry for entry in entries if not entry.body.startswith(PIECES)]
        if blobs:
            with translate_driver_errors():
                await self._store.driver.discard_many([entry.body for entry in blobs])
            crash_point("garbage.discarded")
            await self._store.index.forget_discards([self._discarded_entry(entry) for entry in blobs])
        for entry in entries:
            if entry.body.startswith(PIECES):
                while not await self._store.index.expand_discard(entry, BLOBS_PER_BATCH):
                    pass
        return len(entries)

    def _discarded_entry(self, entry: QueuedDiscard) -> tuple[int, int, int]:
        """Return the entry, its pack, and the bytes that die there; see `Index.forget_discards`."""
        driver = self._store.driver
        pack_id, size = driver.packed(entry.body) or (driver.whole_pack(entry.body), 0)
        return entry.id, pack_id, size
