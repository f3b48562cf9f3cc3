"""Building blocks of statements.

Parameters are positional, in the order in which the SQL names them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, Table, Text, bindparam, insert, literal_column
from sqlalchemy.dialects import sqlite

from sluice_s3.app.index.sql.transaction import Statement


def number(name: str) -> Any:
    """Return a parameter of type number."""
    return bindparam(name, type_=BigInteger())


def text(name: str) -> Any:
    """Return a parameter of type text."""
    return bindparam(name, type_=Text())


LIMIT = bindparam("limit", type_=Integer())
NO_OFFSET: ColumnElement[int] = literal_column("0")
"""A literal, because SQLAlchemy would bind a 0 as a parameter."""


def columns(table: Table, fields: tuple[str, ...]) -> list[ColumnElement[Any]]:
    """Return columns of a table by their names."""
    return [table.c[name] for name in fields]


def insertion(table: Table) -> Statement:
    """Return a statement that adds a row, with all columns in their order."""
    return Statement(insert(table))


def new_values(table: Table, *names: str) -> dict[str, Any]:
    """Return parameters for the columns that an update sets."""
    return {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}


def upsertion(table: Table, keys: tuple[str, ...], update: dict[str, Any] | None = None, **values: Any) -> Statement:
    """Return a statement that adds a row or updates the row with its keys.

    An empty `update` leaves that row unchanged.
    """

    def build(kind: Any) -> Any:
        statement = kind(table).values(**values) if values else kind(table)
        if not update:
            return statement.on_conflict_do_nothing(index_elements=keys)
        return statement.on_conflict_do_update(index_elements=keys, set_=update)

    return Statement(build(sqlite.insert), lambda: build(postgres_insert()))


def postgres_insert() -> Any:
    """Return the `insert` of Postgres, whose dialect is imported only where it is used."""
    from sqlalchemy.dialects.postgresql import insert

    return insert


def excluded(*names: str) -> dict[str, Any]:
    """Return the columns that an upsert sets to the values of the conflicting row."""
    return {name: literal_column(f"excluded.{name}") for name in names}
