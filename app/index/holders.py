"""Who holds which blob: questions of the sweep and of fsck, which read whole tables and so run beside all else.

Each is asked in one state of the index but for `references`.
"""
# ruff: noqa: S608 - statements of constants, see `app.index.words`

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from app.index import run
from app.index.connection import all_rows
from app.index.rows import PIECES, Held, Holder, Pack
from app.index.schema import SEALED, SWEPT
from app.index.steps import Transaction
from app.index.transactions.packs import all_packs
from app.index.upkeep import Reference
from app.index.words import Query, Words

BATCH = 1000


def _held(words: Words) -> str:
    return f"""
    WITH wanted(locator) AS MATERIALIZED ({words.texts("wanted")})
    SELECT body FROM versions WHERE seq > {words.number("since")} AND body IN (SELECT locator FROM wanted)
    UNION
    SELECT locator FROM pieces WHERE upload IN (SELECT id FROM uploads WHERE completed_seq > {words.number("since")})
        AND locator IN (SELECT locator FROM wanted)
    UNION
    SELECT {words.locator} AS locator FROM parts, {words.extents} WHERE {words.locator} IN (SELECT locator FROM wanted)
    UNION
    SELECT body FROM discards WHERE body IN (SELECT locator FROM wanted)
    """


HELD = Query(_held)


