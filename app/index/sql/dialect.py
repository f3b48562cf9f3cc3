"""Statements of long readings: written once as text, and said in the words of each engine.

What SQLAlchemy builds (`app.index.statements`) is for requests. Long readings go into JSON inside of rows and make JSON
of rows, which it can say for one engine at a time only. So such a statement is a function of `Words`, by which it says
what the engines call differently, and where it takes a parameter of which type. All else in it must be SQL that both
read alike: tests have each engine read every one.
"""
# ruff: noqa: S608 - what is put together here are words and the places of parameters

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import orjson

from sluice_s3.app.index.sql.transaction import Row

NUMBER, TEXT, ARRAY = "bigint", "text", "json"
"""Types of parameters, as Postgres calls them."""


class Words:
    """What the engines call differently. One for each text, since it counts the parameters of that."""

    extents: ClassVar[str]
    """The extents of a row of `parts`, each a row `extent`; to be joined `ON true`."""
    locator: ClassVar[str]
    """Of an `extent`, as the next two."""
    offset: ClassVar[str]
    size: ClassVar[str]
    json_object: ClassVar[str]
    """The function that makes one of names and values by turns."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        """Of the parameters, by their names, in the order of their places."""

    def number(self, name: str) -> str:
        """A parameter that is a number."""
        return self._placed(name, NUMBER)

    def text(self, name: str) -> str:
        """A parameter that is a text."""
        return self._placed(name, TEXT)

    def numbers(self, name: str) -> str:
        """A query of what is in a parameter that is a list of numbers."""
        raise NotImplementedError

    def texts(self, name: str) -> str:
        """The same of texts."""
        raise NotImplementedError

    def until_dot(self, locator: str) -> str:
        """A locator up to its first dot, which names the pack that it is in (`Driver.pack_prefix`); empty without."""
        return f"substr({locator}, 1, {self.dot(locator)})"

    def dot(self, locator: str) -> str:
        """The place of the first dot in it, 0 for none."""
        return self.place(locator, ".")

    def place(self, text: str, part: str) -> str:
        """The place of a constant without apostrophes in a text, 0 where it is not."""
        raise NotImplementedError

    def rows(self, columns: tuple[str, ...]) -> str:
        """All rows as one JSON array of arrays."""
        raise NotImplementedError

    def json(self, query: str) -> str:
        """The one value of a subquery, which is JSON and is to be a part of a greater document."""
        raise NotImplementedError

    def _placed(self, name: str, kind: str) -> str:
        if self.types.setdefault(name, kind) != kind:
            raise TypeError(f"{name} is {self.types[name]} in one place and {kind} in another")
        return self._parameter([*self.types].index(name) + 1, kind)

    def _parameter(self, place: int, kind: str) -> str:
        raise NotImplementedError


class SqliteWords(Words):
    """SQLite's."""

    extents = "json_each(parts.extents) AS extent"
    locator = "json_extract(extent.value, '$[0]')"
    offset = "json_extract(extent.value, '$[1]')"
    size = "json_extract(extent.value, '$[2]')"
    json_object = "json_object"

    def numbers(self, name: str) -> str:
        """See `Words`."""
        return f"SELECT value FROM json_each({self._placed(name, ARRAY)})"

    texts = numbers

    def place(self, text: str, part: str) -> str:
        """See `Words`."""
        return f"instr({text}, '{part}')"

    def rows(self, columns: tuple[str, ...]) -> str:
        """See `Words`."""
        return f"json_group_array(json_array({', '.join(columns)}))"

    def json(self, query: str) -> str:
        """See `Words`. What comes out of a subquery counts as text otherwise."""
        return f"json(({query}))"

    def _parameter(self, place: int, kind: str) -> str:
        return f"?{place}"


class PostgresWords(Words):
    """Those of Postgres, which takes no value of another type than it expects."""

    extents = "json_array_elements(parts.extents::json) AS extent"
    locator = "(extent.value ->> 0)"
    offset = "(extent.value ->> 1)::bigint"
    size = "(extent.value ->> 2)::bigint"
    json_object = "json_build_object"

    def numbers(self, name: str) -> str:
        """See `Words`."""
        return f"SELECT value::bigint FROM json_array_elements_text({self._placed(name, ARRAY)}) AS value"

    def texts(self, name: str) -> str:
        """See `Words`. Inside of JSON they are not escaped as those in rows are: see `dialect.escape`."""
        escaped = "replace(value, chr(1), chr(1) || chr(2))"  # no locator has a NUL
        return f"SELECT {escaped} FROM json_array_elements_text({self._placed(name, ARRAY)}) AS value"

    def place(self, text: str, part: str) -> str:
        """See `Words`."""
        return f"strpos({text}, '{part}')"

    def rows(self, columns: tuple[str, ...]) -> str:
        """See `Words`."""
        return f"coalesce(json_agg(json_build_array({', '.join(columns)})), '[]'::json)"

    def json(self, query: str) -> str:
        """See `Words`."""
        return f"({query})"

    def _parameter(self, place: int, kind: str) -> str:
        return f"${place}::{kind}"


class Query:
    """A statement that only reads, built once. To be run as those of `app.index.sql.transaction` are.

    `documents` says that its texts are JSON; otherwise none is.
    """

    __slots__ = ("documents", "postgres", "sql", "types")

    writes: ClassVar[bool] = False

    def __init__(self, said: str | Callable[[Words], str], *, documents: bool = False) -> None:
        words, others = SqliteWords(), PostgresWords()
        self.sql = said if isinstance(said, str) else said(words)
        self.postgres = said if isinstance(said, str) else said(others)
        self.types = words.types
        self.documents = documents
        if [*others.types.items()] != [*words.types.items()]:
            raise TypeError(f"other parameters than SQLite's: {self.postgres}")

    def given(self, **values: Any) -> tuple[Query, Row]:
        """What a transaction yields to ask this with these parameters; those that it does not have are left out."""
        given = [_json(values[name]) if kind is ARRAY else values[name] for name, kind in self.types.items()]
        return self, tuple(given)

    def __repr__(self) -> str:
        return f"Query({self.sql!r}, types={self.types!r})"


def _json(values: Iterable[Any]) -> str:
    return orjson.dumps(list(values)).decode()
