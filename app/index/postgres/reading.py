"""Long readings: what the jobs and fsck ask, on connections of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from app.index import decisions, holders
from app.index.long_methods import LongMethods
from app.index.postgres import running
from app.index.postgres.dialect import escaped_all, prepared
from app.index.postgres.errors import translated
from app.index.postgres.link import Connection, Link, Pool
from app.index.rows import Pack
from app.index.schema import DEFAULT, SEALED, SWEPT
from app.index.steps import Row, Transaction
from app.index.transactions.packs import all_packs
from app.index.words import Query

T = TypeVar("T")

BATCH = 500
"""Rows that are fetched at a time, so that no other request waits long for the loop."""


class Readings(LongMethods):
    """A part of `PostgresIndex`."""

    link: Link
    long: Pool
    """Connections for readings that may take long."""

    async def _on(self, ask: Callable[[Connection], Any], *, alone: bool = False) -> Any:
        """`alone` for what begins a transaction itself."""
        connection = await self.long.acquire()
        try:
            if alone:
                answer = await ask(connection)
            else:
                async with self.link.transaction(connection):
                    answer = await ask(connection)
        except Exception as error:
            self.long.drop(connection)
            raise translated(error) from error
        except BaseException:
            self.long.drop(connection)
            raise
        self.long.release(connection)
        return answer

    async def _long(self, transaction: Transaction[T], *, together: bool = False) -> T:
        """See `LongMethods`."""
        drive = running.snapshot if together else running.read
        answer: T = await self._on(lambda connection: drive(connection, transaction), alone=together)
        return answer

    async def _stream(self, connection: Connection, query: Query, parameters: Row) -> AsyncIterator[Row]:
        """Rows of a query in one state, of which a batch is in memory. In a transaction that has begun."""
        sql, plain = prepared(query)
        cursor = await connection.cursor(sql, *escaped_all(parameters))
        while rows := await cursor.fetch(BATCH):
            for row in plain(rows) if plain else rows:
                yield row

    async def held_bytes(self, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
        """See `Index.held_bytes`."""
        found: dict[str, int] = {}

        async def ask(connection: Connection) -> None:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                wanted = holders.HELD_LOCATORS.given(prefixes=prefixes)
                async for prefix, locator in self._stream(connection, *wanted):
                    found[prefix] = found.get(prefix, 0) + size_of(locator)

        await self._on(ask, alone=True)
        return found

    async def live_bytes(self, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
        """See `Index.live_bytes`."""
        found: list[tuple[Pack, int]] = []

        async def ask(connection: Connection) -> None:
            live: dict[int, int] = {}
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                written = {number for (number,) in await connection.fetch(prepared(holders.WRITTEN).sql)}
                packs = [pack for pack in await running.read(connection, all_packs()) if pack.sealed in (SEALED, SWEPT)]
                async for (locator,) in self._stream(connection, *holders.PACKED_ONCE.given()):
                    place = packed(locator)
                    if place is not None:
                        live[place[0]] = live.get(place[0], 0) + place[1]
            found.extend((pack, live.get(pack.id, 0)) for pack in packs if pack.id not in written)

        await self._on(ask, alone=True)
        return found

    async def changes(
        self, after: int, until: int | None = None, store: str = DEFAULT, completed: int | None = None
    ) -> decisions.Changes:
        """See `Index.changes`. Numbers are not committed in their order."""
        if until is None:
            until = await self.barrier()
        return await super().changes(after, until, store, completed)

    async def barrier(self) -> int:
        raise NotImplementedError
