"""Looks whether a store has passed a limit of its settings; then it takes no more, and everything else goes on.

Every worker asks the filesystem how much is free. How much the buckets hold is counted by one of them and noted in the
index, from where all take it: a limit is passed by what is written between two looks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from app.settings import StoreSettings
from app.store.calls import driver_calls
from app.store.store import Store

logger = logging.getLogger("sluice.jobs")

SHARE = 20
"""Counting is not repeated before this many times its own duration have passed: 5 % of one thread."""


class Space:
    """The limits of one store."""

    def __init__(
        self,
        store: Store,
        settings: StoreSettings,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._most = settings.max_bytes
        self._least_free = settings.min_free
        self._note = store.stored_note
        self._now = now
        self._next = now()

    async def look(self) -> None:
        """Look, in every worker, and open or close the store. Raises DomainError; then it stays as it is."""
        full = False
        if self._least_free:
            with driver_calls():
                full = (await self._store.driver.usage()).free < self._least_free
        if self._most is not None:
            full = int(await self._store.index.note(self._note) or 0) >= self._most or full
        if full != self._store.full:
            logger.warning("store %s: %s", self._store.name, "it is full" if full else "there is space again")
        self._store.full = full

    async def count(self) -> None:
        """Count what the buckets hold, in one worker. Raises DomainError."""
        began = self._now()
        if self._most is None or began < self._next:
            return
        trees = [name for name, store in self._store.all.items() if store.tree is not None]
        stored = str(await self._store.index.stored_bytes(self._store.name, self._store.classes, trees))
        self._next = self._now() + SHARE * (self._now() - began)
        if stored != await self._store.index.note(self._note):
            await self._store.index.set_note(self._note, stored)
