"""Blobs that were found damaged: their readers get an error without reading them."""

from __future__ import annotations

import logging

from sluice_s3.app.errors import DataDamaged
from sluice_s3.app.index.interface import Index

logger = logging.getLogger("sluice.store")


class Quarantine:
    """The damaged blobs that the index lists, read again at each new epoch."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._generation = -1
        self._damaged: frozenset[str] = frozenset()

    async def check(self, locator: str) -> None:
        """Raise DataDamaged for a damaged blob."""
        generation = self._index.generation
        if generation != self._generation:
            self._damaged = frozenset([damaged for damaged, _, _ in await self._index.quarantine()])
            self._generation = generation
        if locator in self._damaged:
            self._alarm(locator)

    def _alarm(self, locator: str) -> None:
        logger.error("integrity alarm: %s is in quarantine", locator)
        raise DataDamaged()
