"""Long readings: what the jobs and fsck ask. They are written for SQLite, and run here on a connection that looks so.

Their functions are synchronous. SQLAlchemy's bridge runs each in a greenlet and lets the loop go on while the server
works, as it does below its own engines.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeVar

import orjson
from sqlalchemy.util.concurrency import await_only, greenlet_spawn

from app.index import decisions, holders, moving, scrubbing
from app.index.postgres import running
from app.index.postgres.dialect import escaped, unescaped, unescaped_json
from app.index.postgres.errors import translated
from app.index.postgres.link import Connection, Link, Pool
from app.index.rows import Held, Holder, Pack, Suspect
from app.index.schema import DEFAULT, SEALED, SWEPT
from app.index.transactions import compaction
from app.index.transactions.packs import all_packs
from app.index.upkeep import Reference

T = TypeVar("T")

BATCH = 500
"""Rows that are fetched at a time, so that no other request waits long for the loop."""

# in this order; each says what SQLite's expression is called in Postgres
WORDS: tuple[tuple[str, str], ...] = (
    (
        r"LEFT JOIN json_each\((\w+\.\w+)\) AS extent",
        r"LEFT JOIN LATERAL json_array_elements(\1::json) AS extent ON true",
    ),
    (r"JOIN json_each\((\w+\.\w+)\) AS extent", r"JOIN LATERAL json_array_elements(\1::json) AS extent ON true"),
    (r"json_each\((\w+\.\w+)\) AS extent", r"json_array_elements(\1::json) AS extent"),
    (
        r"SELECT value FROM json_each\(:ids\)",
        r"SELECT value::text::bigint FROM json_array_elements(:ids::json) AS value",
    ),
    (r"SELECT value FROM json_each\((:\w+)\)", r"SELECT value FROM json_array_elements_text(\1::json) AS value"),
    (r"json_extract\(extent\.value, '\$\[0\]'\)", r"(extent.value ->> 0)"),
    (r"json_extract\(extent\.value, '\$\[(\d)\]'\)", r"(extent.value ->> \1)::bigint"),
    (r"json_group_array\(json_array\(([^()]*)\)\)", r"coalesce(json_agg(json_build_array(\1)), '[]'::json)::text"),
    (r"json_object\(", r"json_build_object("),
    (r"json\(\(SELECT", r"((SELECT"),
    (r"\binstr\(", r"strpos("),
    (r"\bGLOB :pattern", r"LIKE :pattern"),
    (r"AS INTEGER\)", r"AS BIGINT)"),
    (r"IN mine\b", r"IN (SELECT id FROM mine)"),
)
NUMBERS = frozenset({"a", "b", "c", "after", "until", "limit", "since", "bucket", "upload"})


@cache
def in_postgres(sql: str) -> tuple[str, tuple[str, ...]]:
    """A query as Postgres wants it, and the names of its parameters by place."""
    for pattern, replacement in WORDS:
        sql = re.sub(pattern, replacement, sql)
    if "json_build_object(" in sql:  # what is inside is JSON, not text
        sql = sql.replace("'[]'::json)::text FROM", "'[]'::json) FROM") + "\n"
    names: list[str] = []

    def place(found: re.Match[str]) -> str:
        name = found[1]
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}::{'bigint' if name in NUMBERS else 'text'}"

    return re.sub(r"(?<!:):([a-z]+)\b", place, sql), tuple(names)


class Cursor:
    """The rows of a query, of which some are there at a time."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def fetchall(self) -> list[Any]:
        """All of them."""
        return self._rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)


class Lent:
    """What the functions take for a connection. To be used in `greenlet_spawn` only.

    Texts in the rows are JSON documents or none is: see `unescaped_json`.
    """

    def __init__(self, connection: Connection, json: bool) -> None:
        self._connection = connection
        self._unescaped = unescaped_json if json else unescaped

    def execute(self, sql: str, parameters: Any = None) -> Cursor:
        """Run a query, or begin and end one state of the index."""
        if sql in ("BEGIN", "ROLLBACK"):
            await_only(self._connection.execute(running.SNAPSHOT if sql == "BEGIN" else sql))
            return Cursor([])
        text, names = in_postgres(sql)
        values = [_given(name, (parameters or {})[name]) for name in names]
        rows = await_only(self._connection.fetch(text, *values))
        plain = self._unescaped
        return Cursor([tuple([plain(value) if type(value) is str else value for value in row]) for row in rows])


def begins(function: Callable[..., Any]) -> bool:
    """Whether a function begins and ends a state of the index itself."""
    return function in (holders.held_in, decisions.changes)


def _given(name: str, value: Any) -> Any:
    if name == "pattern":  # GLOB's to LIKE's, of names that hold none of its own
        value = value.replace("?", "_").replace("*", "%")
    return escaped(value) if type(value) is str else value


