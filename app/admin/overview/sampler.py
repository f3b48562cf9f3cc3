"""One sample a second of what the whole server does, taken once for all who watch.

It reads the counters in shared memory, which the workers write anyway: requests pay nothing for it.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

import orjson

from sluice_s3.app.admin.live import render_event
from sluice_s3.app.admin.overview.quantiles import find_quantile

logger = logging.getLogger("sluice.admin")

SAMPLE_SECONDS = 1.0
KEPT_SECONDS = 900
"""Seconds of samples that are kept: a chart is full at once."""
CHART_WINDOW_SECONDS = 10
"""Seconds of requests of which a point's quantiles are: one second has too few."""
TABLE_WINDOW_SECONDS = 60
"""Seconds of requests that the tables by operation and by bucket are about."""
BUCKETS_SECONDS = 10
"""Seconds between two looks at the buckets, of which there may be many."""
MOST_BUCKETS = 20
"""Buckets of the table, those with the most requests."""
COLUMNS = (
    "at", "requests", "client_errors", "server_errors", "bytes_in", "bytes_out", "running", "p50", "p99",
)  # fmt: skip
"""Of a point: milliseconds since the epoch, then rates a second, requests that run, and seconds."""
CLIENT_ERROR, SERVER_ERROR = 3, 4
"""Their places in `OperationCounts.statuses`."""

Point = tuple[int, float, float, float, float, float, int, float | None, float | None]


class Counts(Protocol):
    """What all processes counted of one operation or bucket since the server's start."""

    @property
    def statuses(self) -> Sequence[float]:
        """Answers by status class, 1xx to 5xx."""
        ...

    @property
    def bytes_in(self) -> float:
        """Bytes of request bodies."""
        ...

    @property
    def bytes_out(self) -> float:
        """Bytes of response bodies."""
        ...


class OperationCounts(Counts, Protocol):
    """The same with durations."""

    @property
    def durations(self) -> Sequence[float]:
        """Answers by their duration: up to each bound, and longer."""
        ...


class Counted(Protocol):
    """The counters of all processes."""

    bounds: Sequence[float]
    """Upper bounds of durations in seconds."""

    def read_operations(self) -> Mapping[str, OperationCounts]:
        """Return the counts of each operation that was ever asked for."""
        ...

    def read_gauges(self) -> tuple[float, float]:
        """Return the requests that run, and the open connections."""
        ...


class _Counts(NamedTuple):
    """The counts at one time."""

    at: float
    """Seconds of the monotonic clock."""
    operations: Mapping[str, OperationCounts]


