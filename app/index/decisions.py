"""What is written down beside the data, read from the index: batches of changes, and everything for a snapshot.

SQLite makes the JSON itself: that costs no more than the rows alone as Python objects, and holds up no other thread.
Each batch is read in one state of the index, on a connection of its own.
"""

from __future__ import annotations

from typing import NamedTuple

import apsw

from app.index.connection import all_rows, one_row
from app.index.schema import DEFAULT, access_keys, accounts, buckets, pieces, removals, uploads, versions
from app.index.steps import of_store

WATERMARK = "decided"
"""Note of each store: all up to there is in its journals."""
BATCH = 5000
"""Rows of a batch."""
COUNTED = 100_000
"""Undecided changes are counted up to here."""

VERSION_COLUMNS = tuple(versions.c.keys())
UPLOAD_COLUMNS = tuple(uploads.c.keys())
PIECE_COLUMNS = tuple(pieces.c.keys())
REMOVAL_COLUMNS = tuple(removals.c.keys())


MINE = "bucket_id IN (SELECT id FROM buckets WHERE :store IN (store, source))"
"""What the journals of a store are for: its buckets, and those whose data is being moved away from it."""
MINE_OR_NOBODYS = f"({MINE} OR bucket_id NOT IN (SELECT id FROM buckets))"  # noqa: S608 - a constant


def _rows(columns: tuple[str, ...], source: str, *more: str) -> str:
    wanted = ", ".join((f"json_group_array(json_array({', '.join(columns)}))", *more))
    return f"SELECT {wanted} FROM {source}"  # noqa: S608 - names of columns and our own subqueries


_VERSIONS = f"FROM versions WHERE seq > :after AND seq <= :until AND {MINE} ORDER BY seq"
_REMOVALS = f"""FROM removals WHERE seq > :after AND seq <= :until
    AND (store = :store OR store = '' AND {MINE_OR_NOBODYS}) ORDER BY seq"""
VERSIONS_END = f"SELECT count(*), max(seq) FROM (SELECT seq {_VERSIONS} LIMIT :limit) AS changed"  # noqa: S608
REMOVALS_END = f"SELECT count(*), max(seq) FROM (SELECT seq {_REMOVALS} LIMIT :limit) AS changed"  # noqa: S608
CHANGED_VERSIONS = _rows(VERSION_COLUMNS, f"(SELECT * {_VERSIONS}) AS changed")
CHANGED_REMOVALS = _rows(REMOVAL_COLUMNS, f"(SELECT * {_REMOVALS}) AS changed")
COMPLETED = f"""
SELECT id FROM uploads WHERE completed_seq > :after AND id IN (
    SELECT CAST(substr(body, 8) AS INTEGER) FROM versions WHERE seq > :after AND seq <= :until AND body >= 'pieces:'
    AND body < 'pieces;' AND {MINE})
"""  # noqa: S608 - constants
CHANGED_UPLOADS = _rows(UPLOAD_COLUMNS, "uploads WHERE id IN (SELECT value FROM json_each(:ids))")
PIECES_OF = """(SELECT * FROM pieces WHERE upload IN (SELECT value FROM json_each(:ids))
    AND (upload, start, part_number) > (:a, :b, :c) ORDER BY upload, start, part_number LIMIT :limit) AS batch"""
ALL_UPLOADS = f"""(SELECT * FROM uploads WHERE id > :after AND completed_seq > 0 AND {MINE_OR_NOBODYS}
    ORDER BY id LIMIT :limit) AS batch"""  # noqa: S608 - constants
ALL_PIECES = f"""(SELECT * FROM pieces WHERE (upload, start, part_number) > (:a, :b, :c)
    AND EXISTS (SELECT 1 FROM uploads WHERE uploads.id = pieces.upload AND {MINE_OR_NOBODYS})
    ORDER BY upload, start, part_number LIMIT :limit) AS batch"""  # noqa: S608 - constants
SETTINGS = f"""
SELECT json_object(
    'accounts', json(({_rows(tuple(accounts.c.keys()), "accounts")})),
    'access_keys', json(({_rows(tuple(access_keys.c.keys()), "access_keys")})),
    'buckets', json(({_rows(tuple(buckets.c.keys()), "buckets")})),
    'root', (SELECT value FROM meta WHERE name = 'root')
)
"""  # noqa: S608 - names of columns
UNDECIDED = f"""
WITH decided(seq) AS (SELECT coalesce((SELECT CAST(value AS INTEGER) FROM meta WHERE name = :watermark), 0))
SELECT count(*), coalesce(min(at), 0) FROM (
    SELECT modified AS at FROM
        (SELECT modified FROM versions WHERE seq > (SELECT seq FROM decided) AND {MINE} LIMIT :limit) AS made
    UNION ALL SELECT at FROM (SELECT at FROM removals WHERE seq > (SELECT seq FROM decided)
        AND (store = :store OR store = '' AND {MINE}) LIMIT :limit) AS gone
) AS changed
"""  # noqa: S608 - constants

