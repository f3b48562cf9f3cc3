"""What statements are built of. Parameters by place, in the order in which the SQL names them."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Integer, Table, Text, bindparam, insert, literal_column
from sqlalchemy.dialects import postgresql, sqlite

from sluice_s3.app.index.sql.transaction import Statement


def number(name: str) -> Any:
    """A parameter that is a number."""
    return bindparam(name, type_=BigInteger())


def text(name: str) -> Any:
    """A parameter that is a text."""
    return bindparam(name, type_=Text())


LIMIT = bindparam("limit", type_=Integer())
NO_OFFSET: ColumnElement[int] = literal_column("0")
"""SQLAlchemy would bind a 0 otherwise."""


def columns(table: Table, fields: tuple[str, ...]) -> list[ColumnElement[Any]]:
    """Columns of a table by their names."""
    return [table.c[name] for name in fields]


def insertion(table: Table) -> Statement:
    """A statement that adds a row, all columns in their order."""
    return Statement(insert(table))


def new_values(table: Table, *names: str) -> dict[str, Any]:
    """Parameters for the columns that an update sets."""
    return {name: bindparam(f"new_{name}", type_=table.c[name].type) for name in names}


def upsertion(table: Table, keys: tuple[str, ...], update: dict[str, Any] | None = None, **given: Any) -> Statement:
    """A statement that adds a row, or changes the one with its keys: nothing of it when `update` is empty."""

    def built(kind: Any) -> Any:
        made = kind(table).values(**given) if given else kind(table)
        if not update:
            return made.on_conflict_do_nothing(index_elements=keys)
        return made.on_conflict_do_update(index_elements=keys, set_=update)

    return Statement(built(sqlite.insert), built(postgresql.insert))


def excluded(*names: str) -> dict[str, Any]:
    """For an upsert: these columns become what the refused row has."""
    return {name: literal_column(f"excluded.{name}") for name in names}
