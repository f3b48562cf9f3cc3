"""What of a bucket lies on which store: batches of rows, each read in one state, on a connection of its own."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from app.index.connection import all_rows, one_row
from app.index.schema import DEFAULT

BATCH = 500

# in the order of their numbers, so that one pass sees every row that was there when it began
VERSIONS = """
SELECT seq, key, versions.body, size, coalesce(shared.holders, 1)
FROM versions LEFT JOIN shared ON shared.body = versions.body
WHERE seq > :after AND bucket_id = :bucket AND versions.body != '' ORDER BY seq LIMIT :limit
"""
PIECES = """
SELECT start, part_number, pieces.locator, coalesce(shared.holders, 1)
FROM pieces LEFT JOIN shared ON shared.body = pieces.locator
WHERE upload = :upload AND pieces.locator != '' ORDER BY start, part_number
"""
PARTS = """
SELECT parts.upload, parts.number, uploads.key, json_extract(extent.value, '$[0]') AS locator,
    coalesce(shared.holders, 1)
FROM uploads JOIN parts ON parts.upload = uploads.id JOIN json_each(parts.extents) AS extent
LEFT JOIN shared ON shared.body = json_extract(extent.value, '$[0]')
WHERE uploads.bucket_id = :bucket AND uploads.completed_seq = 0
"""
SIZE = "SELECT count(*), coalesce(sum(size), 0) FROM versions WHERE bucket_id = :bucket"


ANY_ON = """
SELECT 1 FROM versions WHERE body GLOB :pattern
UNION ALL SELECT 1 FROM pieces WHERE locator GLOB :pattern
UNION ALL SELECT 1 FROM parts, json_each(parts.extents) AS extent WHERE json_extract(extent.value, '$[0]') GLOB :pattern
LIMIT 1
"""


class Body(NamedTuple):
    """A version and what it holds; `holders` is how many rows hold that."""

    seq: int
    key: str
    body: str
    size: int
    holders: int


class Held(NamedTuple):
    """A blob that a piece (start, part number) or a part (upload, number) holds."""

    first: int
    second: int
    locator: str
    holders: int


def bodies(connection: apsw.Connection, bucket_id: int, after: int) -> list[Body]:
    """A batch of a bucket's versions behind `after` that have a body."""
    wanted = {"bucket": bucket_id, "after": after, "limit": BATCH}
    return [Body._make(row) for row in all_rows(connection, VERSIONS, wanted)]


def pieces(connection: apsw.Connection, upload: int) -> list[Held]:
    """The blobs that a completed upload is made of."""
    return [Held._make(row) for row in all_rows(connection, PIECES, {"upload": upload})]


def parts(connection: apsw.Connection, bucket_id: int) -> list[tuple[str, Held]]:
    """The blobs that the parts of a bucket's open uploads hold, each with its key."""
    rows = all_rows(connection, PARTS, {"bucket": bucket_id})
    return [(key, Held(upload, part, locator, holders)) for upload, part, key, locator, holders in rows]


def any_on(connection: apsw.Connection, store: str) -> bool:
    """Whether any row holds a blob of a store."""
    pattern = "?:*" if store == DEFAULT else f"{store}/*"
    return bool(all_rows(connection, ANY_ON, {"pattern": pattern}))


def size(connection: apsw.Connection, bucket_id: int) -> tuple[int, int]:
    """Versions of a bucket, and their bytes."""
    count, total = one_row(connection, SIZE, {"bucket": bucket_id})
    return int(count), int(total)
