"""Input of the journals: batches of changes, and all rows for a snapshot.

The engine builds the JSON itself. On SQLite that costs no more than the rows alone as Python objects, and it blocks no
other thread. Each batch is read in one state of the index.
"""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import Table

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
from sluice_s3.app.index.sql.dialect import Query, Words
from sluice_s3.app.index.sql.transaction import Transaction, of_store
from sluice_s3.app.index.statements import SEQUENCE

ROOT_NOTE = "root"
"""Name of the note that holds the UUID from which the first account's id is derived."""
WATERMARK = "decided"
"""Name of each store's note that holds its watermark: every change up to this number is in its journals."""
ANNOUNCED = "announced"
"""Name of each store's note that holds the end of the batch that is being journaled, or was journaled last."""
KEYRING = "keyring"
"""Name of the note that holds the sealed key ring."""
KEYRING_JOURNALED = "keyring-kept"
"""Name of each store's note that holds the number of the key ring in its journals."""
ROWS_PER_BATCH = 5000
"""Maximum number of rows of a batch."""
COUNTED_ROWS = 100_000
"""Maximum number of unjournaled versions to count, and of unjournaled tombstones."""

VERSION_COLUMNS = tuple(versions.c.keys())
UPLOAD_COLUMNS = tuple(uploads.c.keys())
PIECE_COLUMNS = tuple(pieces.c.keys())
REMOVAL_COLUMNS = tuple(tombstones.c.keys())


def _mine(words: Words) -> str:
    """Return the condition of the buckets that a store's journals record.

    These are its own buckets, and those that move away from it.
    """
    return f"bucket_id IN (SELECT id FROM buckets WHERE {words.text('store')} IN (store, source))"


def _mine_or_nobodys(words: Words) -> str:
    return f"({_mine(words)} OR bucket_id NOT IN (SELECT id FROM buckets))"


def _between(words: Words) -> str:
    return f"seq > {words.number('after')} AND seq <= {words.number('until')}"


# a source of rows: the text after `SELECT *`
Source = Callable[[Words], str]


def _changed_versions(words: Words) -> str:
    return f"FROM versions WHERE {_between(words)} AND {_mine(words)} ORDER BY seq"


def _changed_removals(words: Words) -> str:
    return f"""FROM removals WHERE {_between(words)}
        AND (store = {words.text("store")} OR store = '' AND {_mine_or_nobodys(words)}) ORDER BY seq"""


def _uploads_of(words: Words) -> str:
    return f"FROM uploads WHERE id IN ({words.numbers('ids')})"


def _all_uploads(words: Words) -> str:
    return f"""FROM uploads WHERE id > {words.number("after")} AND completed_seq > 0 AND {_mine_or_nobodys(words)}
        ORDER BY id LIMIT {words.number("limit")}"""


def _behind(words: Words) -> str:
    return f"(upload, start, part_number) > ({', '.join(map(words.number, 'abc'))})"


def _pieces_of(words: Words) -> str:
    return f"""FROM pieces WHERE upload IN ({words.numbers("ids")}) AND {_behind(words)}
        ORDER BY upload, start, part_number LIMIT {words.number("limit")}"""


def _all_pieces(words: Words) -> str:
    return f"""FROM pieces WHERE {_behind(words)}
        AND EXISTS (SELECT 1 FROM uploads WHERE uploads.id = pieces.upload AND {_mine_or_nobodys(words)})
        ORDER BY upload, start, part_number LIMIT {words.number("limit")}"""


def _documents(columns: tuple[str, ...], source: Source, *more: str) -> Query:
    """Return a query for the rows as one JSON array, followed by more columns."""

    def said(words: Words) -> str:
        wanted = ", ".join((words.rows(columns), *more))
        return f"SELECT {wanted} FROM (SELECT * {source(words)}) AS batch"

    return Query(said, documents=True)


def _end(source: Source) -> Query:
    """Return a query for the count of the first rows, and for their last number."""

    def said(words: Words) -> str:
        first = f"SELECT seq {source(words)} LIMIT {words.number('limit')}"
        return f"SELECT count(*), max(seq) FROM ({first}) AS batch"

    return Query(said)


def _last_piece(source: Source) -> Query:
    """Return a query for the position of the last row of a full batch."""

    def said(words: Words) -> str:
        wanted = f"SELECT upload, start, part_number FROM (SELECT * {source(words)}) AS batch"
        return f"{wanted} LIMIT 1 OFFSET {words.number('limit')} - 1"

    return Query(said)


VERSIONS_END = _end(_changed_versions)
REMOVALS_END = _end(_changed_removals)
CHANGED_VERSIONS = _documents(VERSION_COLUMNS, _changed_versions)
CHANGED_REMOVALS = _documents(REMOVAL_COLUMNS, _changed_removals)
UPLOADS_OF = _documents(UPLOAD_COLUMNS, _uploads_of)
ALL_UPLOADS = _documents(UPLOAD_COLUMNS, _all_uploads, "count(*)", "max(id)")
PIECES_OF = _documents(PIECE_COLUMNS, _pieces_of, "count(*)")
LAST_OF_PIECES = _last_piece(_pieces_of)
ALL_PIECES = _documents(PIECE_COLUMNS, _all_pieces, "count(*)")
LAST_OF_ALL_PIECES = _last_piece(_all_pieces)


def _completed(words: Words) -> str:
    return f"""
    SELECT id FROM uploads WHERE completed_seq > {words.number("completed")} AND id IN (
        SELECT CAST(substr(body, 8) AS BIGINT) FROM versions WHERE {_between(words)}
        AND body >= 'pieces:' AND body < 'pieces;' AND {_mine(words)})
    """


