"""The days of lifecycle rules: when a number of days has passed.

Times are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import NamedTuple

REAL_DAY_SECONDS = 86_400
LAST_DAY = 253_402_214_400_000
"""The last midnight that a date of HTTP or XML can express: 9999-12-31, in milliseconds since the epoch."""


class LifecycleCalendar(NamedTuple):
    """The length of a day."""

    seconds: int = REAL_DAY_SECONDS
    """Seconds of a day; shorter in tests. A shorter day has no midnight, so nothing is rounded."""

    def after(self, since: int, days: int) -> int:
        """Return the time that many days later, rounded up to midnight UTC as S3 does.

        Never later than `LAST_DAY`.
        """
        length = self.seconds * 1000
        due = min(since + days * length, LAST_DAY)
        return due if self.seconds != REAL_DAY_SECONDS else -(-due // length) * length

    @property
    def period(self) -> int:
        """Milliseconds between two scans of a bucket: what is due changes at midnight."""
        return self.seconds * 1000 if self.seconds == REAL_DAY_SECONDS else max(self.seconds * 100, 1000)
