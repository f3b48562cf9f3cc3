"""Archived versions that are, or are to be, back for a while.

How it stands is told by a version's own headers, and so by its blob's claim and by the journals. Notes of the index say
which versions are to be looked at and when; they may be wrong, never the headers.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from app.index.rows import Bucket
from app.index.steps import Transaction
from app.index.words import Query, Words

RESTORE = "restore"
"""Name beside the headers, which none of these has."""
MARK = f'"{RESTORE}":'
"""In a row's headers when there is one, or a tag of that name: `of` tells them apart."""
PREFIX = "restore:"
"""How the names of the notes begin: then come the bucket, the version and the key. Their values are times."""

KEPT = 1 << 60
"""Where pieces begin that lie in the archive while an object is back; no object is so large."""


class Restore(NamedTuple):
    """Times are milliseconds since the epoch."""

    days: int
    tier: str
    asked: int
    until: int
    """When it ends; 0 while it has not begun."""


def of(headers: str) -> Restore | None:
    """How it stands with a version, by its row's headers; None for most."""
    if MARK not in headers:
        return None
    found = orjson.loads(headers).get(RESTORE)
    return None if found is None else Restore(*found)


def with_restore(headers: str, restore: Restore | None) -> str:
    """The headers, told how it stands now."""
    if restore is None and MARK not in headers:
        return headers
    row = orjson.loads(headers)
    row.pop(RESTORE, None)
    if restore is not None:
        row[RESTORE] = list(restore)
    return orjson.dumps(row).decode()


class Pending(NamedTuple):
    """A note, and what it is about."""

    name: str
    value: str
    bucket_id: int
    version_id: str
    key: str


def note_name(bucket_id: int, version_id: str, key: str) -> str:
    """The name of a version's note."""
    return f"{PREFIX}{bucket_id}:{version_id}:{key}"


def note_value(at: int) -> str:
    """The value of a note that is to be looked at from then on."""
    return f"{at:015}"


def _due(words: Words) -> str:
    return f"""
    SELECT name, value FROM meta WHERE name >= '{PREFIX}' AND name < '{PREFIX[:-1]};' AND value <= {words.text("now")}
    ORDER BY value, name LIMIT {words.number("limit")}
    """  # noqa: S608 - constants


def _bucket(words: Words) -> str:
    return f"SELECT {', '.join(Bucket._fields)} FROM buckets WHERE id = {words.number('bucket')}"  # noqa: S608


DUE = Query(_due)
BUCKET = Query(_bucket)


def due(now: int, limit: int) -> Transaction[list[Pending]]:
    """What is to be looked at by now."""
    rows = yield DUE.given(now=note_value(now), limit=limit)
    found = []
    for name, value in rows:
        bucket_id, version_id, key = name.removeprefix(PREFIX).split(":", 2)
        found.append(Pending(name, value, int(bucket_id), version_id, key))
    return found


def bucket(bucket_id: int) -> Transaction[Bucket | None]:
    """The bucket of that number."""
    rows = yield BUCKET.given(bucket=bucket_id)
    return Bucket._make(rows[0]) if rows else None
