"""Transactions without an engine: generators that yield statements and are sent rows.

A transaction is a generator function. It yields `(statement, parameters)` and is sent the rows as a list of tuples. Or
it yields `Draw(count)` and is sent the first of `count` numbers of the commit sequence, which nothing else will get. A
list of parameter tuples runs the statement for each of them and is sent nothing. The return value of the generator is
the result for the caller. A `DomainError` before the first write leaves nothing to undo.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, NamedTuple, TypeVar

from sqlalchemy.dialects import sqlite
from sqlalchemy.sql.elements import ClauseElement

from sluice_s3.app.index.schema.tables import DEFAULT

T = TypeVar("T")
Transaction = Generator[Any, Any, T]
Row = tuple[Any, ...]

_SQLITE = sqlite.dialect(paramstyle="qmark")


class Draw(NamedTuple):
    """Requests `amount` consecutive numbers of the commit sequence, and is answered with the first."""

    amount: int = 1


class Statement:
    """A statement, built and compiled once.

    Parameters are positional, in the order in which the SQL names them. `sql` is for SQLite. `postgres` is given where
    Postgres needs another text; see `app.index.postgres.dialect`.
    """

    __slots__ = ("core", "names", "postgres", "sql", "writes")

    def __init__(self, core: ClauseElement, postgres: ClauseElement | None = None) -> None:
        self.core = core
        self.postgres = core if postgres is None else postgres
        compiled: Any = core.compile(dialect=_SQLITE)
        self.sql = str(compiled)
        self.names: tuple[str, ...] = tuple(compiled.positiontup or ())
        self.writes = not self.sql.lstrip().startswith("SELECT")

    def __repr__(self) -> str:
        return f"Statement({self.sql!r}, names={self.names!r})"


DRAW = Draw()


def of_store(name: str, store: str) -> str:
    """Return the name in `meta` of a note about one store."""
    return name if store == DEFAULT else f"{name}:{store}"


def now_ms() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
