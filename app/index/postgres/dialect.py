"""Statements for Postgres: SQL compiled once, and texts with NUL escaped.

A text in Postgres cannot hold NUL, but a key can. The index stores U+0000 as U+0001 U+0001, and U+0001 as U+0001
U+0002. That preserves both the order of keys and their prefixes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson
from sqlalchemy.dialects.postgresql import asyncpg

from sluice_s3.app.index.sql.dialect import Query
from sluice_s3.app.index.sql.transaction import Statement

Rows = list[Any]

ESCAPE, NUL = "\1", "\0"
KEYS = frozenset({"key"})
"""Columns that may hold escaped characters."""

_dialect: Any = asyncpg.dialect
_POSTGRES = _dialect()


class Prepared(NamedTuple):
    """A compiled statement for asyncpg, which caches prepared statements by their text."""

    sql: str
    plain: Callable[[Rows], Rows] | None
    """Unescapes the texts in result rows."""


_prepared: dict[Statement | Query, Prepared] = {}


def prepare(statement: Statement | Query) -> Prepared:
    """Return the compiled statement.

    It is compiled at its first use.
    """
    prepared = _prepared.get(statement)
    if prepared is None:
        compiled = _compile_query(statement) if isinstance(statement, Query) else _compile(statement)
        prepared = _prepared[statement] = compiled
    return prepared


def _compile(statement: Statement) -> Prepared:
    core: Any = statement.core if statement.postgres is None else statement.postgres()
    compiled: Any = core.compile(dialect=_POSTGRES)
    if tuple(compiled.positiontup or ()) != statement.names:
        raise AssertionError(f"parameters in another order than SQLite's: {compiled}")
    selected = getattr(core, "selected_columns", ())
    keys = tuple(position for position, column in enumerate(selected) if getattr(column, "name", "") in KEYS)
    return Prepared(str(compiled), partial(unescape_rows, keys) if keys else None)


def _compile_query(query: Query) -> Prepared:
    unescape_text = unescape_json if query.documents else unescape

    def plain(rows: Rows) -> Rows:
        return [tuple([unescape_text(value) if type(value) is str else value for value in row]) for row in rows]

    return Prepared(query.postgres, plain)


def escape(text: str) -> str:
    """Return a text that Postgres can store."""
    if ESCAPE in text or NUL in text:
        return text.replace(ESCAPE, "\1\2").replace(NUL, "\1\1")
    return text


def unescape(text: str) -> str:
    """Return the text before `escape`."""
    if ESCAPE in text:
        return text.replace("\1\1", NUL).replace("\1\2", ESCAPE)
    return text


def escape_all(parameters: Sequence[Any]) -> Sequence[Any]:
    """Return the parameters of a statement with their texts escaped."""
    for value in parameters:
        if type(value) is str and (NUL in value or ESCAPE in value):
            return [escape(parameter) if type(parameter) is str else parameter for parameter in parameters]
    return parameters


def unescape_rows(keys: tuple[int, ...], rows: Rows) -> Rows:
    """Return rows with their texts unescaped.

    `keys` are the positions of the columns of keys.
    """
    for row in rows:
        for position in keys:
            if row[position] is not None and ESCAPE in row[position]:
                return [
                    tuple(unescape(value) if type(value) is str else value for value in result_row)
                    for result_row in rows
                ]
    return rows


def unescape_json(document: str) -> str:
    """Return a JSON document from Postgres with its texts unescaped."""
    if "\\u0001" not in document:
        return document

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return unescape(value)
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            return {name: walk(item) for name, item in value.items()}
        return value

    return orjson.dumps(walk(orjson.loads(document))).decode()
