"""What lifecycle rules are asked of: buckets that have some, and their versions, a page at a time."""
# ruff: noqa: S608 - statements of constants, see `app.index.words`

from __future__ import annotations

from functools import partial
from heapq import merge
from itertools import islice
from typing import NamedTuple

from app.index import schema
from app.index.rows import Bucket
from app.index.steps import Row, Transaction
from app.index.words import Query, Words

BATCH = 500

COLUMNS = ("seq", "key", "version_id", "state", "size", "modified")
"""Behind them come the headers and the storage class."""
KEY, MODIFIED = COLUMNS.index("key"), COLUMNS.index("modified")

Place = tuple[str, int | None]
"""Behind all versions of a key, or behind the one of that time (newest first) when there is one; see `begin`."""


class Expired(NamedTuple):
    """A version that is to go. `states` are those that it may have: it was judged as one of these."""

    key: str
    version_id: str
    seq: int
    states: tuple[int, ...]


OBJECT, OLDER, LONE = (schema.CURRENT,), (schema.NONCURRENT, schema.OLD_MARKER), (schema.MARKER,)
"""What a version may be judged as: the current object, an older version, a delete marker that nothing is under."""


def _columns(tags: bool) -> str:
    # the headers are in no index
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
    """Buckets with a setting of that name, and maybe others in whose settings it stands elsewhere."""
    found = [Bucket._make(row) for row in (yield BUCKETS.given())]
    return [bucket for bucket in found if '"lifecycle":' in bucket.settings]


def begin(prefix: str) -> Place:
    """Before all keys of a prefix."""
    return prefix, None


def page(bucket_id: int, place: Place, end: str, *, tags: bool) -> Transaction[tuple[list[Row], Place | None]]:
    """Versions from a place on and before the key `end`, by key, of one key the newest first, and the place to go on
    from, None at the end. Rows are COLUMNS, the headers, which are empty without `tags`, and the storage class."""
    first, time = place
    bounds = {"bucket": bucket_id, "first": first, "end": end, "limit": BATCH}
    rows: list[Row] = []
    if time is not None:
        rows = yield REST[tags].given(**bounds, before=time)
        if len(rows) == BATCH:
            return rows, (first, rows[-1][MODIFIED])
        bounds["first"] = first = first + "\0"
    current = yield CURRENT[tags].given(**bounds)
    others = yield OTHERS[tags].given(**bounds)
    # each gave its first ones, and so the first of all are among them
    found = list(islice(merge(current, others, key=_order), BATCH))
    if len(found) < BATCH:
        return rows + found, None
    return rows + found, (found[-1][KEY], found[-1][MODIFIED])


def _order(row: Row) -> tuple[str, int]:
    return row[KEY], -row[MODIFIED]
