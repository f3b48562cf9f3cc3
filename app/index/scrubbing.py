"""What the scrubber reads: every row that holds a blob, in batches, each in one state of the index."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from app.index.connection import all_rows, one_row
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


HOLDS = {
    "version": "SELECT 1 FROM versions WHERE seq = :a AND body = :locator",
    "piece": "SELECT 1 FROM pieces WHERE (upload, start, part_number) = (:a, :b, :c) AND locator = :locator",
    "part": """SELECT 1 FROM parts, json_each(parts.extents) AS extent
        WHERE (upload, number) = (:a, :b) AND json_extract(extent.value, '$[0]') = :locator""",
}


class Live(NamedTuple):
    """A row that holds a blob."""

    kind: str
    place: Place
    """Which row of its kind."""
    locator: str
    offset: int
    size: int
    etag: str
    """The MD5 of the whole blob, if the row says it."""
    bucket: str
    key: str


def live(connection: apsw.Connection, kind: str, after: Place = FIRST) -> tuple[list[Live], Place | None]:
    """A batch of rows behind `after`, and the position to go on from, None at the end of the kind."""
    named = dict(zip("abc", after, strict=True)) | {"limit": BATCH}
    rows = all_rows(connection, QUERIES[kind], named)
    if not rows:
        return [], None
    found = [
        Live(kind, (a, b, c), locator, offset, size, etag if len(etag) == 32 else "", bucket or "", key or "")
        for a, b, c, locator, offset, size, etag, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    return found, rows[-1][:3]


def holds(connection: apsw.Connection, row: Live) -> bool:
    """Whether a row still holds that blob at that place."""
    named = dict(zip("abc", row.place, strict=True)) | {"locator": row.locator}
    return one_row(connection, HOLDS[row.kind], named) is not None
