"""Archived versions that are, or are to be, restored for a while.

A version's own headers have its state, and so do its blob's claim and the journals. Notes of the index say which
versions to check and when; they may be wrong, the headers never are.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from sluice_s3.app.index.rows import Bucket
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
from sluice_s3.app.index.sql.transaction import Transaction

RESTORE = "restore"
"""Name beside the headers, which none of these has."""
MARK = f'"{RESTORE}":'
"""In a row's headers when there is one, or a tag of that name: `restore_state` distinguishes them."""
PREFIX = "restore:"
"""Prefix of the notes' names; the bucket, the version and the key follow. Their values are times."""

ARCHIVE_OFFSET = 1 << 60
"""Where pieces in the archive begin while an object is restored; no object is so large."""


class RestoreState(NamedTuple):
    """Times are milliseconds since the epoch."""

    days: int
    tier: str
    asked: int
    until: int
    """When the restore ends; 0 while it has not begun."""


def restore_state(headers: str) -> RestoreState | None:
    """Return the state of a version, from its row's headers; None for most."""
    if MARK not in headers:
        return None
    found = orjson.loads(headers).get(RESTORE)
    return None if found is None else RestoreState(*found)


def with_restore(headers: str, restore: RestoreState | None) -> str:
    """Return the headers with this state."""
    if restore is None and MARK not in headers:
        return headers
    row = orjson.loads(headers)
    row.pop(RESTORE, None)
    if restore is not None:
        row[RESTORE] = list(restore)
    return orjson.dumps(row).decode()


class DueRestore(NamedTuple):
    """A note, and the version that it names."""

    name: str
    value: str
    bucket_id: int
    version_id: str
    key: str


def restore_meta_key(bucket_id: int, version_id: str, key: str) -> str:
    """Return the name of a version's note."""
    return f"{PREFIX}{bucket_id}:{version_id}:{key}"


def restore_meta_value(at: int) -> str:
    """Return the value of a note that is due from then on."""
    return f"{at:015}"


def _render_due(dialect: SqlDialect) -> str:
    return f"""
    SELECT name, value FROM meta WHERE name >= '{PREFIX}' AND name < '{PREFIX[:-1]};' AND value <= {dialect.text("now")}
    ORDER BY value, name LIMIT {dialect.number("limit")}
    """  # noqa: S608 - constants


def _render_bucket(dialect: SqlDialect) -> str:
    return f"SELECT {', '.join(Bucket._fields)} FROM buckets WHERE id = {dialect.number('bucket')}"  # noqa: S608


DUE = Query(_render_due)
BUCKET = Query(_render_bucket)


def due_restores(now: int, limit: int) -> Transaction[list[DueRestore]]:
    """Read the archived versions that are due by now."""
    rows = yield DUE.bind(now=restore_meta_value(now), limit=limit)
    found = []
    for name, value in rows:
        bucket_id, version_id, key = name.removeprefix(PREFIX).split(":", 2)
        found.append(DueRestore(name, value, int(bucket_id), version_id, key))
    return found


def bucket(bucket_id: int) -> Transaction[Bucket | None]:
    """Read the bucket of that number."""
    rows = yield BUCKET.bind(bucket=bucket_id)
    return Bucket._make(rows[0]) if rows else None
