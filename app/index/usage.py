"""How much a bucket holds, read from the index on a connection of its own."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from app.index.connection import one_row

# each condition is that of an index, of which the first has all that is asked
USAGE = """
WITH current(bytes, objects) AS (
    SELECT coalesce(sum(size), 0), count(*) FROM versions WHERE bucket_id = :bucket AND state = 1
), older(bytes, objects) AS (
    SELECT coalesce(sum(size), 0), count(*) FROM versions WHERE bucket_id = :bucket AND state != 1 AND state = 0
), parts_of(bytes) AS (
    SELECT coalesce(sum(parts.size), 0) FROM uploads JOIN parts ON parts.upload = uploads.id
    WHERE uploads.bucket_id = :bucket AND uploads.completed_seq = 0
)
SELECT current.bytes + older.bytes + parts_of.bytes, current.objects + older.objects FROM current, older, parts_of
"""


class Usage(NamedTuple):
    """What a bucket holds: all versions of its objects, and parts of open uploads. A copy counts like its source."""

    bytes: int
    objects: int
    """Versions, without delete markers."""


def of_bucket(connection: apsw.Connection, bucket_id: int) -> Usage:
    """The usage of a bucket. Reads all of its rows."""
    return Usage(*map(int, one_row(connection, USAGE, {"bucket": bucket_id})))
