"""Who holds which blob: questions of the sweep and of fsck, which read whole tables and so run in a thread.

Each runs on a connection of its own and `held` and `miscounted` in one snapshot.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import orjson

from app.index.base import Reference
from app.index.rows import PIECES

BATCH = 1000

HELD = """
WITH wanted(locator) AS MATERIALIZED (SELECT value FROM json_each(:wanted))
SELECT body FROM versions WHERE seq > :since AND body IN (SELECT locator FROM wanted)
UNION
SELECT locator FROM pieces WHERE upload IN (SELECT id FROM uploads WHERE completed_seq > :since)
    AND locator IN (SELECT locator FROM wanted)
UNION
SELECT json_extract(extent.value, '$[0]') AS locator FROM parts, json_each(parts.extents) AS extent
    WHERE json_extract(extent.value, '$[0]') IN (SELECT locator FROM wanted)
UNION
SELECT body FROM discards WHERE body IN (SELECT locator FROM wanted)
"""

# an aborted upload never completed, and its pieces are none; a body of pieces counts like a blob
MISCOUNTED = """
WITH held(body) AS (
    SELECT body FROM versions WHERE body != ''
    UNION ALL SELECT locator FROM pieces WHERE locator != ''
    UNION ALL SELECT json_extract(extent.value, '$[0]') FROM parts, json_each(parts.extents) AS extent
),
counted(body, holders) AS MATERIALIZED (SELECT body, count(*) FROM held GROUP BY body)
SELECT counted.body, coalesce(shared.holders, 1), counted.holders
    FROM counted LEFT JOIN shared ON shared.body = counted.body
    WHERE counted.holders != coalesce(shared.holders, 1)
UNION ALL
SELECT body, holders, 0 FROM shared WHERE body NOT IN (SELECT body FROM counted)
UNION ALL
SELECT discards.body, 0, counted.holders FROM discards JOIN counted ON counted.body = discards.body
"""

# in the order in which rows hand a blob on, so that none is missed that moves while we read
REFERENCES: tuple[tuple[str, str], ...] = (
    (
        "part",
        """SELECT parts.upload, parts.number, 0, json_extract(extent.value, '$[0]'),
            json_extract(extent.value, '$[1]') + json_extract(extent.value, '$[2]'), buckets.name, uploads.key
        FROM (SELECT * FROM parts WHERE (upload, number) > (:a, :b) ORDER BY upload, number LIMIT :limit) AS parts
        JOIN json_each(parts.extents) AS extent
        LEFT JOIN uploads ON uploads.id = parts.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
        ORDER BY parts.upload, parts.number""",
    ),
    (
        "version",
        """SELECT seq, 0, 0, body, size, buckets.name, key
        FROM (SELECT * FROM versions WHERE seq > :a ORDER BY seq LIMIT :limit) AS versions
        LEFT JOIN buckets ON buckets.id = versions.bucket_id ORDER BY seq""",
    ),
    (
        "piece",
        """SELECT upload, start, part_number, locator, blob_offset + size, buckets.name, uploads.key
        FROM (SELECT * FROM pieces WHERE (upload, start, part_number) > (:a, :b, :c)
              ORDER BY upload, start, part_number LIMIT :limit) AS pieces
        LEFT JOIN uploads ON uploads.id = pieces.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
        ORDER BY upload, start, part_number""",
    ),
    ("discard", "SELECT id, 0, 0, body, 0, '', '' FROM discards WHERE id > :a ORDER BY id LIMIT :limit"),
)

Position = tuple[int, int, int]
BEGIN: Position = (-1, -1, -1)


def held(connection: sqlite3.Connection, locators: Sequence[str], since: int) -> set[str]:
    """Those of the locators that a row holds."""
    wanted = orjson.dumps(list(locators)).decode()
    return {locator for (locator,) in connection.execute(HELD, {"wanted": wanted, "since": since})}


def miscounted(connection: sqlite3.Connection) -> list[tuple[str, int, int]]:
    """Bodies whose kept count is not the true one: (body, kept, true)."""
    return connection.execute(MISCOUNTED).fetchall()


def references(connection: sqlite3.Connection, kind: str, after: Position) -> tuple[list[Reference], Position | None]:
    """A batch of references behind `after`, and the position to go on from, None at the end."""
    named = dict(zip("abc", after, strict=True)) | {"limit": BATCH}
    rows = connection.execute(dict(REFERENCES)[kind], named).fetchall()
    if not rows:
        return [], None
    found = [
        Reference(kind, locator, end, bucket or "", key or "")
        for *_, locator, end, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    return found, rows[-1][:3]
