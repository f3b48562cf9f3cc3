"""Time and bandwidth: waiting until a moment, and a pipe that many share."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from dataclasses import dataclass

PIECE_SECONDS = 0.002
PIECE_BYTES = 64 << 10
PR_SET_TIMERSLACK = 29
SWITCH_SECONDS = 0.0005


def be_punctual() -> None:
    """Have threads that are created from now on wake up on time.

    By default they may wake up 50 µs late, or 5 ms when they wait for the interpreter.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)


def wait_until(moment: float) -> None:
    """Sleep until `time.perf_counter()` reaches `moment`."""
    left = moment - time.perf_counter()
    if left > 0:
        time.sleep(left)


@dataclass(frozen=True)
class Credits:
    """Burst credits: with them a pipe has its rate, without them `baseline`.

    Bytes, and bytes a second.
    """

    most: float
    refill: float
    baseline: float


class Pipe:
    """A bandwidth that is shared evenly.

    A transfer larger than a piece queues each piece behind the pieces of others. `rate` is in bytes a second; 0 has no
    limit.
    """

    def __init__(self, rate: float, credits: Credits | None = None) -> None:
        self.rate = rate
        self.credits = credits
        self.left = credits.most if credits else 0.0
        self._lock = threading.Lock()
        self._free = 0.0
        self._counted = time.perf_counter()

    def reserve(self, count: int, at: float) -> float:
        """Return the moment when `count` bytes that arrive at the moment `at` are through."""
        if not self.rate:
            return at
        with self._lock:
            self._free = max(self._free, at) + count / self._rate_for(count)
            return self._free

    def move(self, count: int, at: float) -> float:
        """Move bytes that arrive at the moment `at`.

        Waits until all but the last piece are through, and returns the moment when the last is.
        """
        piece = max(PIECE_BYTES, int(self.rate * PIECE_SECONDS))
        while count > 0:
            wait_until(at)
            at = self.reserve(min(piece, count), at)
            count -= piece
        return at

    def free_at(self) -> float:
        """Return the moment when all queued bytes are through."""
        with self._lock:
            return self._free

    def _rate_for(self, count: int) -> float:
        if self.credits is None:
            return self.rate
        now = time.perf_counter()
        self.left = min(self.credits.most, self.left + (now - self._counted) * self.credits.refill)
        self._counted = now
        if self.left < count:
            return self.credits.baseline
        self.left -= count
        return self.rate
