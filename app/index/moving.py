"""What of a bucket lies on which store: batches of rows, each read in one state, on a connection of its own."""
# ruff: noqa: S608 - statements of constants, see `app.index.words`

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from app.index.schema import DEFAULT
from app.index.steps import Transaction
from app.index.words import Query, Words

BATCH = 500


# in the order of their numbers, so that one pass sees every row that was there when it began
def _versions(words: Words) -> str:
    return f"""
    SELECT seq, key, versions.body, size, coalesce(shared.holders, 1), storage_class
    FROM versions LEFT JOIN shared ON shared.body = versions.body
    WHERE seq > {words.number("after")} AND bucket_id = {words.number("bucket")} AND versions.body != ''
    ORDER BY seq LIMIT {words.number("limit")}
    """


VERSIONS = Query(_versions)


def _pieces(words: Words) -> str:
    return f"""
    SELECT start, part_number, pieces.locator, coalesce(shared.holders, 1)
    FROM pieces LEFT JOIN shared ON shared.body = pieces.locator
    WHERE upload = {words.number("upload")} AND pieces.locator != '' ORDER BY start, part_number
    """


PIECES = Query(_pieces)


def _parts(words: Words) -> str:
    return f"""
    SELECT parts.upload, parts.number, uploads.key, {words.locator} AS locator, coalesce(shared.holders, 1),
        uploads.storage_class
    FROM uploads JOIN parts ON parts.upload = uploads.id JOIN {words.extents} ON true
    LEFT JOIN shared ON shared.body = {words.locator}
    WHERE uploads.bucket_id = {words.number("bucket")} AND uploads.completed_seq = 0
    """


PARTS = Query(_parts)


def _size(words: Words) -> str:
    return f"SELECT count(*), coalesce(sum(size), 0) FROM versions WHERE bucket_id = {words.number('bucket')}"


def _any(on: Callable[[str, Words], str]) -> Query:
    """Whether a row holds a blob of whose locator that is true."""

    def said(words: Words) -> str:
        return f"""
        SELECT 1 FROM versions WHERE {on("body", words)}
        UNION ALL SELECT 1 FROM pieces WHERE {on("locator", words)}
        UNION ALL SELECT 1 FROM parts, {words.extents} WHERE {on(words.locator, words)}
        LIMIT 1
        """

    return Query(said)


def _of_store(locator: str, words: Words) -> str:
    """The locators of all stores but the default one begin with the store's name and a slash."""
    return f"substr({locator}, 1, length({words.text('start')})) = {words.text('start')}"


def _of_default(locator: str, words: Words) -> str:
    """Those of the default store begin with the letter of their kind and a colon."""
    return f"substr({locator}, 2, 1) = ':'"


SIZE = Query(_size)
ANY_ON = _any(_of_store)
ANY_ON_DEFAULT = _any(_of_default)


class Body(NamedTuple):
    """A version and what it holds; `holders` is how many rows hold that."""

    seq: int
    key: str
    body: str
    size: int
    holders: int
    storage_class: str


class Held(NamedTuple):
    """A blob that a piece (start, part number) or a part (upload, number) holds."""

    first: int
    second: int
    locator: str
    holders: int
    storage_class: str = ""
    """Of an upload whose part it is."""


def bodies(bucket_id: int, after: int) -> Transaction[list[Body]]:
    """A batch of a bucket's versions behind `after` that have a body."""
    rows = yield VERSIONS.given(bucket=bucket_id, after=after, limit=BATCH)
    return [Body._make(row) for row in rows]


def pieces(upload: int) -> Transaction[list[Held]]:
    """The blobs that a completed upload is made of."""
    rows = yield PIECES.given(upload=upload)
    return [Held(*row) for row in rows]


def parts(bucket_id: int) -> Transaction[list[tuple[str, Held]]]:
    """The blobs that the parts of a bucket's open uploads hold, each with its key."""
    rows = yield PARTS.given(bucket=bucket_id)
    return [(key, Held(upload, part, *held)) for upload, part, key, *held in rows]


def any_on(store: str) -> Transaction[bool]:
    """Whether any row holds a blob of a store."""
    rows = yield ANY_ON_DEFAULT.given() if store == DEFAULT else ANY_ON.given(start=f"{store}/")
    return bool(rows)


def size(bucket_id: int) -> Transaction[tuple[int, int]]:
    """Versions of a bucket, and their bytes."""
    ((count, total),) = yield SIZE.given(bucket=bucket_id)
    return int(count), int(total)
