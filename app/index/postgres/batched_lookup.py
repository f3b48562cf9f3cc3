"""Batched lookups of current objects by key.

The lookups of one tick of the event loop share one query.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.postgres.database import Connection, Database, Pool, query_with_retry
from sluice_s3.app.index.postgres.dialect import ESCAPE, escape, unescape
from sluice_s3.app.index.rows import Version

CONCURRENCY = 2
"""Maximum number of queries in flight. While they run, the next batch grows."""
MAX_KEYS = 256

_COLUMNS = ", ".join(Version._fields)
SELECT_ONE = f"SELECT 1, {_COLUMNS} FROM versions WHERE bucket_id = $1::bigint AND key = $2::text AND state = 1"  # noqa: S608
SELECT_MANY = f"""
SELECT given.place, found.* FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS given (bucket_id, key, place)
JOIN LATERAL (
    SELECT {_COLUMNS} FROM versions
    WHERE versions.bucket_id = given.bucket_id AND versions.key = given.key AND versions.state = 1 LIMIT 1
) AS found ON true
"""  # noqa: S608 - names of columns


class _Wanted(NamedTuple):
    bucket_id: int
    key: str
    future: asyncio.Future[Version | None]


class VersionLoader:
    """Loads the current versions of one index."""

    def __init__(self, link: Database, pool: Pool) -> None:
        self._link = link
        self._pool = pool
        self._wanted: deque[_Wanted] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._soon = False

    def find(self, bucket_id: int, key: str) -> asyncio.Future[Version | None]:
        """Return a future of the current object of a key.

        The future raises DomainError.
        """
        if self._link.away:
            raise self._link.unavailable()
        loop = asyncio.get_running_loop()
        wanted = _Wanted(bucket_id, escape(key), loop.create_future())
        self._wanted.append(wanted)
        if not self._soon:
            self._soon = True
            loop.call_soon(self._begin)
        return wanted.future

    def _begin(self) -> None:
        self._soon = False
        while self._wanted and len(self._running) < CONCURRENCY:
            batch = [self._wanted.popleft() for _ in range(min(len(self._wanted), MAX_KEYS))]
            self._running.add(asyncio.get_running_loop().create_task(self._run(batch)))

    async def _run(self, batch: list[_Wanted]) -> None:
        try:
            found = await query_with_retry(self._link, self._pool, lambda connection: self._ask(connection, batch))
        except DomainError as error:
            for wanted in batch:
                if not wanted.future.done():
                    wanted.future.set_exception(type(error)(**error.detail))
        else:
            for wanted, version in zip(batch, found, strict=True):
                if not wanted.future.done():
                    wanted.future.set_result(version)
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._running.discard(task)
            self._begin()

    async def _ask(self, connection: Connection, batch: list[_Wanted]) -> list[Version | None]:
        timeout = self._link.timeout
        if len(batch) == 1:
            rows = await connection.fetch(SELECT_ONE, batch[0].bucket_id, batch[0].key, timeout=timeout)
        else:
            buckets = [wanted.bucket_id for wanted in batch]
            rows = await connection.fetch(SELECT_MANY, buckets, [wanted.key for wanted in batch], timeout=timeout)
        answers: list[Version | None] = [None] * len(batch)
        for place, *row in rows:
            version = Version._make(row)
            answers[place - 1] = version._replace(key=unescape(version.key)) if ESCAPE in version.key else version
        return answers

    async def close(self) -> None:
        """Wait for the queries in flight."""
        while self._running:
            await asyncio.wait(self._running)