class Readings:
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

    async def _long(self, function: Callable[..., T], *arguments: Any, json: bool = False) -> T:
        """Run a function that was written for a connection of SQLite."""

        async def ask(connection: Connection) -> T:
            return await greenlet_spawn(function, Lent(connection, json), *arguments)

        answer: T = await self._on(ask, alone=begins(function))
        return answer

    async def _stream(self, connection: Connection, sql: str, *parameters: Any) -> AsyncIterator[Any]:
        """Rows of a query in one state, of which a batch is in memory. In a transaction that has begun."""
        text, _ = in_postgres(sql)
        cursor = await connection.cursor(text, *parameters)
        while rows := await cursor.fetch(BATCH):
            for row in rows:
                yield row

    async def held(self, locators: Sequence[str], since: int = 0) -> set[str]:
        """See `Index.held`."""
        return await self._long(holders.held, locators, since)

    async def miscounted(self) -> list[tuple[str, int, int]]:
        """See `Index.miscounted`."""
        return await self._long(holders.miscounted)

    async def packs(self) -> list[Pack]:
        """See `Index.packs`."""
        answer: list[Pack] = await self._on(lambda connection: running.read(connection, all_packs()))
        return answer

    async def held_in(self, prefixes: Sequence[str], limit: int) -> Held:
        """See `Index.held_in`."""
        return await self._long(holders.held_in, prefixes, limit)

    async def held_bytes(self, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
        """See `Index.held_bytes`."""
        found: dict[str, int] = {}

        async def ask(connection: Connection) -> None:
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                wanted = orjson.dumps(list(prefixes)).decode()
                async for prefix, locator in self._stream(connection, HELD_LOCATORS, wanted):
                    found[prefix] = found.get(prefix, 0) + size_of(locator)

        await self._on(ask, alone=True)
        return found

    async def find_holders(self, suspects: Sequence[Suspect]) -> dict[str, tuple[Holder, ...]]:
        """See `Index.find_holders`."""
        answer: dict[str, tuple[Holder, ...]] = await self._on(
            lambda connection: running.snapshot(connection, compaction.find_holders(suspects)), alone=True
        )
        return answer

    async def live_bytes(self, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
        """See `Index.live_bytes`."""
        found: list[tuple[Pack, int]] = []

        async def ask(connection: Connection) -> None:
            live: dict[int, int] = {}
            async with connection.transaction(isolation="repeatable_read", readonly=True):
                written = {number for (number,) in await connection.fetch(holders.WRITTEN)}
                packs = [pack for pack in await running.read(connection, all_packs()) if pack.sealed in (SEALED, SWEPT)]
                async for (locator,) in self._stream(connection, PACKED_ONCE):
                    place = packed(locator)
                    if place is not None:
                        live[place[0]] = live.get(place[0], 0) + place[1]
            found.extend((pack, live.get(pack.id, 0)) for pack in packs if pack.id not in written)

        await self._on(ask, alone=True)
        return found

    async def bodies(self, bucket_id: int, after: int) -> list[moving.Body]:
        """See `Index.bodies`."""
        return await self._long(moving.bodies, bucket_id, after)

    async def held_by_pieces(self, upload: int) -> list[moving.Held]:
        """See `Index.held_by_pieces`."""
        return await self._long(moving.pieces, upload)

    async def held_by_parts(self, bucket_id: int) -> list[tuple[str, moving.Held]]:
        """See `Index.held_by_parts`."""
        return await self._long(moving.parts, bucket_id)

    async def any_on(self, store: str) -> bool:
        """See `Index.any_on`."""
        return await self._long(moving.any_on, store)

    async def bucket_size(self, bucket_id: int) -> tuple[int, int]:
        """See `Index.bucket_size`."""
        return await self._long(moving.size, bucket_id)

    async def references(self) -> AsyncIterator[Reference]:
        """See `Index.references`."""
        for kind, _ in holders.REFERENCES:
            position: holders.Position | None = holders.BEGIN
            while position is not None:
                found, position = await self._long(holders.references, kind, position)
                for reference in found:
                    yield reference

    async def changes(self, after: int, until: int | None = None, store: str = DEFAULT) -> decisions.Changes:
        """See `Index.changes`."""
        if until is None:
            until = await self.barrier()
        return await self._long(decisions.changes, after, decisions.BATCH, until, store, json=True)

    async def barrier(self) -> int:
        raise NotImplementedError

    async def settings_rows(self) -> str:
        """See `Index.settings_rows`."""
        return await self._long(decisions.settings, json=True)

    async def upload_rows(self, ids: Sequence[int]) -> str:
        """See `Index.upload_rows`."""
        return await self._long(decisions.uploads_of, orjson.dumps(ids).decode(), json=True)

    async def upload_rows_after(self, after: int, store: str = DEFAULT) -> tuple[str, int | None]:
        """See `Index.upload_rows_after`."""
        return await self._long(decisions.uploads_after, after, store, json=True)

    async def piece_rows(
        self, ids: Sequence[int] | None, after: decisions.Place, store: str = DEFAULT
    ) -> tuple[str, decisions.Place | None]:
        """See `Index.piece_rows`."""
        wanted = None if ids is None else orjson.dumps(ids).decode()
        return await self._long(decisions.pieces_of, wanted, after, store, json=True)

    async def versions_count(self, store: str = DEFAULT) -> int:
        """See `Index.versions_count`."""
        return await self._long(decisions.versions_count, store)

    async def stored_bytes(self, store: str) -> int:
        """See `Index.stored_bytes`."""
        return await self._long(decisions.stored_bytes, store)

    async def undecided(self, store: str = DEFAULT) -> tuple[int, int]:
        """See `Index.undecided`."""
        return await self._long(decisions.undecided, store)

    async def live(self, kind: str, after: decisions.Place) -> tuple[list[scrubbing.Live], decisions.Place | None]:
        """See `Index.live`."""
        return await self._long(scrubbing.live, kind, after)

    async def holds(self, row: scrubbing.Live) -> bool:
        """See `Index.holds`."""
        return await self._long(scrubbing.holds, row)


_HELD, _, _ = holders.HELD_BYTES.rpartition("SELECT substr(locator")
HELD_LOCATORS = f"{_HELD}SELECT substr(locator, 1, instr(locator, '.')), locator FROM held"  # noqa: S608 - constants
PACKED_ONCE = f"SELECT DISTINCT locator FROM ({holders.PACKED}) AS packed (locator)"  # noqa: S608 - constants
