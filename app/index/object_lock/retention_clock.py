"""The clock of retentions, limited by the time that passed since the server started.

A wall clock that is set forward would end every retention at once. A running server detects that: the kernel counts the
time since boot, suspended or not. It cannot detect a change of the wall clock before the start. The launcher passes its
start to its processes, so a replacement adopts no new time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

logger = logging.getLogger("sluice.index")

TOLERANCE_MS = 5 * 60 * 1000
"""Milliseconds, in all, that the wall clock may get ahead before it is ignored; NTP keeps a clock far below."""
_SINCE_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _steady_ms() -> int:
    return time.clock_gettime_ns(_SINCE_BOOT) // 1_000_000


class RetentionClock:
    """Milliseconds since the epoch, from two clocks that are compared since `began`."""

    def __init__(self, wall: Callable[[], int] = _wall_ms, steady: Callable[[], int] = _steady_ms) -> None:
        self._wall = wall
        self._steady = steady
        self.began = wall(), steady()
        self._told = False

    def now_ms(self) -> int:
        """Return the wall clock's time, or an earlier one when the wall clock jumped forward."""
        wall = self._wall()
        expected = self.began[0] + self._steady() - self.began[1]
        if wall <= expected + TOLERANCE_MS:
            self._told = False
            return wall
        if not self._told:
            self._told = True
            logger.error(
                "the wall clock is %d s ahead of what passed since the server started: retentions are judged "
                "without them until it is restarted",
                (wall - expected) // 1000,
            )
        return expected


clock = RetentionClock()
"""The clock of this process."""
