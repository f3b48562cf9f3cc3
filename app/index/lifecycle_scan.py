"""Input of lifecycle rules: buckets with rules, and pages of their versions."""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from functools import partial
from heapq import merge
from itertools import islice
from typing import NamedTuple

from sluice_s3.app.index.rows import Bucket
from sluice_s3.app.index.schema import tables
from sluice_s3.app.index.sql.dialect import Query, Words
from sluice_s3.app.index.sql.transaction import Row, Transaction

ROWS_PER_BATCH = 500

COLUMNS = ("seq", "key", "version_id", "state", "size", "modified")
"""The first columns of a row; the headers and the storage class follow."""
KEY, MODIFIED = COLUMNS.index("key"), COLUMNS.index("modified")

ScanPosition = tuple[str, int | None]
"""A key and a time. With None as the time, before all versions of the key (see `scan_start`); else after its version of
that time, newest first."""


class ExpireEntry(NamedTuple):
    """A version to remove.

    `states` are the states that it may have: the rules judged it as one of these.
    """

    key: str
    version_id: str
    seq: int
    states: tuple[int, ...]


OBJECT, OLDER, LONE = (tables.CURRENT,), (tables.NONCURRENT, tables.OLD_MARKER), (tables.MARKER,)
"""States of a judged version: the current object; an older version or delete marker; a delete marker that is the last
version."""


def _columns(tags: bool) -> str:
    # no index has the headers
    return f"{', '.join(COLUMNS)}, {'headers' if tags else chr(39) * 2}, storage_class"


def _from(words: Words, *, state: str, order: str, tags: bool) -> str:
    return f"""
    SELECT {_columns(tags)} FROM versions
    WHERE bucket_id = {words.number("bucket")} AND {state}
    AND key >= {words.text("first")} AND key < {words.text("end")} ORDER BY {order} LIMIT {words.number("limit")}
    """


def _rest_of_key(words: Words, *, tags: bool) -> str:
    return f"""
    SELECT {_columns(tags)} FROM versions
    WHERE bucket_id = {words.number("bucket")} AND key = {words.text("first")} AND modified < {words.number("before")}
    AND state != 1 ORDER BY modified DESC LIMIT {words.number("limit")}
    """


CURRENT = {tags: Query(partial(_from, state="state = 1", order="key", tags=tags)) for tags in (False, True)}
OTHERS = {
    tags: Query(partial(_from, state="state != 1", order="key, modified DESC", tags=tags)) for tags in (False, True)
}
REST = {tags: Query(partial(_rest_of_key, tags=tags)) for tags in (False, True)}
BUCKETS = Query(f"SELECT {', '.join(Bucket._fields)} FROM buckets WHERE settings != '' ORDER BY id")


def buckets() -> Transaction[list[Bucket]]:
    """Return the buckets with lifecycle rules.

    Buckets whose settings contain `"lifecycle":` elsewhere may be among them.
    """
    found = [Bucket._make(row) for row in (yield BUCKETS.given())]
    return [bucket for bucket in found if '"lifecycle":' in bucket.settings]


def scan_start(prefix: str) -> ScanPosition:
    """Return the position before all keys of a prefix."""
    return prefix, None


def scan_page(
    bucket_id: int, place: ScanPosition, end: str, *, tags: bool
) -> Transaction[tuple[list[Row], ScanPosition | None]]:
    """Return versions from a position and before the key `end`, and the next position.

    Versions are ordered by key, and newest first within a key. The position is None at the end. A row has `COLUMNS`,
    the headers, which are empty without `tags`, and the storage class.
    """
    first, time = place
    bounds = {"bucket": bucket_id, "first": first, "end": end, "limit": ROWS_PER_BATCH}
    rows: list[Row] = []
    if time is not None:
        rows = yield REST[tags].given(**bounds, before=time)
        if len(rows) == ROWS_PER_BATCH:
            return rows, (first, rows[-1][MODIFIED])
        bounds["first"] = first = first + "\0"
    current = yield CURRENT[tags].given(**bounds)
    others = yield OTHERS[tags].given(**bounds)
    # each query returned its first rows, so the first of all are among them
    found = list(islice(merge(current, others, key=_order), ROWS_PER_BATCH))
    if len(found) < ROWS_PER_BATCH:
        return rows + found, None
    return rows + found, (found[-1][KEY], found[-1][MODIFIED])


def _order(row: Row) -> tuple[str, int]:
    return row[KEY], -row[MODIFIED]
