"""Blobs that were found damaged: their readers are answered at once, without reading them."""

from __future__ import annotations

import logging

from app.errors import DataDamaged, NotNow
from app.index.base import Index

logger = logging.getLogger("sluice.store")


class Quarantine:
    """What the index knows of damaged blobs, read anew whenever its generation moved."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._generation = -1
        self._damaged: frozenset[str] = frozenset()

    def check_now(self, locator: str) -> None:
        """Raises DataDamaged for a damaged blob, NotNow when the list must be read first."""
        if self._index.generation != self._generation:
            raise NotNow
        if locator in self._damaged:
            self._alarm(locator)

    async def check(self, locator: str) -> None:
        """Raises DataDamaged for a damaged blob."""
        generation = self._index.generation
        if generation != self._generation:
            self._damaged = frozenset([damaged for damaged, _, _ in await self._index.quarantine()])
            self._generation = generation
        if locator in self._damaged:
            self._alarm(locator)

    def _alarm(self, locator: str) -> None:
        logger.error("integrity alarm: %s is in quarantine", locator)
        raise DataDamaged()
