"""Input of lifecycle rules: buckets with rules, and pages of their versions."""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from functools import partial
from heapq import merge
from itertools import islice

from sluice_s3.app.index.buckets.queries import BUCKETS
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
from sluice_s3.app.index.sql.transaction import Row, Transaction

ROWS_PER_BATCH = 500

COLUMNS = ("seq", "key", "version_id", "state", "size", "modified")
"""The first columns of a row; the headers and the storage class follow."""
KEY, MODIFIED = COLUMNS.index("key"), COLUMNS.index("modified")

ScanPosition = tuple[str, int | None]
"""A key and a time. With None as the time, before all versions of the key (see `scan_start`); else after its version of
that time, newest first."""


def _columns(tags: bool) -> str:
    # no index has the headers
    return f"{', '.join(COLUMNS)}, {'headers' if tags else chr(39) * 2}, storage_class"


def _render_versions(dialect: SqlDialect, *, state: str, order: str, tags: bool) -> str:
    return f"""
    SELECT {_columns(tags)} FROM versions
    WHERE bucket_id = {dialect.number("bucket")} AND {state}
    AND key >= {dialect.text("first")} AND key < {dialect.text("end")} ORDER BY {order} LIMIT {dialect.number("limit")}
    """


def _render_rest_of_key(dialect: SqlDialect, *, tags: bool) -> str:
    return f"""
    SELECT {_columns(tags)} FROM versions
    WHERE bucket_id = {dialect.number("bucket")} AND key = {dialect.text("first")}
    AND modified < {dialect.number("before")} AND state != 1 ORDER BY modified DESC LIMIT {dialect.number("limit")}
    """


CURRENT = {tags: Query(partial(_render_versions, state="state = 1", order="key", tags=tags)) for tags in (False, True)}
OTHERS = {
    tags: Query(partial(_render_versions, state="state != 1", order="key, modified DESC", tags=tags))
    for tags in (False, True)
}
REST = {tags: Query(partial(_render_rest_of_key, tags=tags)) for tags in (False, True)}


def buckets() -> Transaction[list[Bucket]]:
    """Return the buckets with lifecycle rules.

    Buckets whose settings contain `"lifecycle":` elsewhere may be among them.
    """
    configured = [Bucket._make(row) for row in (yield BUCKETS.bind())]
    return [bucket for bucket in configured if '"lifecycle":' in bucket.settings]


def scan_start(prefix: str) -> ScanPosition:
    """Return the position before all keys of a prefix."""
    return prefix, None


def scan_page(
    bucket_id: int, position: ScanPosition, end: str, *, tags: bool
) -> Transaction[tuple[list[Row], ScanPosition | None]]:
    """Return versions from a position and before the key `end`, and the next position.

    Versions are ordered by key, and newest first within a key. The position is None at the end. A row has `COLUMNS`,
    the headers, which are empty without `tags`, and the storage class.
    """
    first, time = position
    bounds = {"bucket": bucket_id, "first": first, "end": end, "limit": ROWS_PER_BATCH}
    rows: list[Row] = []
    if time is not None:
        rows = yield REST[tags].bind(**bounds, before=time)
        if len(rows) == ROWS_PER_BATCH:
            return rows, (first, rows[-1][MODIFIED])
        bounds["first"] = first = first + "\0"
    current = yield CURRENT[tags].bind(**bounds)
    others = yield OTHERS[tags].bind(**bounds)
    # each query returned its first rows, so the first of all are among them
    versions = list(islice(merge(current, others, key=_order), ROWS_PER_BATCH))
    if len(versions) < ROWS_PER_BATCH:
        return rows + versions, None
    return rows + versions, (versions[-1][KEY], versions[-1][MODIFIED])


def _order(row: Row) -> tuple[str, int]:
    return row[KEY], -row[MODIFIED]
