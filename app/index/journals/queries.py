"""Input of the journals: batches of changes, and all rows for a snapshot.

The engine builds the JSON itself. On SQLite that costs no more than the rows alone as Python objects, and it blocks no
other thread. Each batch is read in one state of the index.
"""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlalchemy import Table

from sluice_s3.app.index.journals.rows import KEYRING, WATERMARK, Changes
from sluice_s3.app.index.meta.statements import SEQUENCE
from sluice_s3.app.index.schema.tables import (
    DEFAULT,
    access_keys,
    accounts,
    buckets,
    identities,
    memberships,
    pieces,
    tombstones,
    uploads,
    versions,
)
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
from sluice_s3.app.index.sql.transaction import Transaction, of_store

ROWS_PER_BATCH = 5000
"""Maximum number of rows of a batch."""
COUNTED_ROWS = 100_000
"""Maximum number of unjournaled versions to count, and of unjournaled tombstones."""

VERSION_COLUMNS = tuple(versions.c.keys())
UPLOAD_COLUMNS = tuple(uploads.c.keys())
PIECE_COLUMNS = tuple(pieces.c.keys())
REMOVAL_COLUMNS = tuple(tombstones.c.keys())


def _render_own_buckets(dialect: SqlDialect) -> str:
    """Return the condition of the buckets that a store's journals record.

    These are its own buckets, and those that move away from it.
    """
    return f"bucket_id IN (SELECT id FROM buckets WHERE {dialect.text('store')} IN (store, source))"


def _render_own_or_no_bucket(dialect: SqlDialect) -> str:
    return f"({_render_own_buckets(dialect)} OR bucket_id NOT IN (SELECT id FROM buckets))"


def _render_between(dialect: SqlDialect) -> str:
    return f"seq > {dialect.number('after')} AND seq <= {dialect.number('until')}"


# a source of rows: the text after `SELECT *`
Source = Callable[[SqlDialect], str]


def _render_changed_versions(dialect: SqlDialect) -> str:
    return f"FROM versions WHERE {_render_between(dialect)} AND {_render_own_buckets(dialect)} ORDER BY seq"


def _render_changed_removals(dialect: SqlDialect) -> str:
    return f"""FROM removals WHERE {_render_between(dialect)}
        AND (store = {dialect.text("store")} OR store = '' AND {_render_own_or_no_bucket(dialect)}) ORDER BY seq"""


def _render_uploads_of(dialect: SqlDialect) -> str:
    return f"FROM uploads WHERE id IN ({dialect.numbers('ids')})"


def _render_all_uploads(dialect: SqlDialect) -> str:
    return f"""FROM uploads WHERE id > {dialect.number("after")} AND completed_seq > 0
        AND {_render_own_or_no_bucket(dialect)} ORDER BY id LIMIT {dialect.number("limit")}"""


def _render_after_piece(dialect: SqlDialect) -> str:
    return f"(upload, start, part_number) > ({', '.join(map(dialect.number, 'abc'))})"


def _render_pieces_of(dialect: SqlDialect) -> str:
    return f"""FROM pieces WHERE upload IN ({dialect.numbers("ids")}) AND {_render_after_piece(dialect)}
        ORDER BY upload, start, part_number LIMIT {dialect.number("limit")}"""


def _render_all_pieces(dialect: SqlDialect) -> str:
    return f"""FROM pieces WHERE {_render_after_piece(dialect)}
        AND EXISTS (SELECT 1 FROM uploads WHERE uploads.id = pieces.upload AND {_render_own_or_no_bucket(dialect)})
        ORDER BY upload, start, part_number LIMIT {dialect.number("limit")}"""


def _batch_query(columns: tuple[str, ...], source: Source, *more: str) -> Query:
    """Return a query for the rows as one JSON array, followed by more columns."""

    def render(dialect: SqlDialect) -> str:
        selected = ", ".join((dialect.rows(columns), *more))
        return f"SELECT {selected} FROM (SELECT * {source(dialect)}) AS batch"

    return Query(render, documents=True)


