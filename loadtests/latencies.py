"""Times of many requests in little memory: counts in bands that are one percent wide."""

from __future__ import annotations

import math
from collections.abc import Iterable

FLOOR_SECONDS = 1e-6
"""Shorter times count as this."""
BAND = 1.01
"""How much longer than its shortest time a band's longest is."""
_LOG_BAND = math.log(BAND)


class Latencies:
    """A histogram of times in seconds, exact to half a percent."""

    def __init__(self, pairs: Iterable[tuple[int, int]] = ()) -> None:
        self._counts: dict[int, int] = {}
        self.count = 0
        for band, count in pairs:
            self._add_band(band, count)

    def add(self, seconds: float) -> None:
        """Count one time."""
        self._add_band(_band_of(seconds), 1)

    def merge(self, other: Latencies) -> None:
        """Count all times of another histogram as well."""
        for band, count in other.pairs():
            self._add_band(band, count)

    def pairs(self) -> list[tuple[int, int]]:
        """Return bands and counts, as the constructor takes them."""
        return list(self._counts.items())

    def percentile(self, share: float) -> float:
        """Return the time in seconds that `share` of all do not exceed; 0 without times."""
        left = math.ceil(self.count * share)
        for band in sorted(self._counts):
            left -= self._counts[band]
            if left <= 0:
                return _seconds_of(band)
        return 0.0

    def without_omission(self, interval: float) -> Latencies:
        """Return the times there would have been if an operation had been due every `interval` seconds.

        A client that waits for an answer asks for nothing meanwhile: a stall of a second counts once in a closed loop,
        though it would have held up all operations that were due in that second. Each of these is added, with the time
        from when it was due to the end of the stall (HdrHistogram's correction of coordinated omission).
        """
        found = Latencies(self.pairs())
        if interval <= FLOOR_SECONDS:
            return found
        for band, count in self.pairs():
            left = _seconds_of(band) - interval
            while left > 0:
                found._add_band(_band_of(left), count)
                left -= interval
        return found

    def _add_band(self, band: int, count: int) -> None:
        self._counts[band] = self._counts.get(band, 0) + count
        self.count += count


def _band_of(seconds: float) -> int:
    return int(math.log(max(seconds, FLOOR_SECONDS) / FLOOR_SECONDS) / _LOG_BAND)


def _seconds_of(band: int) -> float:
    return float(FLOOR_SECONDS * BAND ** (band + 0.5))
