"""Forgets the tokens of renames, by which a client asks again for what it does not know was done."""

from __future__ import annotations

import time
from collections.abc import Callable

from app.index.base import Index

KEPT = 600.0
"""Seconds that a token is known, and between two looks."""


class Tokens:
    """`now` gives seconds since the epoch."""

    def __init__(self, index: Index, now: Callable[[], float] = time.time) -> None:
        self._index = index
        self._now = now
        self._next = now() + KEPT

    async def run_once(self) -> None:
        """Raises DomainError."""
        now = self._now()
        if now >= self._next:
            await self._index.forget_renames(int((now - KEPT) * 1000))
            self._next = now + KEPT
