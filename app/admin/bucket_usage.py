"""Bytes and objects by bucket for the metrics: counted now and then, never by a scrape itself."""

from __future__ import annotations

import asyncio
import heapq
import logging
import time
from collections.abc import Callable

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.queries import Usage
from sluice_s3.app.store.buckets import all_buckets
from sluice_s3.app.store.quotas import COUNT_PAUSE_FACTOR, NO_USAGE

logger = logging.getLogger("sluice.admin")

FRESH_SECONDS = 60.0
"""Seconds that a count is valid; longer when counting takes long."""
WAIT_SECONDS = 0.5
"""Seconds that a scrape waits for a count that just began: with few objects it is there."""
BURST_SECONDS = 0.05
"""Seconds of counting without a pause."""
HELP = {
    "sluice_bucket_bytes": "Bytes of all versions and of parts of open uploads, by bucket.",
    "sluice_bucket_objects": "Versions without delete markers, by bucket.",
}
OTHER = "other"


class BucketUsage:
    """The last count of all buckets.

    A count is begun by a scrape when the last one is old. It pauses between buckets, so that it takes 5 % of one
    thread, as counts for quotas do.
    """

    def __init__(self, index: Index, most: int, now: Callable[[], float] = time.monotonic) -> None:
        """`most`: buckets with a series of their own, those with the most bytes."""
        self._index = index
        self._most = most
        self._now = now
        self._counted: dict[str, Usage] | None = None
        self._next = 0.0
        self._task: asyncio.Task[None] | None = None

    async def samples(self) -> bytes:
        """Return the gauges of the last count in the text format of Prometheus; empty when off or not counted yet."""
        if not self._most:
            return b""
        if (self._task is None or self._task.done()) and self._now() >= self._next:
            self._task = asyncio.create_task(self._count())
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=WAIT_SECONDS)
        return b"" if self._counted is None else self._render(self._counted)

    async def close(self) -> None:
        """End a count that runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _count(self) -> None:
        began, found, busy = self._now(), dict[str, Usage](), 0.0
        try:
            async for bucket in all_buckets(self._index):
                started = self._now()
                found[bucket.name] = await self._index.bucket_usage(bucket.id)
                busy += self._now() - started
                if busy > BURST_SECONDS:
                    await asyncio.sleep(COUNT_PAUSE_FACTOR * busy)
                    busy = 0.0
            self._counted = found
        except DomainError as error:
            logger.warning("the buckets could not be counted: %s", type(error).__name__)
        self._next = max(began + FRESH_SECONDS, self._now() + COUNT_PAUSE_FACTOR * busy)

    def _render(self, counted: dict[str, Usage]) -> bytes:
        largest = heapq.nlargest(self._most, counted.items(), key=lambda one: (one[1].bytes, one[1].objects))
        shown = {name: usage for name, usage in sorted(largest) if name != OTHER}
        rest = NO_USAGE
        for name, usage in counted.items():
            if name not in shown:
                rest = Usage(rest.bytes + usage.bytes, rest.objects + usage.objects)
        lines: list[str] = []
        for number, (name, text) in enumerate(HELP.items()):
            lines += [f"# HELP {name} {text}", f"# TYPE {name} gauge"]
            lines += [
                f'{name}{{bucket="{bucket}"}} {usage[number]}' for bucket, usage in {**shown, OTHER: rest}.items()
            ]
        return ("\n".join(lines) + "\n").encode()
