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

from app.index import decisions, holders
from app.index.long_methods import LongMethods
from app.index.postgres import running
from app.index.postgres.dialect import escaped, unescaped, unescaped_json
from app.index.postgres.errors import translated
from app.index.postgres.link import Connection, Link, Pool
from app.index.rows import Holder, Pack, Suspect
from app.index.schema import DEFAULT, SEALED, SWEPT
from app.index.transactions import compaction
from app.index.transactions.packs import all_packs

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

BEGIN: frozenset[Callable[..., Any]] = frozenset({holders.held_in, decisions.changes})
"""Functions that begin and end a state of the index themselves."""
IN_JSON: frozenset[Callable[..., Any]] = frozenset(
    {decisions.changes, decisions.settings, decisions.uploads_of, decisions.uploads_after, decisions.pieces_of}
)
"""Those whose texts are JSON documents."""


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


def _given(name: str, value: Any) -> Any:
    if name == "pattern":  # GLOB's to LIKE's, of names that hold none of its own
        value = value.replace("?", "_").replace("*", "%")
    return escaped(value) if type(value) is str else value


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

    async def _long(self, function: Callable[..., T], *arguments: Any) -> T:
        """See `LongMethods`."""

        async def ask(connection: Connection) -> T:
            return await greenlet_spawn(function, Lent(connection, function in IN_JSON), *arguments)

        answer: T = await self._on(ask, alone=function in BEGIN)
        return answer

    async def _stream(self, connection: Connection, sql: str, *parameters: Any) -> AsyncIterator[Any]:
        """Rows of a query in one state, of which a batch is in memory. In a transaction that has begun."""
        text, _ = in_postgres(sql)
        cursor = await connection.cursor(text, *parameters)
        while rows := await cursor.fetch(BATCH):
            for row in rows:
                yield row

    async def packs(self) -> list[Pack]:
        """See `Index.packs`."""
        answer: list[Pack] = await self._on(lambda connection: running.read(connection, all_packs()))
        return answer

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

    async def changes(self, after: int, until: int | None = None, store: str = DEFAULT) -> decisions.Changes:
        """See `Index.changes`. Numbers are not committed in their order."""
        if until is None:
            until = await self.barrier()
        return await super().changes(after, until, store)

    async def barrier(self) -> int:
        raise NotImplementedError


_HELD, _, _ = holders.HELD_BYTES.rpartition("SELECT substr(locator")
HELD_LOCATORS = f"{_HELD}SELECT substr(locator, 1, instr(locator, '.')), locator FROM held"  # noqa: S608 - constants
PACKED_ONCE = f"SELECT DISTINCT locator FROM ({holders.PACKED}) AS packed (locator)"  # noqa: S608 - constants
