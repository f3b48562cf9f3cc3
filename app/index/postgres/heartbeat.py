"""Heartbeats between processes that share an index but no kernel.

They tell which writers are gone, and which requests can still run. Each writer increments a number in its row, once per
`BEAT_SECONDS`. That serves these purposes, and none compares clocks of two hosts:

- A writer whose number has not changed for a limit is considered gone, if another process was observing it for the
  whole limit. A transaction declares it dead before any of its data is touched (law 5). A wrong verdict costs that
  process its life and nothing else.
- Law 2 across hosts. A writer that counts as dead may still read: it is only cut off from the index. After CUT_LIMITS
  without a confirmed heartbeat it cuts its requests, and for ORPHANED_LIMITS after the verdict the others remove
  nothing. The verdict takes one limit itself, so two limits are left for a process that is late.
- Law 2 among live writers. With each heartbeat, a writer reports the number of its last heartbeat that began before
  every request that still runs there (`settled`). Heartbeat N+1 begins after heartbeat N is committed. So if an
  observer saw number M, heartbeat M + 2 began after that observation. Once M + 2 is settled, every request that runs
  there began after the observation, too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.cluster.rows import Beat
from sluice_s3.app.index.cluster.transactions import LIVE

logger = logging.getLogger("sluice.index")

BEAT_SECONDS = 1.0
"""Seconds between two heartbeats."""
MAX_GAP_SECONDS = 3 * BEAT_SECONDS
"""Seconds without an observation of the others after which their timers restart. The index or this process was
unavailable for that time."""
CUT_LIMITS = 3
"""Limits without a confirmed heartbeat after which a writer cuts its requests."""
ORPHANED_LIMITS = 4
"""Limits after a writer is seen dead for which its requests may still read."""


def boottime_ms() -> int:
    """Return CLOCK_BOOTTIME in milliseconds.

    The start times of requests use the same clock.
    """
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Heartbeat:
    """The heartbeat of one writer.

    `beat(number, settled)` writes a heartbeat and returns those of all writers. `lost` is called when this writer is no
    longer live. `cut` is called with a CLOCK_BOOTTIME in milliseconds: the requests of this server that began before it
    must end. `limit` is in seconds.
    """

    def __init__(
        self,
        incarnation: int,
        beat: Callable[[int, int], Awaitable[Iterable[Beat]]],
        limit: float,
        lost: Callable[[], None],
        cut: Callable[[int], None] = lambda _: None,
        clock: Callable[[], int] = boottime_ms,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._incarnation = incarnation
        self._beat = beat
        self._limit = limit
        self._lost = lost
        self._cut = cut
        self._clock = clock
        self._now = now
        self.oldest: Callable[[], int] = clock
        """Returns a CLOCK_BOOTTIME in milliseconds, before which no request began that still runs in this server."""
        self._number = 0
        self._settled = 0
        self._started_beats: deque[tuple[int, int]] = deque()
        """Heartbeats that are not settled yet, and the begin of each in milliseconds of CLOCK_BOOTTIME."""
        self._confirmed = True
        self._confirmed_at = clock()
        """The begin of the last heartbeat that found this writer live, in milliseconds of CLOCK_BOOTTIME."""
        self._observed_at = now()
        self._dead_since: dict[int, float] = {}
        """By dead writer, the time at which it was first observed as dead."""
        self._held_until = 0.0
        """The time until which the horizon stays, since a dead writer may have come and gone unobserved."""
        self._moved: dict[int, tuple[int, float]] = {}
        """The number of each writer, and the time at which it was first observed."""
        self._horizon = 0
        self._waited_for: Mapping[int, int] = {}
        self._waited_at = 0

    async def run(self) -> None:
        """Send heartbeats until cancelled."""
        logged = False
        while True:
            try:
                async with asyncio.timeout(self._limit):
                    await self.once()
                logged = False
            except (DomainError, TimeoutError) as error:
                if not logged:
                    logger.warning("no sign of life can be given: %s, to be tried again", type(error).__name__)
                logged = True
            except Exception:
                logger.exception("no sign of life could be given, to be tried again")
            await asyncio.sleep(BEAT_SECONDS)

    async def watch(self) -> None:
        """Cut the requests of this server while it may count as dead; until cancelled."""
        is_alone = False
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            was_alone, is_alone = is_alone, self.cut_orphans()
            if is_alone and not was_alone:
                logger.error("no sign of life was given for too long: requests that read are cut off")

    def cut_orphans(self) -> bool:
        """Cut the requests of this server if it may count as dead; return whether that is so.

        Those that began within the last limit may go on: the index answered them meanwhile, or refuses them.
        """
        now = self._clock()
        if now - self._confirmed_at <= 1000 * CUT_LIMITS * self._limit:
            return False
        self._cut(now - round(1000 * self._limit))
        return True

    async def once(self) -> None:
        """Write a heartbeat and observe the other writers.

        Raises DomainError.
        """
        self._number += 1
        began = self._clock()
        if self._confirmed:  # else the previous heartbeat may be committed after this one began
            self._started_beats.append((self._number, began))
        oldest = self.oldest()
        while self._started_beats and self._started_beats[0][1] < oldest:
            self._settled = self._started_beats.popleft()[0]
        self._confirmed = False
        beats = list(await self._beat(self._number, self._settled))
        self._confirmed = True
        self._observe(beats, began)

    def is_silent(self, incarnation: int) -> bool:
        """Return whether a writer has timed out.

        This process must have observed it for the whole limit.
        """
        number = self._moved.get(incarnation)
        return number is not None and self._now() - number[1] >= self._limit and not self._looked_away()

    def is_orphaned(self, incarnation: int) -> bool:
        """Return whether requests of a dead writer may still read, as far as this process has observed it."""
        since = self._dead_since.get(incarnation)
        return since is None or self._now() - since < ORPHANED_LIMITS * self._limit

    def horizon(self) -> int:
        """Return the horizon, a time of this host's clock in milliseconds.

        No request that began before it runs in any server of this index.
        """
        return self._horizon

    def _looked_away(self) -> bool:
        return self._now() - self._observed_at > MAX_GAP_SECONDS

    def _observe(self, beats: list[Beat], began: int) -> None:
        now = self._now()
        known = {} if self._looked_away() else self._moved
        if now - self._observed_at > ORPHANED_LIMITS * self._limit / 2:  # within this no row of a dead one is removed
            self._held_until = now + ORPHANED_LIMITS * self._limit
        self._observed_at = now
        self._moved = {}
        for beat in beats:
            before = known.get(beat.incarnation)
            same = before is not None and before[0] == beat.number
            self._moved[beat.incarnation] = before if same and before is not None else (beat.number, now)
        live = {beat.incarnation: beat for beat in beats if beat.state == LIVE}
        if self._incarnation not in live:
            self._lost()
            return
        self._confirmed_at = began
        self._dead_since = {
            beat.incarnation: self._dead_since.get(beat.incarnation, now) for beat in beats if beat.state != LIVE
        }
        if now < self._held_until or any(map(self.is_orphaned, self._dead_since)):
            return
        if all(live[writer].settled >= sign for writer, sign in self._waited_for.items() if writer in live):
            if self._waited_at:
                self._horizon = self._waited_at + 1
            # all commits before `began` precede this observation; another one of each writer may have begun by then
            self._waited_for = {writer: beat.number + 2 for writer, beat in live.items()}
            self._waited_at = began
