"""Removal of audit events that are older than `audit_retention_days`, or too many."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.sql.transaction import now_ms

INTERVAL_SECONDS = 300.0
"""Seconds between two looks."""
DAY_MS = 86_400_000
MOST_CHANGES = 1_000_000
"""Events of changes that are kept at most."""
MOST_REFUSALS = 100_000
"""Events of refused changes that are kept at most: anybody with a key can make these."""


class AuditRetention:
    """The job. `days` is how long events are kept."""

    def __init__(self, index: Index, days: int, now: Callable[[], float] = time.monotonic) -> None:
        self._index = index
        self._days = days
        self._now = now
        self._next = 0.0

    def run_again(self) -> None:
        """Make the next run look at once."""
        self._next = 0.0

    async def run_once(self) -> bool:
        """Remove what is due every five minutes, and return whether it was time. Raises DomainError."""
        if self._now() < self._next:
            return False
        until = now_ms() - self._days * DAY_MS
        while ids := await self._index.old_audit_events(until, MOST_CHANGES, MOST_REFUSALS):
            await self._index.forget_audit_events(ids)
        self._next = self._now() + INTERVAL_SECONDS
        return True
