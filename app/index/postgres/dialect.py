"""Statements as Postgres wants them: SQL compiled once, and texts with the one character that it cannot hold.

Postgres has no NUL in a text, and a key may hold one. In the index U+0000 is written as U+0001 U+0001, and U+0001
as U+0001 U+0002, which keeps both the order of keys and what begins with what.
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
"""Columns that may hold them."""

_dialect: Any = asyncpg.dialect
_POSTGRES = _dialect()


class Prepared(NamedTuple):
    """A statement for asyncpg, which keeps it prepared by its text."""

    sql: str
    plain: Callable[[Rows], Rows] | None
    """Makes its rows what they were before texts in them were escaped."""


_prepared: dict[Statement | Query, Prepared] = {}


def prepare(statement: Statement | Query) -> Prepared:
    """The statement, compiled when it is asked for the first time."""
    found = _prepared.get(statement)
    if found is None:
        made = _of_query(statement) if isinstance(statement, Query) else _compiled(statement)
        found = _prepared[statement] = made
    return found


def _compiled(statement: Statement) -> Prepared:
    compiled: Any = statement.postgres.compile(dialect=_POSTGRES)
    if tuple(compiled.positiontup or ()) != statement.names:
        raise AssertionError(f"parameters in another order than SQLite's: {compiled}")
    given = getattr(statement.postgres, "selected_columns", ())
    keys = tuple(at for at, column in enumerate(given) if getattr(column, "name", "") in KEYS)
    return Prepared(str(compiled), partial(unescape_rows, keys) if keys else None)


def _of_query(query: Query) -> Prepared:
    one = unescape_json if query.documents else unescape

    def plain(rows: Rows) -> Rows:
        return [tuple([one(value) if type(value) is str else value for value in row]) for row in rows]

    return Prepared(query.postgres, plain)


def escape(text: str) -> str:
    """A text that Postgres can hold."""
    if ESCAPE in text or NUL in text:
        return text.replace(ESCAPE, "\1\2").replace(NUL, "\1\1")
    return text


def unescape(text: str) -> str:
    """What was escaped."""
    if ESCAPE in text:
        return text.replace("\1\1", NUL).replace("\1\2", ESCAPE)
    return text


def escape_all(parameters: Sequence[Any]) -> Sequence[Any]:
    """Parameters of a statement."""
    for value in parameters:
        if type(value) is str and (NUL in value or ESCAPE in value):
            return [escape(one) if type(one) is str else one for one in parameters]
    return parameters


def unescape_rows(keys: tuple[int, ...], rows: Rows) -> Rows:
    """Rows of a statement with these columns of keys."""
    for row in rows:
        for at in keys:
            if row[at] is not None and ESCAPE in row[at]:
                return [tuple(unescape(one) if type(one) is str else one for one in each) for each in rows]
    return rows


def unescape_json(document: str) -> str:
    """A JSON document that Postgres made."""
    if "\\u0001" not in document:
        return document

    def walk(value: Any) -> Any:
        if isinstance(value, str):
            return unescape(value)
        if isinstance(value, list):
            return [walk(one) for one in value]
        if isinstance(value, dict):
            return {name: walk(one) for name, one in value.items()}
        return value

    return orjson.dumps(walk(orjson.loads(document))).decode()