def _end_query(source: Source) -> Query:
    """Return a query for the count of the first rows, and for their last number."""

    def render(dialect: SqlDialect) -> str:
        first = f"SELECT seq {source(dialect)} LIMIT {dialect.number('limit')}"
        return f"SELECT count(*), max(seq) FROM ({first}) AS batch"

    return Query(render)


def _last_piece_query(source: Source) -> Query:
    """Return a query for the position of the last row of a full batch."""

    def render(dialect: SqlDialect) -> str:
        rows = f"SELECT upload, start, part_number FROM (SELECT * {source(dialect)}) AS batch"
        return f"{rows} LIMIT 1 OFFSET {dialect.number('limit')} - 1"

    return Query(render)


VERSIONS_END = _end_query(_render_changed_versions)
REMOVALS_END = _end_query(_render_changed_removals)
CHANGED_VERSIONS = _batch_query(VERSION_COLUMNS, _render_changed_versions)
CHANGED_REMOVALS = _batch_query(REMOVAL_COLUMNS, _render_changed_removals)
UPLOADS_OF = _batch_query(UPLOAD_COLUMNS, _render_uploads_of)
ALL_UPLOADS = _batch_query(UPLOAD_COLUMNS, _render_all_uploads, "count(*)", "max(id)")
PIECES_OF = _batch_query(PIECE_COLUMNS, _render_pieces_of, "count(*)")
LAST_OF_PIECES = _last_piece_query(_render_pieces_of)
ALL_PIECES = _batch_query(PIECE_COLUMNS, _render_all_pieces, "count(*)")
LAST_OF_ALL_PIECES = _last_piece_query(_render_all_pieces)


def _render_completed(dialect: SqlDialect) -> str:
    return f"""
    SELECT id FROM uploads WHERE completed_seq > {dialect.number("completed")} AND id IN (
        SELECT CAST(substr(body, 8) AS BIGINT) FROM versions WHERE {_render_between(dialect)}
        AND body >= 'pieces:' AND body < 'pieces;' AND {_render_own_buckets(dialect)})
    """


def _render_newest(dialect: SqlDialect) -> str:
    return "SELECT coalesce(max(seq), 0) FROM versions"


def _render_versions_count(dialect: SqlDialect) -> str:
    return f"SELECT count(*) FROM versions WHERE {_render_own_buckets(dialect)}"


def _render_all_rows(dialect: SqlDialect, table: Table) -> str:
    return dialect.json(f"SELECT {dialect.rows(tuple(table.c.keys()))} FROM {table.name}")


def _render_settings(dialect: SqlDialect) -> str:
    return f"""
    SELECT {dialect.json_object}(
        'accounts', {_render_all_rows(dialect, accounts)},
        'access_keys', {_render_all_rows(dialect, access_keys)},
        'identities', {_render_all_rows(dialect, identities)},
        'memberships', {_render_all_rows(dialect, memberships)},
        'buckets', {_render_all_rows(dialect, buckets)},
        'root', (SELECT value FROM meta WHERE name = 'root'),
        'keyring', (SELECT value FROM meta WHERE name = '{KEYRING}')
    )
    """


def _render_journal_lag(dialect: SqlDialect) -> str:
    return f"""
    WITH decided(seq) AS (
        SELECT coalesce((SELECT CAST(value AS BIGINT) FROM meta WHERE name = {dialect.text("watermark")}), 0)
    )
    SELECT count(*), coalesce(min(at), 0), (SELECT seq FROM decided) FROM (
        SELECT modified AS at FROM (SELECT modified FROM versions WHERE seq > (SELECT seq FROM decided)
            AND {_render_own_buckets(dialect)} LIMIT {dialect.number("limit")}) AS made
        UNION ALL SELECT at FROM (SELECT at FROM removals WHERE seq > (SELECT seq FROM decided)
            AND (store = {dialect.text("store")} OR store = '' AND {_render_own_buckets(dialect)})
            LIMIT {dialect.number("limit")}) AS gone
    ) AS changed
    """


COMPLETED = Query(_render_completed)
NEWEST = Query(_render_newest)
VERSIONS_COUNT = Query(_render_versions_count)
SETTINGS = Query(_render_settings, documents=True)
JOURNAL_LAG = Query(_render_journal_lag)