# an aborted upload never completed, and its pieces are none; a body of pieces counts like a blob
def _miscounted(words: Words) -> str:
    return f"""
    WITH held(body) AS (
        SELECT body FROM versions WHERE body != ''
        UNION ALL SELECT locator FROM pieces WHERE locator != ''
        UNION ALL SELECT {words.locator} FROM parts, {words.extents}
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


MISCOUNTED = Query(_miscounted)


def _parts(words: Words) -> str:
    return f"""
    SELECT parts.upload, parts.number, 0, {words.locator}, {words.offset} + {words.size}, buckets.name, uploads.key
    FROM (SELECT * FROM parts WHERE (upload, number) > ({", ".join(map(words.number, "ab"))})
          ORDER BY upload, number LIMIT {words.number("limit")}) AS parts
    JOIN {words.extents} ON true
    LEFT JOIN uploads ON uploads.id = parts.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
    ORDER BY parts.upload, parts.number
    """


def _versions(words: Words) -> str:
    return f"""
    SELECT seq, 0, 0, body, size, buckets.name, key
    FROM (SELECT * FROM versions WHERE seq > {words.number("a")} ORDER BY seq LIMIT {words.number("limit")}) AS versions
    LEFT JOIN buckets ON buckets.id = versions.bucket_id ORDER BY seq
    """


def _pieces(words: Words) -> str:
    return f"""
    SELECT upload, start, part_number, locator, blob_offset + size, buckets.name, uploads.key
    FROM (SELECT * FROM pieces WHERE (upload, start, part_number) > ({", ".join(map(words.number, "abc"))})
          ORDER BY upload, start, part_number LIMIT {words.number("limit")}) AS pieces
    LEFT JOIN uploads ON uploads.id = pieces.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
    ORDER BY upload, start, part_number
    """


def _discards(words: Words) -> str:
    return f"""
    SELECT id, 0, 0, body, 0, '', '' FROM discards WHERE id > {words.number("a")}
    ORDER BY id LIMIT {words.number("limit")}
    """


# in the order in which rows hand a blob on, so that none is missed that moves while we read
REFERENCES: dict[str, Query] = {
    "part": Query(_parts),
    "version": Query(_versions),
    "piece": Query(_pieces),
    "discard": Query(_discards),
}


def _in_wanted_pack(words: Words, locator: str) -> str:
    return f"{words.until_dot(locator)} IN (SELECT prefix FROM wanted)"


def _held_in(words: Words) -> str:
    return f"""
    WITH wanted(prefix) AS MATERIALIZED ({words.texts("prefixes")})
    SELECT body, 'version', seq, 0, 0 FROM versions WHERE {_in_wanted_pack(words, "body")}
    UNION ALL
    SELECT locator, 'piece', upload, start, part_number FROM pieces WHERE {_in_wanted_pack(words, "locator")}
    UNION ALL
    SELECT {words.locator} AS locator, 'part', upload, number, 0
        FROM parts, {words.extents} WHERE {_in_wanted_pack(words, words.locator)}
    UNION ALL
    SELECT body, 'discard', id, 0, 0 FROM discards WHERE {_in_wanted_pack(words, "body")}
    LIMIT {words.number("limit")}
    """


HELD_IN = Query(_held_in)
COUNTS = Query(lambda words: f"SELECT body, holders FROM shared WHERE body IN ({words.texts('bodies')})")


def _held_locators(words: Words) -> str:
    return f"""
    WITH wanted(prefix) AS MATERIALIZED ({words.texts("prefixes")}),
    held(locator) AS (
        SELECT body FROM versions WHERE {_in_wanted_pack(words, "body")}
        UNION
        SELECT locator FROM pieces WHERE {_in_wanted_pack(words, "locator")}
        UNION
        SELECT {words.locator} FROM parts, {words.extents} WHERE {_in_wanted_pack(words, words.locator)}
        UNION
        SELECT body FROM discards WHERE {_in_wanted_pack(words, "body")}
    )
    SELECT {words.until_dot("locator")}, locator FROM held
    """


HELD_LOCATORS = Query(_held_locators)
WRITTEN = Query(
    "SELECT packs.id FROM packs JOIN writers ON writers.incarnation = packs.incarnation WHERE writers.state = 'live'"
)


def _packed(words: Words) -> str:
    return f"""
    SELECT body FROM versions WHERE {words.dot("body")} > 0
    UNION ALL SELECT locator FROM pieces WHERE {words.dot("locator")} > 0
    UNION ALL SELECT {words.locator} AS locator FROM parts, {words.extents} WHERE {words.dot(words.locator)} > 0
    UNION ALL SELECT body FROM discards WHERE {words.dot("body")} > 0
    """


def _packed_once(words: Words) -> str:
    return f"WITH packed(locator) AS ({_packed(words)}) SELECT DISTINCT locator FROM packed"


PACKED = Query(_packed)
PACKED_ONCE = Query(_packed_once)

Position = tuple[int, int, int]
BEGIN: Position = (-1, -1, -1)


def held(locators: Sequence[str], since: int) -> Transaction[set[str]]:
    """Those of the locators that a row holds."""
    rows = yield HELD.given(wanted=locators, since=since)
    return {locator for (locator,) in rows}


def miscounted() -> Transaction[list[tuple[str, int, int]]]:
    """Bodies whose kept count is not the true one: (body, kept, true)."""
    rows = yield MISCOUNTED.given()
    return [(body, kept, true) for body, kept, true in rows]


def held_in(prefixes: Sequence[str], limit: int) -> Transaction[Held]:
    """Who holds the records of packs whose locators begin so; at most `limit` holders are looked for."""
    rows = yield HELD_IN.given(prefixes=prefixes, limit=limit + 1)
    written = yield WRITTEN.given()
    counts = dict((yield COUNTS.given(bodies={row[0] for row in rows})))
    found: dict[str, list[Holder]] = {}
    others = {row[0] for row in rows if row[1] == "discard"}
    for locator, kind, *place in rows:
        if kind != "discard":
            found.setdefault(locator, []).append(Holder(kind, *place))
    others.update(locator for locator, holders in found.items() if len(holders) != counts.get(locator, 1))
    whole = {locator: tuple(holders) for locator, holders in found.items() if locator not in others}
    return Held(whole, frozenset(others), frozenset(number for (number,) in written), complete=len(rows) <= limit)


def references(kind: str, after: Position) -> Transaction[tuple[list[Reference], Position | None]]:
    """A batch of references behind `after`, and the position to go on from, None at the end."""
    rows = yield REFERENCES[kind].given(**dict(zip("abc", after, strict=True)), limit=BATCH)
    if not rows:
        return [], None
    found = [
        Reference(kind, locator, end, bucket or "", key or "")
        for *_, locator, end, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    a, b, c, *_ = rows[-1]
    return found, (a, b, c)


# on SQLite; rows that are too many for memory are gone through on each engine's own connection


def held_bytes(connection: apsw.Connection, prefixes: Sequence[str], size_of: Callable[[str], int]) -> dict[str, int]:
    """Bytes of what is held of packs whose locators begin so."""
    found: dict[str, int] = {}
    query, wanted = HELD_LOCATORS.given(prefixes=prefixes)
    for prefix, locator in connection.execute(query.sql, wanted):
        found[prefix] = found.get(prefix, 0) + size_of(locator)
    return found


def live_bytes(connection: apsw.Connection, packed: Callable[[str], tuple[int, int] | None]) -> list[tuple[Pack, int]]:
    """Each sealed pack whose writer is gone, and how many bytes of it rows and the discard queue hold, in one state.

    Packs of living writers are left out: commits that name their records may be on their way.
    """
    connection.execute("BEGIN")
    try:
        written = {number for (number,) in all_rows(connection, WRITTEN.sql)}
        packs = [pack for pack in run.read(connection.cursor(), all_packs()) if pack.sealed in (SEALED, SWEPT)]
        shared = {body for (body,) in all_rows(connection, "SELECT body FROM shared")}
        live: dict[int, int] = {}
        for (locator,) in connection.execute(PACKED.sql):
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
