"""Expiry of rename tokens, by which a client repeats a rename of unknown outcome."""

from __future__ import annotations

import time
from collections.abc import Callable

from sluice_s3.app.index.interface import Index

RETAINED_SECONDS = 600.0
"""Seconds that a token is stored, and between two runs."""


class RenameTokenExpiry:
    """Expiry of tokens. `now` returns seconds since the epoch."""

    def __init__(self, index: Index, now: Callable[[], float] = time.time) -> None:
        self._index = index
        self._now = now
        self._next = now() + RETAINED_SECONDS

    async def run_once(self) -> None:
        """Delete the expired tokens. Raises DomainError."""
        now = self._now()
        if now >= self._next:
            await self._index.forget_renames(int((now - RETAINED_SECONDS) * 1000))
            self._next = now + RETAINED_SECONDS
