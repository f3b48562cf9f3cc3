"""Transactions without an engine: generators that yield statements and are sent rows.

A transaction is a generator function. It yields `(statement, parameters)` and is sent the rows as a list of tuples. Or
it yields `Draw(count)` and is sent the first of `count` numbers of the commit sequence, which nothing else will get. A
list of parameter tuples runs the statement for each of them and is sent nothing. The return value of the generator is
the result for the caller. A `DomainError` before the first write leaves nothing to undo.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
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
    """A statement, built once at import, and compiled at its first use: a process uses a part of them.

    `sql` is for SQLite. `postgres` returns the statement for Postgres where that needs another one; see
    `app.index.postgres.dialect`.
    """

    __slots__ = ("core", "names", "postgres", "sql", "writes")

    names: tuple[str, ...]
    """The parameters, which are positional."""
    sql: str
    writes: bool

    def __init__(self, core: ClauseElement, postgres: Callable[[], ClauseElement] | None = None) -> None:
        self.core = core
        self.postgres = postgres

    def __getattr__(self, name: str) -> Any:
        """Compile the statement: a slot has no value yet. Raises AttributeError for another name."""
        if name not in self.__slots__:
            raise AttributeError(name)
        compiled: Any = self.core.compile(dialect=_SQLITE)
        self.sql = str(compiled)
        self.names = tuple(compiled.positiontup or ())
        self.writes = not self.sql.lstrip().startswith("SELECT")
        return object.__getattribute__(self, name)

    def __repr__(self) -> str:
        return f"Statement({self.sql!r}, names={self.names!r})"


DRAW = Draw()


def of_store(name: str, store: str) -> str:
    """Return the name in `meta` of a note about one store."""
    return name if store == DEFAULT else f"{name}:{store}"


def now_ms() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
