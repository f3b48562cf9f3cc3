"""Statements of long reads, written once and rendered in the dialect of each engine.

Statements that SQLAlchemy builds (`statements.py` of each room) serve requests. Long reads take apart JSON inside of
rows and turn rows into JSON, which SQLAlchemy can express for one engine at a time only. So such a statement is a
function of `SqlDialect`, which supplies the parts that differ between the engines and the typed parameters. All other
SQL in it must mean the same to both engines: tests let each engine parse every statement.
"""
# ruff: noqa: S608 - these texts are composed only of constants and parameter positions

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import orjson

from sluice_s3.app.index.sql.transaction import Row

NUMBER, TEXT, ARRAY = "bigint", "text", "json"
"""Types of parameters, as Postgres names them."""


class SqlDialect:
    """The SQL that differs between the engines.

    One instance per text, because it counts the parameters of that.
    """

    extents: ClassVar[str]
    """The extents of a row of `parts`, each a row `extent`. Join it `ON true`."""
    locator: ClassVar[str]
    """The locator of an `extent`. The next two are its offset and its size, in bytes."""
    offset: ClassVar[str]
    size: ClassVar[str]
    json_object: ClassVar[str]
    """The function that builds a JSON object from alternating names and values."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        """The types of the parameters by name, in the order of their positions."""

    def number(self, name: str) -> str:
        """Return a parameter of type number."""
        return self._add_parameter(name, NUMBER)

    def text(self, name: str) -> str:
        """Return a parameter of type text."""
        return self._add_parameter(name, TEXT)

    def numbers(self, name: str) -> str:
        """Return a query for the items of a parameter that is a list of numbers."""
        raise NotImplementedError

    def texts(self, name: str) -> str:
        """Return a query for the items of a parameter that is a list of texts."""
        raise NotImplementedError

    def until_dot(self, locator: str) -> str:
        """Return a locator up to its first dot; empty without a dot.

        It names the blob's pack (`Driver.pack_prefix`).
        """
        return f"substr({locator}, 1, {self.dot(locator)})"

    def dot(self, locator: str) -> str:
        """Return the position of the first dot in a locator, 0 for none."""
        return self.position(locator, ".")

    def position(self, text: str, part: str) -> str:
        """Return the position of a constant without apostrophes in a text, 0 for none."""
        raise NotImplementedError

    def rows(self, columns: tuple[str, ...]) -> str:
        """Return all rows as one JSON array of arrays."""
        raise NotImplementedError

    def json(self, query: str) -> str:
        """Return the one value of a subquery as JSON, for use inside a larger document."""
        raise NotImplementedError

    def _add_parameter(self, name: str, kind: str) -> str:
        if self.types.setdefault(name, kind) != kind:
            raise TypeError(f"{name} is {self.types[name]} in one place and {kind} in another")
        return self._render_parameter([*self.types].index(name) + 1, kind)

    def _render_parameter(self, position: int, kind: str) -> str:
        raise NotImplementedError


class SqliteDialect(SqlDialect):
    """The SQL of SQLite."""

    extents = "json_each(parts.extents) AS extent"
    locator = "json_extract(extent.value, '$[0]')"
    offset = "json_extract(extent.value, '$[1]')"
    size = "json_extract(extent.value, '$[2]')"
    json_object = "json_object"

    def numbers(self, name: str) -> str:
        """See `SqlDialect`."""
        return f"SELECT value FROM json_each({self._add_parameter(name, ARRAY)})"

    texts = numbers

    def position(self, text: str, part: str) -> str:
        """See `SqlDialect`."""
        return f"instr({text}, '{part}')"

    def rows(self, columns: tuple[str, ...]) -> str:
        """See `SqlDialect`."""
        return f"json_group_array(json_array({', '.join(columns)}))"

    def json(self, query: str) -> str:
        """See `SqlDialect`.

        Without it, the result of a subquery counts as text.
        """
        return f"json(({query}))"

    def _render_parameter(self, position: int, kind: str) -> str:
        return f"?{position}"


class PostgresDialect(SqlDialect):
    """The SQL of Postgres, which accepts no value of another type than the expected one."""

    extents = "json_array_elements(parts.extents::json) AS extent"
    locator = "(extent.value ->> 0)"
    offset = "(extent.value ->> 1)::bigint"
    size = "(extent.value ->> 2)::bigint"
    json_object = "json_build_object"

    def numbers(self, name: str) -> str:
        """See `SqlDialect`."""
        return f"SELECT value::bigint FROM json_array_elements_text({self._add_parameter(name, ARRAY)}) AS value"

    def texts(self, name: str) -> str:
        """See `SqlDialect`.

        Texts inside of JSON are not escaped like those in rows: see `dialect.escape`.
        """
        escaped = "replace(value, chr(1), chr(1) || chr(2))"  # no locator has a NUL
        return f"SELECT {escaped} FROM json_array_elements_text({self._add_parameter(name, ARRAY)}) AS value"

    def position(self, text: str, part: str) -> str:
        """See `SqlDialect`."""
        return f"strpos({text}, '{part}')"

    def rows(self, columns: tuple[str, ...]) -> str:
        """See `SqlDialect`."""
        return f"coalesce(json_agg(json_build_array({', '.join(columns)})), '[]'::json)"

    def json(self, query: str) -> str:
        """See `SqlDialect`."""
        return f"({query})"

    def _render_parameter(self, position: int, kind: str) -> str:
        return f"${position}::{kind}"


class Query:
    """A statement that only reads, built once.

    Transactions yield it like those of `app.index.sql.transaction`. `documents` says that all its texts are JSON;
    otherwise none is.
    """

    __slots__ = ("documents", "postgres", "sql", "types")

    writes: ClassVar[bool] = False

    def __init__(self, sql: str | Callable[[SqlDialect], str], *, documents: bool = False) -> None:
        sqlite, postgres = SqliteDialect(), PostgresDialect()
        self.sql = sql if isinstance(sql, str) else sql(sqlite)
        self.postgres = sql if isinstance(sql, str) else sql(postgres)
        self.types = sqlite.types
        self.documents = documents
        if [*postgres.types.items()] != [*sqlite.types.items()]:
            raise TypeError(f"other parameters than SQLite's: {self.postgres}")

    def bind(self, **values: Any) -> tuple[Query, Row]:
        """Return what a transaction yields to run this query with parameters.

        Ignores values that the query does not use.
        """
        bound = [_json(values[name]) if kind is ARRAY else values[name] for name, kind in self.types.items()]
        return self, tuple(bound)

    def __repr__(self) -> str:
        return f"Query({self.sql!r}, types={self.types!r})"


def _json(values: Iterable[Any]) -> str:
    return orjson.dumps(list(values)).decode()
