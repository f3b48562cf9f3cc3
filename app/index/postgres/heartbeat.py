"""Signs of life between processes that share an index and no kernel: who is gone, and which requests can still run.

Each writer counts up a number in its row, once a `PERIOD`. Two things come of it, and no clock is compared with another
host's for either:

- One whose number has not moved for a limit, all of which somebody was looking, is taken for gone. It is declared dead
  in a transaction before anything of its is touched (law 5); being wrong costs it its process and nothing else.
- Law 2 across hosts. A writer says with each sign the number of its last sign that began before every request that runs
  where it is (`settled`). Sign N+1 begins when sign N is committed. So, if somebody saw it at number M, its sign M + 2
  began after that look, and so did every request that runs there once it says that M + 2 is settled.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.cluster_rows import Beat
from sluice_s3.app.index.transactions.cluster import LIVE

logger = logging.getLogger("sluice.index")

BEAT_SECONDS = 1.0
"""Seconds between two signs."""
MAX_GAP_SECONDS = 3 * BEAT_SECONDS
"""Seconds without a look at the others after which their time begins anew: the index was away, or this process."""


def boottime_ms() -> int:
    """CLOCK_BOOTTIME in milliseconds, as requests are counted by."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Heartbeat:
    """Of one writer. `beat(number, settled)` gives a sign and returns those of all writers.

    `lost` is called when this writer is not live any more. `limit` is in seconds.
    """

    def __init__(
        self,
        incarnation: int,
        beat: Callable[[int, int], Awaitable[Iterable[Beat]]],
        limit: float,
        lost: Callable[[], None],
        clock: Callable[[], int] = boottime_ms,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._incarnation = incarnation
        self._beat = beat
        self._limit = limit
        self._lost = lost
        self._clock = clock
        self._now = now
        self.oldest: Callable[[], int] = clock
        """CLOCK_BOOTTIME in milliseconds: no request that began before runs in any process of this server."""
        self._number = 0
        self._settled = 0
        self._begun: deque[tuple[int, int]] = deque()
        """Signs that are not settled yet, and when each began."""
        self._confirmed = True
        self._looked = now()
        self._moved: dict[int, tuple[int, float]] = {}
        """The number of each writer, and since when it is that."""
        self._horizon = 0
        self._waited_for: Mapping[int, int] = {}
        self._waited_at = 0

    async def run(self) -> None:
        """Until cancelled."""
        told = False
        while True:
            try:
                async with asyncio.timeout(self._limit):
                    await self.once()
                told = False
            except (DomainError, TimeoutError) as error:
                if not told:
                    logger.warning("no sign of life can be given: %s, to be tried again", type(error).__name__)
                told = True
            except Exception:
                logger.exception("no sign of life could be given, to be tried again")
            await asyncio.sleep(BEAT_SECONDS)

    async def once(self) -> None:
        """Give a sign and look at the others. Raises DomainError."""
        self._number += 1
        began = self._clock()
        if self._confirmed:  # else the sign before may be committed after this began
            self._begun.append((self._number, began))
        oldest = self.oldest()
        while self._begun and self._begun[0][1] < oldest:
            self._settled = self._begun.popleft()[0]
        self._confirmed = False
        beats = list(await self._beat(self._number, self._settled))
        self._confirmed = True
        self._look(beats, began)

    def silent(self, incarnation: int) -> bool:
        """Whether a writer has given no sign for the limit, all of which this process was looking."""
        number = self._moved.get(incarnation)
        return number is not None and self._now() - number[1] >= self._limit and not self._looked_away()

    def horizon(self) -> int:
        """A time of this host's clock: no request that began before it runs in any server of this index."""
        return self._horizon

    def _looked_away(self) -> bool:
        return self._now() - self._looked > MAX_GAP_SECONDS

    def _look(self, beats: list[Beat], began: int) -> None:
        now = self._now()
        known = {} if self._looked_away() else self._moved
        self._looked = now
        self._moved = {}
        for beat in beats:
            before = known.get(beat.incarnation)
            same = before is not None and before[0] == beat.number
            self._moved[beat.incarnation] = before if same and before is not None else (beat.number, now)
        live = {beat.incarnation: beat for beat in beats if beat.state == LIVE}
        if self._incarnation not in live:
            self._lost()
            return
        if all(live[writer].settled >= sign for writer, sign in self._waited_for.items() if writer in live):
            if self._waited_at:
                self._horizon = self._waited_at + 1
            # what was committed before `began` was so before this look; another sign of each may have begun by then
            self._waited_for = {writer: beat.number + 2 for writer, beat in live.items()}
            self._waited_at = began
