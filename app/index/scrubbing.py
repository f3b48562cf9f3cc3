"""What the scrubber reads: every row that holds a blob, in batches, each in one state of the index."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from app.index.decisions import FIRST, Place
from app.index.rows import PIECES

BATCH = 500

KINDS = ("version", "piece", "part")
QUERIES = {
    "version": """SELECT seq, 0, 0, body, 0, size, CASE WHEN parts = 0 THEN etag ELSE '' END, buckets.name, key
        FROM (SELECT * FROM versions WHERE seq > :a ORDER BY seq LIMIT :limit) AS versions
        LEFT JOIN buckets ON buckets.id = versions.bucket_id ORDER BY seq""",
    "piece": """SELECT upload, start, part_number, locator, blob_offset, size, '', buckets.name, uploads.key
        FROM (SELECT * FROM pieces WHERE (upload, start, part_number) > (:a, :b, :c)
              ORDER BY upload, start, part_number LIMIT :limit) AS pieces
        LEFT JOIN uploads ON uploads.id = pieces.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
        ORDER BY upload, start, part_number""",
    "part": """SELECT parts.upload, parts.number, 0, json_extract(extent.value, '$[0]'),
            json_extract(extent.value, '$[1]'), json_extract(extent.value, '$[2]'), '', buckets.name, uploads.key
        FROM (SELECT * FROM parts WHERE (upload, number) > (:a, :b) ORDER BY upload, number LIMIT :limit) AS parts
        LEFT JOIN json_each(parts.extents) AS extent
        LEFT JOIN uploads ON uploads.id = parts.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
        ORDER BY parts.upload, parts.number""",
}


class Live(NamedTuple):
    """A row that holds a blob."""

    locator: str
    offset: int
    size: int
    etag: str
    """The MD5 of the whole blob, if the row says it."""
    bucket: str
    key: str


def live(connection: sqlite3.Connection, kind: str, after: Place = FIRST) -> tuple[list[Live], Place | None]:
    """A batch of rows behind `after`, and the position to go on from, None at the end of the kind."""
    named = dict(zip("abc", after, strict=True)) | {"limit": BATCH}
    rows = connection.execute(QUERIES[kind], named).fetchall()
    if not rows:
        return [], None
    found = [
        Live(locator, offset, size, etag if len(etag) == 32 else "", bucket or "", key or "")
        for _, _, _, locator, offset, size, etag, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    return found, rows[-1][:3]
