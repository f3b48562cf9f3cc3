"""How many requests the server answers: those who send them disturb a load test, and are disturbed."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable

STALE_SECONDS = 20.0
LOOK_SECONDS = 0.5
_REQUESTS = re.compile(rb"^sluice_requests_total\{[^}]*\} (\d+)$", re.MULTILINE)


def count_requests(metrics: bytes) -> int:
    """Return the requests that all processes have answered, from their metrics."""
    return sum(map(int, _REQUESTS.findall(metrics)))


class Traffic:
    """Requests a second, from one look to the next. `read` returns the metrics of all processes."""

    def __init__(self, read: Callable[[], bytes], now: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._now = now
        self._looks: list[tuple[float, int]] = []
        self.rate = 0.0

    def look(self, least_seconds: float = 1.0) -> float:
        """Return requests a second since the last look; the rate before if that was too short ago."""
        now = self._now()
        if self._looks and now - self._looks[-1][0] < least_seconds:
            return self.rate
        count = count_requests(self._read())
        if self._looks:
            before, counted = self._looks[-1]
            self.rate = max(0.0, (count - counted) / (now - before))
        self._looks = [(now, count)]
        return self.rate

    async def current(self) -> float:
        """Return requests a second of the last moments. It takes a moment when nobody has looked for a while."""
        if not self._looks or self._now() - self._looks[-1][0] > STALE_SECONDS:
            self.look(0)
            await asyncio.sleep(LOOK_SECONDS)
        return self.look(LOOK_SECONDS / 2)


class Mean:
    """The mean and the highest of some values."""

    def __init__(self) -> None:
        self._sum, self._count, self.most = 0.0, 0, 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._sum, self._count, self.most = self._sum + value, self._count + 1, max(self.most, value)

    @property
    def mean(self) -> float:
        """The mean, 0 of none."""
        return self._sum / self._count if self._count else 0.0
