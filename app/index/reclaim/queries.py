"""Queries for the rows that reference blobs, for the orphan sweeper and fsck.

They read whole tables. Each reads one state of the index, except `references`.
"""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.reclaim.rows import BlobReference, PackReferences
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
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


def _render_referenced(dialect: SqlDialect) -> str:
    return f"""
    WITH wanted(locator) AS MATERIALIZED ({dialect.texts("wanted")})
    SELECT body FROM versions WHERE seq > {dialect.number("since")} AND body IN (SELECT locator FROM wanted)
    UNION
    SELECT locator FROM pieces WHERE upload IN (SELECT id FROM uploads WHERE completed_seq > {dialect.number("since")})
        AND locator IN (SELECT locator FROM wanted)
    UNION
    SELECT {dialect.locator} AS locator FROM parts, {dialect.extents}
        WHERE {dialect.locator} IN (SELECT locator FROM wanted)
    UNION
    SELECT body FROM discards WHERE {dialect.number("queued")} = 1 AND body IN (SELECT locator FROM wanted)
    """


REFERENCED = Query(_render_referenced)


# an aborted upload never completed, so it has no pieces; a body of pieces counts like a blob
def _render_wrong_refcounts(dialect: SqlDialect) -> str:
    return f"""
    WITH held(body) AS (
        SELECT body FROM versions WHERE body != ''
        UNION ALL SELECT locator FROM pieces WHERE locator != ''
        UNION ALL SELECT {dialect.locator} FROM parts, {dialect.extents}
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


WRONG_REFCOUNTS = Query(_render_wrong_refcounts)


def _render_parts(dialect: SqlDialect) -> str:
    return f"""
    SELECT parts.upload, parts.number, 0, {dialect.locator}, {dialect.offset} + {dialect.size},
        buckets.name, uploads.key
    FROM (SELECT * FROM parts WHERE (upload, number) > ({", ".join(map(dialect.number, "ab"))})
          ORDER BY upload, number LIMIT {dialect.number("limit")}) AS parts
    JOIN {dialect.extents} ON true
    LEFT JOIN uploads ON uploads.id = parts.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
    ORDER BY parts.upload, parts.number
    """


def _render_versions(dialect: SqlDialect) -> str:
    return f"""
    SELECT seq, 0, 0, body, size, buckets.name, key
    FROM (SELECT * FROM versions WHERE seq > {dialect.number("a")}
          ORDER BY seq LIMIT {dialect.number("limit")}) AS versions
    LEFT JOIN buckets ON buckets.id = versions.bucket_id ORDER BY seq
    """


def _render_pieces(dialect: SqlDialect) -> str:
    return f"""
    SELECT upload, start, part_number, locator, blob_offset + size, buckets.name, uploads.key
    FROM (SELECT * FROM pieces WHERE (upload, start, part_number) > ({", ".join(map(dialect.number, "abc"))})
          ORDER BY upload, start, part_number LIMIT {dialect.number("limit")}) AS pieces
    LEFT JOIN uploads ON uploads.id = pieces.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
    ORDER BY upload, start, part_number
    """


def _render_discards(dialect: SqlDialect) -> str:
    return f"""
    SELECT id, 0, 0, body, 0, '', '' FROM discards WHERE id > {dialect.number("a")}
    ORDER BY id LIMIT {dialect.number("limit")}
    """


# in the order in which a blob passes from row to row, so the scan misses no blob that moves meanwhile
REFERENCES: dict[str, Query] = {
    "part": Query(_render_parts),
    "version": Query(_render_versions),
    "piece": Query(_render_pieces),
    "discard": Query(_render_discards),
}


def _render_is_in_packs(dialect: SqlDialect, locator: str) -> str:
    return f"{dialect.until_dot(locator)} IN (SELECT prefix FROM wanted)"


def _render_referenced_in_packs(dialect: SqlDialect) -> str:
    return f"""
    WITH wanted(prefix) AS MATERIALIZED ({dialect.texts("prefixes")})
    SELECT body, 'version', seq, 0, 0 FROM versions WHERE {_render_is_in_packs(dialect, "body")}
    UNION ALL
    SELECT locator, 'piece', upload, start, part_number FROM pieces WHERE {_render_is_in_packs(dialect, "locator")}
    UNION ALL
    SELECT {dialect.locator} AS locator, 'part', upload, number, 0
        FROM parts, {dialect.extents} WHERE {_render_is_in_packs(dialect, dialect.locator)}
    UNION ALL
    SELECT body, 'discard', id, 0, 0 FROM discards WHERE {_render_is_in_packs(dialect, "body")}
    LIMIT {dialect.number("limit")}
    """


REFERENCED_IN_PACKS = Query(_render_referenced_in_packs)
COUNTS = Query(lambda dialect: f"SELECT body, holders FROM shared WHERE body IN ({dialect.texts('bodies')})")


def _render_referenced_locators(dialect: SqlDialect) -> str:
    return f"""
    WITH wanted(prefix) AS MATERIALIZED ({dialect.texts("prefixes")}),
    held(locator) AS (
        SELECT body FROM versions WHERE {_render_is_in_packs(dialect, "body")}
        UNION
        SELECT locator FROM pieces WHERE {_render_is_in_packs(dialect, "locator")}
        UNION
        SELECT {dialect.locator} FROM parts, {dialect.extents} WHERE {_render_is_in_packs(dialect, dialect.locator)}
        UNION
        SELECT body FROM discards WHERE {_render_is_in_packs(dialect, "body")}
    )
    SELECT {dialect.until_dot("locator")}, locator FROM held
    """


REFERENCED_LOCATORS = Query(_render_referenced_locators)
WRITTEN = Query(
    "SELECT packs.id FROM packs JOIN writers ON writers.incarnation = packs.incarnation WHERE writers.state = 'live'"
)


def _render_packed(dialect: SqlDialect) -> str:
    return f"""
    SELECT body FROM versions WHERE {dialect.dot("body")} > 0
    UNION ALL SELECT locator FROM pieces WHERE {dialect.dot("locator")} > 0
    UNION ALL SELECT {dialect.locator} AS locator FROM parts, {dialect.extents} WHERE {dialect.dot(dialect.locator)} > 0
    UNION ALL SELECT body FROM discards WHERE {dialect.dot("body")} > 0
    """


def _render_packed_once(dialect: SqlDialect) -> str:
    return f"WITH packed(locator) AS ({_render_packed(dialect)}) SELECT DISTINCT locator FROM packed"


PACKED_LOCATORS = Query(_render_packed)
PACKED_ONCE = Query(_render_packed_once)

Position = tuple[int, int, int]
BEGIN: Position = (-1, -1, -1)


def _render_discard_backlog(dialect: SqlDialect) -> str:
    store = dialect.text("store")
    in_default = f"substr(body, 2, 1) = ':' OR substr(body, 1, {len(PIECES)}) = '{PIECES}'"
    return f"""
    SELECT count(*), coalesce(min(queued), 0) FROM (
        SELECT queued FROM discards WHERE queued >= 0
            AND ({store} = '{DEFAULT}' AND ({in_default}) OR substr(body, 1, length({store}) + 1) = {store} || '/')
        LIMIT {dialect.number("limit")}) AS waiting
    """


DISCARD_BACKLOG = Query(_render_discard_backlog)
COUNTED_ROWS = 100_000
"""Maximum number of queued discards to count."""


def discard_backlog(store: str) -> Transaction[tuple[int, int]]:
    """Return how many unreferenced bodies of a store are queued, without quarantined ones, and the time of the oldest.

    The time is in milliseconds since the epoch, 0 for none. Counts at most `COUNTED_ROWS`. The pieces of multipart
    objects belong to the store `default`.
    """
    ((count, oldest),) = yield DISCARD_BACKLOG.bind(store=store, limit=COUNTED_ROWS)
    return int(count), int(oldest)


def referenced(locators: Sequence[str], since: int = 0, queued: bool = True) -> Transaction[set[str]]:
    """Return the locators that a version, part or piece references, or a queued discard, if `queued`.

    Reads every row. When `since` is the first id of a range, reads only rows that can reference ids of that range.
    """
    rows = yield REFERENCED.bind(wanted=locators, since=since, queued=int(queued))
    return {locator for (locator,) in rows}


def wrong_refcounts() -> Transaction[list[tuple[str, int, int]]]:
    """Return the bodies with a wrong reference count: (body, stored, true).

    For a referenced body in the discard queue, the stored count is 0.
    """
    rows = yield WRONG_REFCOUNTS.bind()
    return [(body, stored, actual) for body, stored, actual in rows]


def references_in_packs(prefixes: Sequence[str], limit: int) -> Transaction[PackReferences]:
    """Return the references to the records of packs, at most `limit` of them.

    `prefixes` are locators up to their first dot. Reads every row.
    """
    rows = yield REFERENCED_IN_PACKS.bind(prefixes=prefixes, limit=limit + 1)
    written = yield WRITTEN.bind()
    counts = dict((yield COUNTS.bind(bodies={row[0] for row in rows})))
    references: dict[str, list[BlobReference]] = {}
    others = {row[0] for row in rows if row[1] == "discard"}
    for locator, kind, *position in rows:
        if kind != "discard":
            references.setdefault(locator, []).append(BlobReference(kind, *position))
    others.update(locator for locator, holders in references.items() if len(holders) != counts.get(locator, 1))
    complete_references = {locator: tuple(holders) for locator, holders in references.items() if locator not in others}
    return PackReferences(
        complete_references, frozenset(others), frozenset(number for (number,) in written), complete=len(rows) <= limit
    )


def references(kind: str, after: Position) -> Transaction[tuple[list[Reference], Position | None]]:
    """Return a batch of references after `after`, and the next position.

    The position is None at the end.
    """
    rows = yield REFERENCES[kind].bind(**dict(zip("abc", after, strict=True)), limit=ROWS_PER_BATCH)
    if not rows:
        return [], None
    batch = [
        Reference(kind, locator, end, bucket or "", key or "")
        for *_, locator, end, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    a, b, c, *_ = rows[-1]
    return batch, (a, b, c)
