"""Batched lookups of current objects by key.

The lookups of one tick of the event loop share one query.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.postgres.database import Connection, Database, Pool, query_with_retry
from sluice_s3.app.index.postgres.dialect import ESCAPE, escape, unescape
from sluice_s3.app.index.postgres.errors import to_domain_error

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


class _Lookup(NamedTuple):
    bucket_id: int
    key: str
    future: asyncio.Future[Version | None]


class VersionLoader:
    """Loads the current versions of one index."""

    def __init__(self, database: Database, pool: Pool) -> None:
        self._database = database
        self._pool = pool
        self._pending: deque[_Lookup] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._scheduled = False

    def find(self, bucket_id: int, key: str) -> asyncio.Future[Version | None]:
        """Return a future of the current object of a key.

        The future raises DomainError.
        """
        if self._database.is_down:
            raise self._database.unavailable()
        loop = asyncio.get_running_loop()
        lookup = _Lookup(bucket_id, escape(key), loop.create_future())
        self._pending.append(lookup)
        if not self._scheduled:
            loop.call_soon(self._start_batches)
            self._scheduled = True  # not before: without memory nothing would start them any more
        return lookup.future

    def _start_batches(self) -> None:
        self._scheduled = False
        while self._pending and len(self._running) < CONCURRENCY:
            batch = [self._pending.popleft() for _ in range(min(len(self._pending), MAX_KEYS))]
            try:
                self._running.add(asyncio.get_running_loop().create_task(self._run(batch)))
            except Exception as error:
                _fail(batch, error)

    async def _run(self, batch: list[_Lookup]) -> None:
        try:
            versions = await query_with_retry(
                self._database, self._pool, lambda connection: self._query(connection, batch)
            )
        except Exception as error:  # of memory, too: nothing else ends these lookups
            _fail(batch, error)
        else:
            for lookup, version in zip(batch, versions, strict=True):
                if not lookup.future.done():
                    lookup.future.set_result(version)
        finally:
            task = asyncio.current_task()
            if task is not None:
                self._running.discard(task)
            self._start_batches()

    async def _query(self, connection: Connection, batch: list[_Lookup]) -> list[Version | None]:
        timeout = self._database.timeout
        if len(batch) == 1:
            rows = await connection.fetch(SELECT_ONE, batch[0].bucket_id, batch[0].key, timeout=timeout)
        else:
            buckets = [lookup.bucket_id for lookup in batch]
            rows = await connection.fetch(SELECT_MANY, buckets, [lookup.key for lookup in batch], timeout=timeout)
        versions: list[Version | None] = [None] * len(batch)
        for position, *row in rows:
            version = Version._make(row)
            versions[position - 1] = version._replace(key=unescape(version.key)) if ESCAPE in version.key else version
        return versions

    async def close(self) -> None:
        """Wait for the queries in flight."""
        while self._running:
            await asyncio.wait(self._running)


def _fail(batch: list[_Lookup], error: Exception) -> None:
    found = to_domain_error(error)
    for lookup in batch:
        if not lookup.future.done():
            lookup.future.set_exception(type(found)(**found.detail))
