"""The pace of work that was put off: it yields to requests, and never falls behind without bound.

Jobs work in short steps and wait after each, while the workers of this server answer requests:

- Garbage goes by a share of what is due, up to a rate, and has a deadline. So under a constant load it goes as fast as
  it comes, on a relaxed store mostly before the kernel has written it to the disk, and much of it at once goes slower.
- A job without deadlines works for a share of the time. So a step that takes long, because requests want the same disk
  or cores, is followed by a longer wait. The share grows with the time that the job has been behind.

Without requests nothing waits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from math import ceil, inf
from typing import TypeVar

T = TypeVar("T")

LEAST_SHARE = 0.1
"""Share of the time that a job works beside requests, however much they are."""
SPREAD_SECONDS = 60.0
"""Seconds over which due garbage is spread at most: it is removed this long after it was due at the latest."""
LEAST_SPREAD_SECONDS = 10.0
"""Seconds in which as much garbage goes as is due, at least. With a short grace they are less than the 30 s after which
Linux writes a dirty page (`vm.dirty_expire_centisecs`): an unsynced body that is removed before costs no write."""
SPREAD_RATE = 2000.0
"""Items of garbage that go in a second at most, until the deadline."""
STEP_SECONDS = 0.05
"""Seconds between two steps of garbage, at least."""
ITEMS_PER_STEP = 32
"""Items of a step that need not wait: if requests come meanwhile, they have to wait for it."""
SAMPLE_SECONDS = 0.1
"""Seconds between two readings of the load at least."""
STALE_SECONDS = 2.0
"""Seconds over which a load means nothing: all requests may have come at the end."""
IDLE_LOAD = 0.01
"""Requests in flight, on average, up to which a server is idle: health checks are no load."""
LONGEST_WAIT = 5.0
"""Seconds of a wait at most, also after a step that hung."""
LONGEST_PAUSE = 1.0
"""Seconds between two steps of garbage at most, however little it is: requests may have ended."""


GATE: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("gate", default=None)
"""Where the job of this task is held while it is paused, see `app.jobs.board`."""


async def _pass_gate() -> None:
    gate = GATE.get()
    if gate is not None:
        await gate()


def spread_seconds(due: int) -> float:
    """Return in how many seconds as many items of garbage go as are due."""
    return min(max(due / SPREAD_RATE, LEAST_SPREAD_SECONDS), SPREAD_SECONDS)


class RequestLoad:
    """Tells whether a server is busy. Seconds of requests a second are the requests in flight (Little's law).

    `read` returns the requests that its workers are answering, as they last published it, and the seconds that all
    requests took that they have answered.
    """

    def __init__(self, read: Callable[[], tuple[float, float]], now: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._now = now
        self._read_at = float("-inf")
        self._seconds = 0.0
        self._busy = True

    def busy(self) -> bool:
        """Return whether requests were answered lately; True while that is unknown."""
        now = self._now()
        elapsed = now - self._read_at
        if elapsed >= SAMPLE_SECONDS:
            running, seconds = self._read()
            in_flight = (seconds - self._seconds) / elapsed
            self._busy = elapsed > STALE_SECONDS or running > 0 or in_flight > IDLE_LOAD
            self._read_at, self._seconds = now, seconds
        return self._busy


def never_busy() -> bool:
    """Return False: for commands, which nobody's requests wait for."""
    return False


class Pacer:
    """The pace of one job, which several of its tasks may share.

    `busy` says whether requests are being answered. `rate` is the limit of what is counted each second, 0 for none. A
    job that has been behind for `most_lag` seconds does not yield any more; with infinity it always does.
    """

    def __init__(
        self,
        busy: Callable[[], bool] = never_busy,
        rate: float = 0.0,
        *,
        most_lag: float = inf,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] | None = None,
    ) -> None:
        self._busy = busy
        self._rate = rate
        self._most_lag = most_lag
        self._now = now
        self._sleep = sleep or asyncio.sleep
        self._free = 0.0
        """When the rate allows more."""

    async def wait(self, seconds: float, count: int = 0, lag: float = 0.0) -> None:
        """Wait after a step that took `seconds`.

        The step counts for `count` of the rate. `lag` is for how many seconds the job has been behind.
        """
        now = self._now()
        pause = 0.0
        if self._rate and count:
            self._free = max(self._free, now) + count / self._rate
            pause = self._free - now
        if self._busy():
            share = LEAST_SHARE + (1 - LEAST_SHARE) * min(lag / self._most_lag, 1.0)
            pause = max(pause, min(seconds * (1 - share) / share, LONGEST_WAIT))
        if pause > 0:
            await self._sleep(pause)
        await _pass_gate()

    async def spread(
        self,
        items: Sequence[T],
        step: Callable[[Sequence[T]], Awaitable[object]],
        slot: Callable[[], float],
        least: int = 1,
    ) -> None:
        """Call `step` with all items, some at a time, but at least `least`.

        `slot` returns how many seconds an item may take, 0 when there is no time to wait.
        """
        first = 0
        while first < len(items):
            await _pass_gate()
            seconds = slot() if self._busy() else 0.0
            count = max(least, min(ITEMS_PER_STEP, ceil(STEP_SECONDS / seconds)) if seconds else ITEMS_PER_STEP)
            taken = items[first : first + count]
            started = self._now()
            await step(taken)
            pause = len(taken) * seconds - (self._now() - started)
            first += count
            if pause > 0 and self._busy():
                await self._sleep(min(pause, LONGEST_PAUSE))
