"""Time that stands still until a test moves it, in the place of the module `time`."""

from __future__ import annotations


class StoppedClock:
    """Both clocks of `time` that code reads; `now` is seconds."""

    now = 1_000_000.0

    def time(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now
