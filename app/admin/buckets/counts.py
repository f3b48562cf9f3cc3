"""The contents of buckets for pages that people look at: counted when asked, and not too often.

A bucket is counted at most 5 % of the time, as for quotas, and all together a quarter of one thread.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.queries import Totals
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.store.quotas import COUNT_PAUSE_FACTOR
from sluice_s3.app.store.quotas import FRESH_SECONDS as FRESH

logger = logging.getLogger("sluice.admin")

WAIT_SECONDS = 0.4
"""Seconds that an answer waits for counts that just began."""
BURST_SECONDS = 1.0
"""Seconds of counting without a pause."""
PAUSE_FACTOR = 3
"""A pause after that, as a multiple of it."""
MAX_ENTRIES = 10_000
"""Buckets whose count is kept; then the oldest counts go."""
MAX_QUEUE = 2_000
"""Buckets that may wait for their count."""


class Counted(NamedTuple):
    """The contents of a bucket, and when they were counted."""

    totals: Totals
    at: float
    """Seconds since the epoch."""
    until: float
    """When it may be counted again, by the clock of `BucketCounts`."""


class BucketCounts:
    """Counts of buckets, made one at a time in the background. A count of `t` seconds is good for 20 `t`."""

    def __init__(self, index: Index, now: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._now = now
        self._counted: dict[int, Counted] = {}
        self._queue: dict[int, None] = {}
        self._task: asyncio.Task[None] | None = None

    async def find(self, buckets: Sequence[Bucket], wait: float = WAIT_SECONDS) -> dict[int, Counted]:
        """Return the last counts by the buckets' ids; those that are old or missing are counted again.

        It waits at most `wait` seconds for them: what takes longer is there the next time.
        """
        now = self._now()
        for bucket in buckets:
            known = self._counted.get(bucket.id)
            if (known is None or known.until <= now) and len(self._queue) < MAX_QUEUE:
                self._queue[bucket.id] = None
        if self._queue and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._count())
        deadline = now + wait
        while self._task is not None and any(bucket.id in self._queue for bucket in buckets):
            left = deadline - self._now()
            if left <= 0 or (await asyncio.wait({self._task}, timeout=min(left, 0.02)))[0]:
                break
        return {bucket.id: self._counted[bucket.id] for bucket in buckets if bucket.id in self._counted}

    async def close(self) -> None:
        """End a count that runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _count(self) -> None:
        busy = 0.0
        while self._queue:
            if busy > BURST_SECONDS:
                await asyncio.sleep(PAUSE_FACTOR * busy)
                busy = 0.0
            bucket_id = next(iter(self._queue))
            began = self._now()
            try:
                totals = await self._index.bucket_totals(bucket_id)
            except DomainError as error:
                logger.warning("a bucket could not be counted: %s", type(error).__name__)
                self._queue.clear()
                return
            took = self._now() - began
            busy += took
            self._counted.pop(bucket_id, None)
            until = self._now() + max(FRESH, COUNT_PAUSE_FACTOR * took)
            self._counted[bucket_id] = Counted(totals, time.time(), until)
            if len(self._counted) > MAX_ENTRIES:
                del self._counted[next(iter(self._counted))]
            self._queue.pop(bucket_id, None)
            await asyncio.sleep(0)
