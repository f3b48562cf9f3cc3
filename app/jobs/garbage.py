"""Takes away what no row holds any more, once nobody can be reading it (law 2).

An entry of the discard queue is first *seen*; its blob goes when every request that runs began after that, and a
grace has passed. Nothing of this is kept: after a restart the wait begins anew.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from app.crash import crash_point
from app.index.rows import PIECES, Discard
from app.store.calls import driver_calls
from app.store.place import owner
from app.store.store import Store

logger = logging.getLogger("sluice.jobs")

BATCH = 1000
MOST_WAITING = 100_000
"""Entries kept in memory; the rest wait in the index."""


class _Seen(NamedTuple):
    at: int
    entries: list[Discard]


class Garbage:
    """`oldest` gives the CLOCK_BOOTTIME in milliseconds at which the oldest running request of any worker began.

    `decided` gives the number up to which changes are written down beside the data: entries behind it wait. `pieces`
    says whether bodies of pieces, which lie in no store, are this one's matter; with False for `blobs` nothing else is.
    `elsewhere` is the same bound of what the journals of other stores tell, asked when there is something new.
    """

    def __init__(
        self,
        store: Store,
        oldest: Callable[[], int],
        now: Callable[[], int],
        grace: float,
        decided: Callable[[], int] | None = None,
        *,
        blobs: bool = True,
        pieces: bool = True,
        elsewhere: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        self._store = store
        self._oldest = oldest
        self._now = now
        self._grace = int(grace * 1000)
        self._decided = decided
        self._elsewhere = elsewhere
        self._blobs = blobs
        self._pieces = pieces
        self._waiting: deque[_Seen] = deque()
        self._count = 0
        self._last = 0

    async def run_once(self) -> int:
        """Look at new entries and take away what has waited long enough; returns how many entries went."""
        await self._look()
        gone = 0
        while (
            self._waiting and self._waiting[0].at + self._grace <= self._now() and self._waiting[0].at < self._oldest()
        ):
            seen = self._waiting.popleft()
            try:
                gone += await self._take_away(seen.entries)
            except BaseException:
                self._waiting.append(seen)  # behind the others, lest one that always fails keeps them all
                raise
            self._count -= len(seen.entries)
        return gone

    async def _look(self) -> None:
        while self._count < MOST_WAITING:
            found = await self._store.index.discards(self._last, BATCH)
            now = self._now()  # after the look: before it, a request may still have found them in rows
            if self._decided is not None:
                bound = self._decided()
                found = [entry for entry in found if entry.id <= bound]
            if found and self._elsewhere is not None:
                bound = await self._elsewhere()
                found = [entry for entry in found if entry.id <= bound]
            if not found:
                return
            self._last = found[-1].id
            found = [entry for entry in found if self._is_ours(entry.body)]
            if found:
                self._waiting.append(_Seen(now, found))
                self._count += len(found)

    def _is_ours(self, body: str) -> bool:
        if body.startswith(PIECES):
            return self._pieces
        return self._blobs and owner(body) == self._store.name

    async def _take_away(self, entries: list[Discard]) -> int:
        blobs = [entry for entry in entries if not entry.body.startswith(PIECES)]
        if blobs:
            with driver_calls():
                await self._store.driver.discard_many([entry.body for entry in blobs])
            crash_point("garbage.discarded")
            await self._store.index.forget_discards([self._gone(entry) for entry in blobs])
        for entry in entries:
            if entry.body.startswith(PIECES):
                while not await self._store.index.expand_discard(entry, BATCH):
                    pass
        return len(entries)

    def _gone(self, entry: Discard) -> tuple[int, int, int]:
        """The entry, the pack that it lay in, and how many of its bytes died there; see `Index.forget_discards`."""
        driver = self._store.driver
        pack_id, size = driver.packed(entry.body) or (driver.whole_pack(entry.body), 0)
        return entry.id, pack_id, size
