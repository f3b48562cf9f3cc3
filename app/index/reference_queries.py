"""Queries for the rows that reference blobs, for the orphan sweeper and fsck.

They read whole tables. Each reads one state of the index, except `references`.
"""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sluice_s3.app.index.rows import PIECES, BlobReference, PackReferences
from sluice_s3.app.index.sql.dialect import Query, Words
from sluice_s3.app.index.sql.transaction import Transaction

ROWS_PER_BATCH = 1000


class Reference(NamedTuple):
    """A row that references a blob.

    `kind` is version, part, piece or discard. `end` is the byte of the blob at which the referenced bytes end.
    """

    kind: str
    locator: str
    end: int
    bucket: str
    key: str


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


REFERENCED = Query(_held)


# an aborted upload never completed, so it has no pieces; a body of pieces counts like a blob
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


WRONG_REFCOUNTS = Query(_miscounted)


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


# in the order in which a blob passes from row to row, so the scan misses no blob that moves meanwhile
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


REFERENCED_IN_PACKS = Query(_held_in)
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


REFERENCED_LOCATORS = Query(_held_locators)
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


PACKED_LOCATORS = Query(_packed)
PACKED_ONCE = Query(_packed_once)

Position = tuple[int, int, int]
BEGIN: Position = (-1, -1, -1)


def referenced(locators: Sequence[str], since: int = 0) -> Transaction[set[str]]:
    """Return the locators that a version, part, piece or queued discard references.

    Reads every row. When `since` is the first id of a range, reads only rows that can reference ids of that range.
    """
    rows = yield REFERENCED.given(wanted=locators, since=since)
    return {locator for (locator,) in rows}


def wrong_refcounts() -> Transaction[list[tuple[str, int, int]]]:
    """Return the bodies with a wrong reference count: (body, stored, true).

    For a referenced body in the discard queue, the stored count is 0.
    """
    rows = yield WRONG_REFCOUNTS.given()
    return [(body, kept, true) for body, kept, true in rows]


def references_in_packs(prefixes: Sequence[str], limit: int) -> Transaction[PackReferences]:
    """Return the references to the records of packs, at most `limit` of them.

    `prefixes` are locators up to their first dot. Reads every row.
    """
    rows = yield REFERENCED_IN_PACKS.given(prefixes=prefixes, limit=limit + 1)
    written = yield WRITTEN.given()
    counts = dict((yield COUNTS.given(bodies={row[0] for row in rows})))
    found: dict[str, list[BlobReference]] = {}
    others = {row[0] for row in rows if row[1] == "discard"}
    for locator, kind, *place in rows:
        if kind != "discard":
            found.setdefault(locator, []).append(BlobReference(kind, *place))
    others.update(locator for locator, holders in found.items() if len(holders) != counts.get(locator, 1))
    whole = {locator: tuple(holders) for locator, holders in found.items() if locator not in others}
    return PackReferences(
        whole, frozenset(others), frozenset(number for (number,) in written), complete=len(rows) <= limit
    )


def references(kind: str, after: Position) -> Transaction[tuple[list[Reference], Position | None]]:
    """Return a batch of references after `after`, and the next position.

    The position is None at the end.
    """
    rows = yield REFERENCES[kind].given(**dict(zip("abc", after, strict=True)), limit=ROWS_PER_BATCH)
    if not rows:
        return [], None
    found = [
        Reference(kind, locator, end, bucket or "", key or "")
        for *_, locator, end, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    a, b, c, *_ = rows[-1]
    return found, (a, b, c)
