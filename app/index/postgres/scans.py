"""Long reads for jobs and fsck, on connections of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from sluice_s3.app.index.packs.rows import Pack
from sluice_s3.app.index.packs.transactions import all_packs
from sluice_s3.app.index.postgres import runner
from sluice_s3.app.index.postgres.database import Connection, Database, Pool
from sluice_s3.app.index.postgres.dialect import escape_all, prepare
from sluice_s3.app.index.postgres.errors import to_domain_error
from sluice_s3.app.index.reclaim import queries as reference_queries
from sluice_s3.app.index.schema.tables import SEALED, SWEPT
from sluice_s3.app.index.sql.dialect import Query
from sluice_s3.app.index.sql.transaction import Row, Transaction

T = TypeVar("T")

ROWS_PER_BATCH = 500
"""Rows to fetch at a time, so that requests do not wait long for the event loop."""


class Scans:
    """Runs long reads on the connections of `pool`, which are reserved for them."""

    def __init__(self, database: Database, pool: Pool) -> None:
        self._database = database
        self._pool = pool

    async def _on(self, ask: Callable[[Connection], Any], *, alone: bool = False) -> Any:
        """Run a read.

        `alone` is for a read that begins a transaction itself.
        """
        connection = await self._pool.acquire()
        try:
            if alone:
                answer = await ask(connection)
            else:
                async with self._database.transaction(connection):
                    answer = await ask(connection)
        except Exception as error:
            self._pool.drop(connection)
            raise to_domain_error(error) from error
        except BaseException:
            self._pool.drop(connection)
            raise
        self._pool.release(connection)
        return answer

    async def run(self, transaction: Transaction[T], *, snapshot: bool) -> T:
        """Run a transaction that only reads.

        With `snapshot`, it runs in one snapshot of the index.
        """
        drive = runner.snapshot if snapshot else runner.read
        answer: T = await self._on(lambda connection: drive(connection, transaction), alone=snapshot)
        return answer

    async def _stream(self, connection: Connection, query: Query, parameters: Row) -> AsyncIterator[Row]:
        """Yield the rows of a query in one snapshot, with one batch in memory.

        Needs a transaction that has begun.
        """
        sql, plain = prepare(query)
        cursor = await connection.cursor(sql, *escape_all(parameters))
        while rows := await cursor.fetch(ROWS_PER_BATCH):
            for row in plain(rows) if plain else rows:
                yield row

    async def referenced_bytes(self, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
        """See `Index.referenced_bytes`."""
        sizes: dict[str, int] = {}

        async def read(connection: Connection) -> None:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                bound = reference_queries.REFERENCED_LOCATORS.bind(prefixes=prefixes)
                async for prefix, locator in self._stream(connection, *bound):
                    sizes[prefix] = sizes.get(prefix, 0) + size_of(locator)

        await self._on(read, alone=True)
        return sizes

    async def live_bytes(self, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
        """See `Index.live_bytes`."""
        live_packs: list[tuple[Pack, int]] = []

        async def read(connection: Connection) -> None:
            live: dict[int, int] = {}
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                written = {number for (number,) in await connection.fetch(prepare(reference_queries.WRITTEN).sql)}
                packs = [pack for pack in await runner.read(connection, all_packs()) if pack.sealed in (SEALED, SWEPT)]
                async for (locator,) in self._stream(connection, *reference_queries.PACKED_ONCE.bind()):
                    location = packed(locator)
                    if location is not None:
                        live[location[0]] = live.get(location[0], 0) + location[1]
            live_packs.extend((pack, live.get(pack.id, 0)) for pack in packs if pack.id not in written)

        await self._on(read, alone=True)
        return live_packs