ScanPosition = tuple[int, int, int]
SCAN_START: ScanPosition = (-1, -1, -1)


def changes_since(
    after: int, until: int | None = None, store: str = DEFAULT, completed: int | None = None
) -> Transaction[Changes]:
    """Return the first changes of a store's buckets after `after`.

    Changes are versions as they are now, and tombstones. The result also has the uploads completed after `completed`
    (None: after `after`) that these versions reference. The row that references an upload may have moved past `until`
    before it was read, with new tags or as a copy.
    """
    if until is None:
        ((until,),) = yield SEQUENCE, ()
    bounds = {"after": after, "until": until, "limit": ROWS_PER_BATCH, "store": store}
    bounds["completed"] = after if completed is None else completed
    count = 0
    more = False
    for end in (VERSIONS_END, REMOVALS_END):
        ((row_count, last),) = yield end.bind(**bounds)
        count += row_count
        if row_count >= ROWS_PER_BATCH:
            more, bounds["until"] = True, last
    ((changed,),) = yield CHANGED_VERSIONS.bind(**bounds)
    ((removals,),) = yield CHANGED_REMOVALS.bind(**bounds)
    uploads = [number for (number,) in (yield COMPLETED.bind(**bounds))]
    ((newest,),) = yield NEWEST.bind()
    return Changes(int(bounds["until"] or 0), more, count, changed, removals, uploads, int(newest))


def export_settings() -> Transaction[str]:
    """Return the settings of the index as a JSON object.

    It has arrays of rows: accounts, access keys, identities (users, groups and roles), memberships and buckets. It also
    has the values of the notes `root` and `keyring`.
    """
    ((document,),) = yield SETTINGS.bind()
    return str(document)


def uploads_of(ids: Sequence[int]) -> Transaction[str]:
    """Return the rows of the uploads with these ids, as a JSON array."""
    ((rows,),) = yield UPLOADS_OF.bind(ids=ids)
    return str(rows)


def pieces_of(
    ids: Sequence[int] | None, after: ScanPosition, store: str = DEFAULT
) -> Transaction[tuple[str, ScanPosition | None]]:
    """Return a batch of pieces after `after`, and the next position.

    The position is None at the end. Without `ids`, the pieces are those of all uploads of a store.
    """
    bounds: dict[str, object] = {**dict(zip("abc", after, strict=True)), "limit": ROWS_PER_BATCH, "store": store}
    batch, end = ALL_PIECES, LAST_OF_ALL_PIECES
    if ids is not None:
        batch, end = PIECES_OF, LAST_OF_PIECES
        bounds["ids"] = ids
    # pieces never change, so the two statements may read different states of the index
    ((rows, count),) = yield batch.bind(**bounds)
    if count < ROWS_PER_BATCH:
        return rows, None
    ((a, b, c),) = yield end.bind(**bounds)
    return rows, (a, b, c)


def uploads_after(after: int, store: str = DEFAULT) -> Transaction[tuple[str, int | None]]:
    """Return a batch of completed uploads after `after`, and the next position.

    The position is None at the end.
    """
    ((rows, count, last),) = yield ALL_UPLOADS.bind(after=after, limit=ROWS_PER_BATCH, store=store)
    return rows, last if count >= ROWS_PER_BATCH else None


def versions_count(store: str = DEFAULT) -> Transaction[int]:
    """Return the number of versions in a store's buckets.

    Reads all of their entries in an index.
    """
    ((count,),) = yield VERSIONS_COUNT.bind(store=store)
    return int(count)


def journal_lag(store: str = DEFAULT) -> Transaction[tuple[int, int, int]]:
    """Return how many changes are not journaled yet, the oldest Last-Modified among them, and the watermark.

    The time is in milliseconds since the epoch, 0 for none; it may be long before the change. Counts at most
    `COUNTED_ROWS` versions, and as many tombstones.
    """
    ((count, oldest, watermark),) = yield JOURNAL_LAG.bind(
        limit=COUNTED_ROWS, store=store, watermark=of_store(WATERMARK, store)
    )
    return int(count), int(oldest), int(watermark)
