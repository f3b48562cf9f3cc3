"""How much a bucket holds, read from the index on a connection of its own."""
# ruff: noqa: S608 - statements of constants, see `app.index.words`

from __future__ import annotations

from typing import NamedTuple

from app.index.steps import Transaction
from app.index.words import Query, Words


# each condition is that of an index, of which the first has all that is asked
def _usage(words: Words) -> str:
    return f"""
    WITH current(bytes, objects) AS (
        SELECT coalesce(sum(size), 0), count(*) FROM versions WHERE bucket_id = {words.number("bucket")} AND state = 1
    ), older(bytes, objects) AS (
        SELECT coalesce(sum(size), 0), count(*) FROM versions
        WHERE bucket_id = {words.number("bucket")} AND state != 1 AND state = 0
    ), parts_of(bytes) AS (
        SELECT coalesce(sum(parts.size), 0) FROM uploads JOIN parts ON parts.upload = uploads.id
        WHERE uploads.bucket_id = {words.number("bucket")} AND uploads.completed_seq = 0
    )
    SELECT current.bytes + older.bytes + parts_of.bytes, current.objects + older.objects FROM current, older, parts_of
    """


USAGE = Query(_usage)


class Usage(NamedTuple):
    """What a bucket holds: all versions of its objects, and parts of open uploads. A copy counts like its source."""

    bytes: int
    objects: int
    """Versions, without delete markers."""


def of_bucket(bucket_id: int) -> Transaction[Usage]:
    """The usage of a bucket. Reads all of its rows."""
    ((size, count),) = yield USAGE.given(bucket=bucket_id)
    return Usage(int(size), int(count))