def _newest(words: Words) -> str:
    return "SELECT coalesce(max(seq), 0) FROM versions"


def _versions_count(words: Words) -> str:
    return f"SELECT count(*) FROM versions WHERE {_mine(words)}"


def _all_rows(words: Words, table: Table) -> str:
    return words.json(f"SELECT {words.rows(tuple(table.c.keys()))} FROM {table.name}")


def _settings(words: Words) -> str:
    return f"""
    SELECT {words.json_object}(
        'accounts', {_all_rows(words, accounts)},
        'access_keys', {_all_rows(words, access_keys)},
        'identities', {_all_rows(words, identities)},
        'memberships', {_all_rows(words, memberships)},
        'buckets', {_all_rows(words, buckets)},
        'root', (SELECT value FROM meta WHERE name = 'root'),
        'keyring', (SELECT value FROM meta WHERE name = '{KEYRING}')
    )
    """


def _undecided(words: Words) -> str:
    return f"""
    WITH decided(seq) AS (
        SELECT coalesce((SELECT CAST(value AS BIGINT) FROM meta WHERE name = {words.text("watermark")}), 0)
    )
    SELECT count(*), coalesce(min(at), 0) FROM (
        SELECT modified AS at FROM (SELECT modified FROM versions WHERE seq > (SELECT seq FROM decided)
            AND {_mine(words)} LIMIT {words.number("limit")}) AS made
        UNION ALL SELECT at FROM (SELECT at FROM removals WHERE seq > (SELECT seq FROM decided)
            AND (store = {words.text("store")} OR store = '' AND {_mine(words)}) LIMIT {words.number("limit")}) AS gone
    ) AS changed
    """


def _stored(words: Words) -> str:
    return f"""
    WITH mine(id) AS MATERIALIZED (SELECT id FROM buckets WHERE store = {words.text("store")})
    SELECT coalesce((SELECT sum(size) FROM versions WHERE bucket_id IN (SELECT id FROM mine)), 0)
        + coalesce((SELECT sum(parts.size) FROM uploads JOIN parts ON parts.upload = uploads.id
            WHERE uploads.completed_seq = 0 AND uploads.bucket_id IN (SELECT id FROM mine)), 0)
    """


COMPLETED = Query(_completed)
NEWEST = Query(_newest)
VERSIONS_COUNT = Query(_versions_count)
SETTINGS = Query(_settings, documents=True)
JOURNAL_LAG = Query(_undecided)
STORED = Query(_stored)

ScanPosition = tuple[int, int, int]
SCAN_START: ScanPosition = (-1, -1, -1)


class Changes(NamedTuple):
    """Changes between two numbers of the commit sequence.

    Rows are JSON arrays in the order of their columns.
    """

    until: int
    """Every change up to this number is in the batch."""
    more: bool
    number: int
    """The number of versions and tombstones, or a greater one."""
    versions: str
    removals: str
    uploads: list[int]
    """Uploads that versions among the changes reference, and that may be in no journal yet."""
    newest: int
    """The greatest number of a version at the time of the read. It may be below `until`."""


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
        ((found, last),) = yield end.given(**bounds)
        count += found
        if found >= ROWS_PER_BATCH:
            more, bounds["until"] = True, last
    ((changed,),) = yield CHANGED_VERSIONS.given(**bounds)
    ((gone,),) = yield CHANGED_REMOVALS.given(**bounds)
    uploads = [number for (number,) in (yield COMPLETED.given(**bounds))]
    ((newest,),) = yield NEWEST.given()
    return Changes(int(bounds["until"] or 0), more, count, changed, gone, uploads, int(newest))


def export_settings() -> Transaction[str]:
    """Return the settings of the index as a JSON object.

    It has arrays of rows: accounts, access keys, identities (users, groups and roles), memberships and buckets. It also
    has the values of the notes `root` and `keyring`.
    """
    ((document,),) = yield SETTINGS.given()
    return str(document)


def uploads_of(ids: Sequence[int]) -> Transaction[str]:
    """Return the rows of the uploads with these ids, as a JSON array."""
    ((rows,),) = yield UPLOADS_OF.given(ids=ids)
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
    ((rows, count),) = yield batch.given(**bounds)
    if count < ROWS_PER_BATCH:
        return rows, None
    ((a, b, c),) = yield end.given(**bounds)
    return rows, (a, b, c)


def uploads_after(after: int, store: str = DEFAULT) -> Transaction[tuple[str, int | None]]:
    """Return a batch of completed uploads after `after`, and the next position.

    The position is None at the end.
    """
    ((rows, count, last),) = yield ALL_UPLOADS.given(after=after, limit=ROWS_PER_BATCH, store=store)
    return rows, last if count >= ROWS_PER_BATCH else None


def stored_bytes(store: str) -> Transaction[int]:
    """Return the bytes of a store's objects and open parts.

    A copy counts like its source.
    """
    ((total,),) = yield STORED.given(store=store)
    return int(total)


def versions_count(store: str = DEFAULT) -> Transaction[int]:
    """Return the number of versions in a store's buckets.

    Reads all of their entries in an index.
    """
    ((count,),) = yield VERSIONS_COUNT.given(store=store)
    return int(count)


def journal_lag(store: str = DEFAULT) -> Transaction[tuple[int, int]]:
    """Return how many changes are not journaled yet, and the time of the oldest.

    The time is in milliseconds since the epoch, 0 for none. Counts at most `COUNTED_ROWS` versions, and as many
    tombstones.
    """
    ((count, oldest),) = yield JOURNAL_LAG.given(limit=COUNTED_ROWS, store=store, watermark=of_store(WATERMARK, store))
    return int(count), int(oldest)
