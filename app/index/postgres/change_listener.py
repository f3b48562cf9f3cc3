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

    def __init__(self, database: Database, changed: Callable[[], None]) -> None:
        self._database = database
        self._changed = changed
        self._known: str | None = None

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                connection = await self._database.connect()
            except DomainError:
                await asyncio.sleep(POLL_SECONDS / 4)
                continue
            try:
                await self._watch(connection)
            except Exception as error:
                logger.warning("index: the watch for changes ended: %s", type(error).__name__)
                if isinstance(error, TimeoutError):
                    self._database.mark_down()
            finally:
                connection.terminate()
                self._changed()

    async def _watch(self, connection: Connection) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        if not self._database.pooler:  # a pooler assigns another session each time
            await connection.add_listener(CHANNEL, lambda *_: self._changed())
        while not ended.is_set():
            async with asyncio.timeout(SILENCE_SECONDS), self._database.transaction(connection):
                generation = await connection.fetchval(COUNTER)
            if generation != self._known:
                self._known = generation
                self._changed()
            try:
                await asyncio.wait_for(ended.wait(), POLL_SECONDS)
            except TimeoutError:
                pass
