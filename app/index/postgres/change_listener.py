"""Notices changes that other processes make.

NOTIFY reports a change at once. Where NOTIFY cannot reach, a counter reports it within a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.postgres.database import Connection, Database

logger = logging.getLogger("sluice.index")

POLL_SECONDS = 1.0
SILENCE_SECONDS = 3.0
"""Seconds that a read of the counter may take before Postgres counts as unavailable."""
COUNTER = "SELECT value FROM meta WHERE name = 'generation'"
CHANNEL = "sluice"


class ChangeListener:
    """Calls `changed` for every change of a key, bucket or setting.

    Also calls it when changes may have been missed.
    """

    def __init__(self, link: Database, changed: Callable[[], None]) -> None:
        self._link = link
        self._changed = changed
        self._known: str | None = None

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                connection = await self._link.connect()
            except DomainError:
                await asyncio.sleep(POLL_SECONDS / 4)
                continue
            try:
                await self._watch(connection)
            except Exception as error:
                logger.warning("index: the watch for changes ended: %s", type(error).__name__)
                if isinstance(error, TimeoutError):
                    self._link.failed()
            finally:
                connection.terminate()
                self._changed()

    async def _watch(self, connection: Connection) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        if not self._link.pooler:  # a pooler assigns another session each time
            await connection.add_listener(CHANNEL, lambda *_: self._changed())
        while not ended.is_set():
            async with asyncio.timeout(SILENCE_SECONDS), self._link.transaction(connection):
                found = await connection.fetchval(COUNTER)
            if found != self._known:
                self._known = found
                self._changed()
            try:
                await asyncio.wait_for(ended.wait(), POLL_SECONDS)
            except TimeoutError:
                pass