STORED = """
WITH mine(id) AS MATERIALIZED (SELECT id FROM buckets WHERE store = :store)
SELECT coalesce((SELECT sum(size) FROM versions WHERE bucket_id IN mine), 0) + coalesce((SELECT sum(parts.size)
    FROM uploads JOIN parts ON parts.upload = uploads.id
    WHERE uploads.completed_seq = 0 AND uploads.bucket_id IN mine), 0)
"""

Place = tuple[int, int, int]
FIRST: Place = (-1, -1, -1)


class Changes(NamedTuple):
    """What changed between two numbers of the commit sequence. Rows are JSON arrays in the order of their columns."""

    until: int
    """All up to here is in it."""
    more: bool
    number: int
    """Versions and removals, or more."""
    versions: str
    removals: str
    uploads: list[int]
    """Uploads whose Complete is among the changes."""


def changes(
    connection: apsw.Connection, after: int, limit: int = BATCH, until: int | None = None, store: str = DEFAULT
) -> Changes:
    """The first changes of a store's buckets behind `after`: versions as they are now, and removals."""
    connection.execute("BEGIN")
    try:
        if until is None:
            (until,) = one_row(connection, "SELECT value FROM sequence")
        bounds = {"after": after, "until": until, "limit": limit, "store": store}
        count = 0
        more = False
        for end in (VERSIONS_END, REMOVALS_END):
            found, last = one_row(connection, end, bounds)
            count += found
            if found >= limit:
                more, bounds["until"] = True, last
        (changed,) = one_row(connection, CHANGED_VERSIONS, bounds)
        (gone,) = one_row(connection, CHANGED_REMOVALS, bounds)
        completed = [number for (number,) in all_rows(connection, COMPLETED, bounds)]
        return Changes(int(bounds["until"] or 0), more, count, changed, gone, completed)
    finally:
        connection.execute("ROLLBACK")


def settings(connection: apsw.Connection) -> str:
    """Accounts, keys and buckets as a JSON object of arrays of rows."""
    return str(one_row(connection, SETTINGS)[0])


def uploads_of(connection: apsw.Connection, ids: str) -> str:
    """Rows of the uploads whose ids a JSON array names."""
    return str(one_row(connection, CHANGED_UPLOADS, {"ids": ids})[0])


def pieces_of(
    connection: apsw.Connection, ids: str | None, after: Place, store: str = DEFAULT
) -> tuple[str, Place | None]:
    """A batch of pieces behind `after` (of all a store's uploads without `ids`), and the place to go on from."""
    source = ALL_PIECES if ids is None else PIECES_OF
    bounds: dict[str, object] = {**dict(zip("abc", after, strict=True)), "ids": ids, "limit": BATCH, "store": store}
    # pieces never change, so that two statements may see two states of the index
    rows, count = one_row(connection, _rows(PIECE_COLUMNS, source, "count(*)"), bounds)
    if count < BATCH:
        return rows, None
    last = f"SELECT upload, start, part_number FROM {source} LIMIT 1 OFFSET {BATCH - 1}"  # noqa: S608
    return rows, one_row(connection, last, bounds)


def uploads_after(connection: apsw.Connection, after: int, store: str = DEFAULT) -> tuple[str, int | None]:
    """A batch of completed uploads behind `after`, and the one to go on from, None at the end."""
    bounds = {"after": after, "limit": BATCH, "store": store}
    rows, count, last = one_row(connection, _rows(UPLOAD_COLUMNS, ALL_UPLOADS, "count(*)", "max(id)"), bounds)
    return rows, last if count >= BATCH else None


def stored_bytes(connection: apsw.Connection, store: str) -> int:
    """Bytes of the objects of a store's buckets and of parts of their open uploads; a copy counts like its source."""
    return int(one_row(connection, STORED, {"store": store})[0])


def versions_count(connection: apsw.Connection, store: str = DEFAULT) -> int:
    """How many versions a store's buckets have. Reads the whole of an index of theirs."""
    counted = f"SELECT count(*) FROM versions WHERE {MINE}"  # noqa: S608 - a constant
    return int(one_row(connection, counted, {"store": store})[0])


def undecided(connection: apsw.Connection, store: str = DEFAULT) -> tuple[int, int]:
    """How many changes (up to about COUNTED) are not written down yet, and when the oldest was made; 0 for none."""
    wanted = {"limit": COUNTED, "store": store, "watermark": of_store(WATERMARK, store)}
    count, oldest = one_row(connection, UNDECIDED, wanted)
    return int(count), int(oldest)
