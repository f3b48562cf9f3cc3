"""Who holds which blob: questions of the sweep and of fsck, which read whole tables and so run in a thread.

Each runs on a connection of its own, and in one snapshot but for `references`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import apsw
import orjson

from app.index import run
from app.index.connection import all_rows
from app.index.rows import PIECES, Held, Holder, Pack, Suspect
from app.index.schema import SEALED, SWEPT
from app.index.transactions import compaction
from app.index.transactions.packs import all_packs
from app.index.upkeep import Reference

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

# what stands before the first dot of a locator names its pack (`Driver.pack_prefix`)
HELD_IN = """
WITH wanted(prefix) AS MATERIALIZED (SELECT value FROM json_each(:prefixes))
SELECT body, 'version', seq, 0, 0 FROM versions
    WHERE substr(body, 1, instr(body, '.')) IN (SELECT prefix FROM wanted)
UNION ALL
SELECT locator, 'piece', upload, start, part_number FROM pieces
    WHERE substr(locator, 1, instr(locator, '.')) IN (SELECT prefix FROM wanted)
UNION ALL
SELECT json_extract(extent.value, '$[0]') AS locator, 'part', upload, number, 0
    FROM parts, json_each(parts.extents) AS extent
    WHERE substr(json_extract(extent.value, '$[0]'), 1, instr(json_extract(extent.value, '$[0]'), '.'))
        IN (SELECT prefix FROM wanted)
UNION ALL
SELECT body, 'discard', id, 0, 0 FROM discards
    WHERE substr(body, 1, instr(body, '.')) IN (SELECT prefix FROM wanted)
LIMIT :limit
"""
COUNTS = "SELECT body, holders FROM shared WHERE body IN (SELECT value FROM json_each(:bodies))"
HELD_BYTES = """
WITH wanted(prefix) AS MATERIALIZED (SELECT value FROM json_each(:prefixes)),
held(locator) AS (
    SELECT body FROM versions WHERE substr(body, 1, instr(body, '.')) IN (SELECT prefix FROM wanted)
    UNION
    SELECT locator FROM pieces WHERE substr(locator, 1, instr(locator, '.')) IN (SELECT prefix FROM wanted)
    UNION
    SELECT json_extract(extent.value, '$[0]') FROM parts, json_each(parts.extents) AS extent
        WHERE substr(json_extract(extent.value, '$[0]'), 1, instr(json_extract(extent.value, '$[0]'), '.'))
            IN (SELECT prefix FROM wanted)
    UNION
    SELECT body FROM discards WHERE substr(body, 1, instr(body, '.')) IN (SELECT prefix FROM wanted)
)
SELECT substr(locator, 1, instr(locator, '.')) AS prefix, sum(size_of(locator)) FROM held GROUP BY prefix
"""
WRITTEN = """
SELECT packs.id FROM packs JOIN writers ON writers.incarnation = packs.incarnation WHERE writers.state = 'live'
"""
PACKED = """
SELECT body FROM versions WHERE instr(body, '.') > 0
UNION ALL SELECT locator FROM pieces WHERE instr(locator, '.') > 0
UNION ALL SELECT json_extract(extent.value, '$[0]') AS locator FROM parts, json_each(parts.extents) AS extent
    WHERE instr(json_extract(extent.value, '$[0]'), '.') > 0
UNION ALL SELECT body FROM discards WHERE instr(body, '.') > 0
"""

Position = tuple[int, int, int]
BEGIN: Position = (-1, -1, -1)


def held(connection: apsw.Connection, locators: Sequence[str], since: int) -> set[str]:
    """Those of the locators that a row holds."""
    wanted = orjson.dumps(list(locators)).decode()
    return {locator for (locator,) in all_rows(connection, HELD, {"wanted": wanted, "since": since})}


def miscounted(connection: apsw.Connection) -> list[tuple[str, int, int]]:
    """Bodies whose kept count is not the true one: (body, kept, true)."""
    return all_rows(connection, MISCOUNTED)


def held_in(connection: apsw.Connection, prefixes: Sequence[str], limit: int) -> Held:
    """Who holds the records of packs whose locators begin so; at most `limit` holders are looked for."""
    connection.execute("BEGIN")
    try:
        wanted = {"prefixes": orjson.dumps(list(prefixes)).decode(), "limit": limit + 1}
        rows = all_rows(connection, HELD_IN, wanted)
        written = frozenset(number for (number,) in all_rows(connection, WRITTEN))
        wanted = {"bodies": orjson.dumps(list({row[0] for row in rows})).decode()}
        counts = dict(all_rows(connection, COUNTS, wanted))
    finally:
        connection.execute("ROLLBACK")
    found: dict[str, list[Holder]] = {}
    others = {row[0] for row in rows if row[1] == "discard"}
    for locator, kind, *place in rows:
        if kind != "discard":
            found.setdefault(locator, []).append(Holder(kind, *place))
    others.update(locator for locator, holders in found.items() if len(holders) != counts.get(locator, 1))
    whole = {locator: tuple(holders) for locator, holders in found.items() if locator not in others}
    return Held(whole, frozenset(others), written, complete=len(rows) <= limit)


def held_bytes(connection: apsw.Connection, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
    """Bytes of what is held of packs whose locators begin so."""
    connection.create_scalar_function("size_of", cast(Any, size_of), 1, deterministic=True)
    return dict(all_rows(connection, HELD_BYTES, {"prefixes": orjson.dumps(list(prefixes)).decode()}))


def find_holders(connection: apsw.Connection, suspects: Sequence[Suspect]) -> dict[str, tuple[Holder, ...]]:
    """The holders of those records that are all where the claims say, which are not all records that are held."""
    return run.snapshot(connection.cursor(), compaction.find_holders(suspects))


def live_bytes(connection: apsw.Connection, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
    """Each sealed pack whose writer is gone, and how many bytes of it rows and the discard queue hold, in one state.

    Packs of living writers are left out: commits that name their records may be on their way.
    """
    connection.execute("BEGIN")
    try:
        written = {number for (number,) in all_rows(connection, WRITTEN)}
        packs = [pack for pack in run.read(connection.cursor(), all_packs()) if pack.sealed in (SEALED, SWEPT)]
        shared = {body for (body,) in all_rows(connection, "SELECT body FROM shared")}
        live: dict[int, int] = {}
        for (locator,) in connection.execute(PACKED):
            if locator in shared:
                continue
            place = packed(locator)
            if place is not None:
                live[place[0]] = live.get(place[0], 0) + place[1]
        for locator in shared:
            place = packed(locator)
            if place is not None:
                live[place[0]] = live.get(place[0], 0) + place[1]
    finally:
        connection.execute("ROLLBACK")
    return [(pack, live.get(pack.id, 0)) for pack in packs if pack.id not in written]


def references(connection: apsw.Connection, kind: str, after: Position) -> tuple[list[Reference], Position | None]:
    """A batch of references behind `after`, and the position to go on from, None at the end."""
    named = dict(zip("abc", after, strict=True)) | {"limit": BATCH}
    rows = all_rows(connection, dict(REFERENCES)[kind], named)
    if not rows:
        return [], None
    found = [
        Reference(kind, locator, end, bucket or "", key or "")
        for *_, locator, end, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    return found, rows[-1][:3]