class Sampler:
    """Takes the samples while it runs, and hands them to all who watch."""

    def __init__(self, counters: Counted, read_buckets: Callable[[], Mapping[str, Counts] | None]) -> None:
        self._counters = counters
        self._read_buckets = read_buckets
        self._bucket_counts: deque[tuple[float, Mapping[str, Counts]]] = deque(
            maxlen=TABLE_WINDOW_SECONDS // BUCKETS_SECONDS + 1
        )
        self._counts: deque[_Counts] = deque(maxlen=TABLE_WINDOW_SECONDS + 1)
        self._points: deque[Point] = deque(maxlen=KEPT_SECONDS)
        self._rendered: tuple[int, bytes] | None = None
        """The newest sample as an event, rendered for the first who wants it."""
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start to take samples."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stop."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def watch(self, after: int = 0) -> AsyncIterator[bytes]:
        """Yield events: first `history`, the points after `after` (milliseconds), then each `sample`.

        A reader that is slow gets the newest sample and not those between.
        """
        last = self._points[-1][0] if self._points else 0
        yield self._render_history(after)
        while True:
            changed = self._changed
            if self._points and self._points[-1][0] != last:
                last = self._points[-1][0]
                yield self._render_sample()
            else:
                await changed.wait()

    def take_sample(self, monotonic: float, now: int) -> None:
        """Take a sample at a time of the monotonic clock, and of the epoch in milliseconds."""
        counts = _Counts(monotonic, self._counters.read_operations())
        before = self._counts[-1] if self._counts else None
        self._counts.append(counts)
        looked = self._bucket_counts[-1][0] if self._bucket_counts else -math.inf
        if monotonic - looked >= BUCKETS_SECONDS and (buckets := self._read_buckets()) is not None:
            self._bucket_counts.append((monotonic, buckets))
        if before is not None:
            self._points.append(self._make_point(before, counts, now))
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    async def _run(self) -> None:
        while True:
            try:
                self.take_sample(time.monotonic(), time.time_ns() // 1_000_000)
            except Exception:
                logger.exception("no sample of the counters")
            await asyncio.sleep(SAMPLE_SECONDS - time.monotonic() % SAMPLE_SECONDS)

    def _make_point(self, before: _Counts, counts: _Counts, now: int) -> Point:
        seconds = max(counts.at - before.at, 0.001)
        requests = client_errors = server_errors = bytes_in = bytes_out = 0.0
        for name, count in counts.operations.items():
            old = before.operations.get(name)
            if old == count:
                continue
            requests += sum(count.statuses) - (sum(old.statuses) if old else 0)
            client_errors += count.statuses[CLIENT_ERROR] - (old.statuses[CLIENT_ERROR] if old else 0)
            server_errors += count.statuses[SERVER_ERROR] - (old.statuses[SERVER_ERROR] if old else 0)
            bytes_in += count.bytes_in - (old.bytes_in if old else 0)
            bytes_out += count.bytes_out - (old.bytes_out if old else 0)
        rates = (_rate(count, seconds) for count in (requests, client_errors, server_errors, bytes_in, bytes_out))
        running, _ = self._counters.read_gauges()
        return (now, *rates, round(running), *self._chart_quantiles(counts))  # type: ignore[return-value]

    def _chart_quantiles(self, counts: _Counts) -> tuple[float | None, float | None]:
        """Return p50 and p99 of all operations together."""
        before = self._counts[-min(CHART_WINDOW_SECONDS + 1, len(self._counts))].operations
        totals = [0.0] * (len(self._counters.bounds) + 1)
        for name, count in counts.operations.items():
            old = before.get(name)
            if old != count:
                for number, one in enumerate(_subtract(count.durations, old.durations if old else None)):
                    totals[number] += one
        p50, p99 = (find_quantile(self._counters.bounds, totals, share) for share in (0.5, 0.99))
        return p50 and _round(p50.estimate), p99 and _round(p99.estimate)

    def _render_sample(self) -> bytes:
        point = self._points[-1]
        if self._rendered is None or self._rendered[0] != point[0]:
            data = orjson.dumps({"point": point, "operations": self.operations(), "buckets": self.buckets()})
            self._rendered = point[0], render_event(data, "sample", point[0])
        return self._rendered[1]

    def _render_history(self, after: int) -> bytes:
        points = [point for point in self._points if point[0] > after]
        data = orjson.dumps(
            {
                "columns": COLUMNS,
                "points": points,
                "operations": self.operations(),
                "buckets": self.buckets(),
                "bounds": self._counters.bounds,
                "chart_window": CHART_WINDOW_SECONDS,
                "table_window": TABLE_WINDOW_SECONDS,
            }
        )
        return render_event(data, "history", points[-1][0] if points else None)

    def operations(self) -> list[dict[str, object]]:
        """Return what was asked for in the last minute, by operation, the most frequent first."""
        if len(self._counts) < 2:
            return []
        before, counts = self._counts[0], self._counts[-1]
        seconds = max(counts.at - before.at, 0.001)
        found = []
        for name, count in counts.operations.items():
            old = before.operations.get(name)
            if old == count:
                continue
            durations = _subtract(count.durations, old.durations if old else None)
            found.append(
                {
                    **_render_rates(name, count, old, seconds),
                    "p50": self._render_quantile(durations, 0.5),
                    "p99": self._render_quantile(durations, 0.99),
                }
            )
        return sorted(found, key=lambda one: -float(one["requests"]))  # type: ignore[arg-type]

    def buckets(self) -> list[dict[str, object]] | None:
        """Return the buckets that were asked the most in the last minute; None where they are not counted."""
        if not self._bucket_counts:
            return None
        (began, before), (ended, counts) = self._bucket_counts[0], self._bucket_counts[-1]
        seconds = max(ended - began, 0.001)
        found = [
            _render_rates(name, count, before.get(name), seconds)
            for name, count in counts.items()
            if before.get(name) != count
        ]
        return sorted(found, key=lambda one: -float(one["requests"]))[:MOST_BUCKETS]  # type: ignore[arg-type]

    def _render_quantile(self, durations: Sequence[float], share: float) -> list[float | None] | None:
        """Return the estimate, and the bounds between which it lies, in seconds."""
        found = find_quantile(self._counters.bounds, durations, share)
        return found and [_round(found.estimate), found.low, found.high]


def _render_rates(name: str, count: Counts, old: Counts | None, seconds: float) -> dict[str, object]:
    statuses = _subtract(count.statuses, old.statuses if old else None)
    return {
        "name": name,
        "requests": _rate(sum(statuses), seconds),
        "client_errors": _rate(statuses[CLIENT_ERROR], seconds),
        "server_errors": _rate(statuses[SERVER_ERROR], seconds),
        "bytes_in": _rate(count.bytes_in - (old.bytes_in if old else 0), seconds),
        "bytes_out": _rate(count.bytes_out - (old.bytes_out if old else 0), seconds),
    }


def _subtract(counts: Sequence[float], before: Sequence[float] | None) -> list[float]:
    return list(counts) if before is None else [new - old for new, old in zip(counts, before, strict=True)]


def _rate(count: float, seconds: float) -> float:
    return round(max(count, 0.0) / seconds, 3)


def _round(seconds: float) -> float:
    return float(f"{seconds:.4g}")
