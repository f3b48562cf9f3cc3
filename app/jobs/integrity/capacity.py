"""The capacity limits of a store, past which it refuses writes and nothing else.

Every worker reads the free space from the filesystem. One worker counts the bytes of the buckets and notes them in the
index, where all read it. Writes between two checks can exceed a limit.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sluice_s3.app.settings import StoreSettings
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.jobs")

COUNT_PAUSE_FACTOR = 20
"""A count is repeated only after this many times its own duration: 5 % of one thread."""


class CapacityMonitor:
    """The capacity limits of one store."""

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
        """Check the limits, in every worker, and open or close the store.

        Raises DomainError; then the state does not change.
        """
        full = False
        if self._least_free:
            with translate_driver_errors():
                full = (await self._store.driver.usage()).free < self._least_free
        if self._most is not None:
            full = int(await self._store.index.note(self._note) or 0) >= self._most or full
        if full != self._store.full:
            logger.warning("store %s: %s", self._store.name, "it is full" if full else "there is space again")
        self._store.full = full

    def count_again(self) -> None:
        """Make the next count take place at once."""
        self._next = self._now()

    async def count(self) -> bool:
        """Count what the buckets hold, in one worker; return whether that was due. Raises DomainError."""
        began = self._now()
        if self._most is None or began < self._next:
            return False
        trees = [name for name, store in self._store.all.items() if store.tree is not None]
        stored = str(await self._store.index.stored_bytes(self._store.name, self._store.classes, trees))
        self._next = self._now() + COUNT_PAUSE_FACTOR * (self._now() - began)
        if stored != await self._store.index.note(self._note):
            await self._store.index.set_note(self._note, stored)
        return True
