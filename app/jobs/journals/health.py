"""The health of a store's journals.

While they fail, a lost index would lose ever more. The worker that writes them notes in the index when they have failed
for FAILING_SECONDS, and when they work again. Every worker reads that note about once a second; the store then refuses
changes (see `app.s3.journal_failures`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sluice_s3.app.errors import DomainError, IndexBehind, IndexForeign, LeaseLost, Overloaded, StoreFull, WriterDead
from sluice_s3.app.store.journals.failure_note import failure_note, read_failure, render_failure
from sluice_s3.app.store.store import JournalFailure, Store

logger = logging.getLogger("sluice.jobs")

FAILING_SECONDS = 5.0
"""Seconds of failing journals after which writes to their store stop."""
PASSING = (Overloaded, LeaseLost, WriterDead)
"""Errors that do not concern the journals: the index is busy, or another worker writes them now."""


class JournalHealth:
    """The health of one store's journals. `now` returns seconds of a monotonic clock."""

    def __init__(self, store: Store, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._note = failure_note(store.name)
        self._now = now
        self._since: float | None = None
        self._noted: JournalFailure | None = None
        self._checked = False

    async def look(self) -> None:
        """Read the note, in every worker. Raises DomainError; then the state does not change."""
        self._set(await read_failure(self._store.index, self._store.name))

    def _set(self, found: JournalFailure | None) -> None:
        failures, name = self._store.journal_failures, self._store.name
        if found == failures.get(name):
            return
        if found is None:
            del failures[name]
            logger.warning("store %s: its journals are written again, and it takes changes", name)
            return
        failures[name] = found
        logger.error("store %s takes no changes: %s", name, found.reason)
        if found.wrong_index:
            self._store.index.refuse(found.reason)

    async def failed(self, error: BaseException) -> None:
        """Note a failed write of the journals, once failures have lasted long enough."""
        if not isinstance(error, Exception) or isinstance(error, PASSING):
            return
        now = self._now()
        if self._since is None:
            self._since = now
        certain, reason = False, "its journals cannot be written"
        if isinstance(error, IndexBehind | IndexForeign):
            certain, reason = True, str(error.detail["reason"])
        if now - self._since < FAILING_SECONDS and not certain:
            return
        failure = JournalFailure(reason, full=isinstance(error, StoreFull), wrong_index=certain)
        if failure == self._noted:
            return
        try:
            await self._store.index.set_note(self._note, render_failure(failure))
        except DomainError:
            self._set(failure)  # at least in this process
            return
        self._noted = failure

    async def recovered(self) -> None:
        """Note a successful write of the journals."""
        self._since = None
        if self._checked and self._noted is None:
            return
        if await self._store.index.note(self._note):
            await self._store.index.set_note(self._note, "")
        self._noted, self._checked = None, True


async def clear_wrong_index(store: Store) -> None:
    """Clear a note that the index is the wrong one, after a start proved it current.

    An older state of the index may hold such a note of an earlier fault. Raises DomainError.
    """
    found = await read_failure(store.index, store.name)
    if found is not None and found.wrong_index:
        await store.index.set_note(failure_note(store.name), "")
