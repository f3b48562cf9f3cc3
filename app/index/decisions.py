"""What is written down beside the data, read from the index: batches of changes, and everything for a snapshot.

The engine makes the JSON itself: on SQLite that costs no more than the rows alone as Python objects, and holds up no
other thread. Each batch is read in one state of the index.
"""
# ruff: noqa: S608 - statements of constants, see `app.index.words`

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import Table

from app.index.schema import (
    DEFAULT,
    access_keys,
    accounts,
    buckets,
    identities,
    memberships,
    pieces,
    removals,
    uploads,
    versions,
)
from app.index.statements import SEQUENCE
from app.index.steps import Transaction, of_store
from app.index.words import Query, Words

WATERMARK = "decided"
KEYRING = "keyring"
"""Note of the index: the sealed key ring."""
KEYRING_KEPT = "keyring-kept"
"""Notes of the index, one a store: the number of the key ring that the store's journals tell."""
"""Note of each store: all up to there is in its journals."""
BATCH = 5000
"""Rows of a batch."""
COUNTED = 100_000
"""Undecided changes are counted up to here."""

VERSION_COLUMNS = tuple(versions.c.keys())
UPLOAD_COLUMNS = tuple(uploads.c.keys())
PIECE_COLUMNS = tuple(pieces.c.keys())
REMOVAL_COLUMNS = tuple(removals.c.keys())


def _mine(words: Words) -> str:
    """What the journals of a store are for: its buckets, and those whose data is being moved away from it."""
    return f"bucket_id IN (SELECT id FROM buckets WHERE {words.text('store')} IN (store, source))"


def _mine_or_nobodys(words: Words) -> str:
    return f"({_mine(words)} OR bucket_id NOT IN (SELECT id FROM buckets))"


def _between(words: Words) -> str:
    return f"seq > {words.number('after')} AND seq <= {words.number('until')}"


# where rows come from: what stands behind `SELECT *`
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
    """The rows as one JSON array, and more about them."""

    def said(words: Words) -> str:
        wanted = ", ".join((words.rows(columns), *more))
        return f"SELECT {wanted} FROM (SELECT * {source(words)}) AS batch"

    return Query(said, documents=True)


def _end(source: Source) -> Query:
    """How many the first rows are, and the last of them."""

    def said(words: Words) -> str:
        first = f"SELECT seq {source(words)} LIMIT {words.number('limit')}"
        return f"SELECT count(*), max(seq) FROM ({first}) AS batch"

    return Query(said)


def _last_piece(source: Source) -> Query:
    """The place of the last row of a batch that is full."""

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
UNDECIDED = Query(_undecided)
STORED = Query(_stored)

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
    """Uploads that versions among the changes hold and that may be told nowhere yet."""
    newest: int
    """The last number of a version at that time, which may be behind `until`."""


def changes(
    after: int, until: int | None = None, store: str = DEFAULT, completed: int | None = None
) -> Transaction[Changes]:
    """The first changes of a store's buckets behind `after`: versions as they are now, and removals.

    `completed`: which uploads are told, those completed behind it (None: behind `after`) that versions here hold. What
    holds one may have gone behind `until`, with new tags or as a copy, before it was read.
    """
    if until is None:
        ((until,),) = yield SEQUENCE, ()
    bounds = {"after": after, "until": until, "limit": BATCH, "store": store}
    bounds["completed"] = after if completed is None else completed
    count = 0
    more = False
    for end in (VERSIONS_END, REMOVALS_END):
        ((found, last),) = yield end.given(**bounds)
        count += found
        if found >= BATCH:
            more, bounds["until"] = True, last
    ((changed,),) = yield CHANGED_VERSIONS.given(**bounds)
    ((gone,),) = yield CHANGED_REMOVALS.given(**bounds)
    uploads = [number for (number,) in (yield COMPLETED.given(**bounds))]
    ((newest,),) = yield NEWEST.given()
    return Changes(int(bounds["until"] or 0), more, count, changed, gone, uploads, int(newest))


def settings() -> Transaction[str]:
    """Accounts, keys, users, groups, roles and buckets as a JSON object of arrays of rows."""
    ((document,),) = yield SETTINGS.given()
    return str(document)


def uploads_of(ids: Sequence[int]) -> Transaction[str]:
    """Rows of the uploads of these ids."""
    ((rows,),) = yield UPLOADS_OF.given(ids=ids)
    return str(rows)


def pieces_of(ids: Sequence[int] | None, after: Place, store: str = DEFAULT) -> Transaction[tuple[str, Place | None]]:
    """A batch of pieces behind `after` (of all a store's uploads without `ids`), and the place to go on from."""
    bounds: dict[str, object] = {**dict(zip("abc", after, strict=True)), "limit": BATCH, "store": store}
    batch, end = ALL_PIECES, LAST_OF_ALL_PIECES
    if ids is not None:
        batch, end = PIECES_OF, LAST_OF_PIECES
        bounds["ids"] = ids
    # pieces never change, so that two statements may see two states of the index
    ((rows, count),) = yield batch.given(**bounds)
    if count < BATCH:
        return rows, None
    ((a, b, c),) = yield end.given(**bounds)
    return rows, (a, b, c)


def uploads_after(after: int, store: str = DEFAULT) -> Transaction[tuple[str, int | None]]:
    """A batch of completed uploads behind `after`, and the one to go on from, None at the end."""
    ((rows, count, last),) = yield ALL_UPLOADS.given(after=after, limit=BATCH, store=store)
    return rows, last if count >= BATCH else None


def stored_bytes(store: str) -> Transaction[int]:
    """Bytes of the objects of a store's buckets and of parts of their open uploads; a copy counts like its source."""
    ((total,),) = yield STORED.given(store=store)
    return int(total)


def versions_count(store: str = DEFAULT) -> Transaction[int]:
    """How many versions a store's buckets have. Reads the whole of an index of theirs."""
    ((count,),) = yield VERSIONS_COUNT.given(store=store)
    return int(count)


def undecided(store: str = DEFAULT) -> Transaction[tuple[int, int]]:
    """How many changes (up to about COUNTED) are not written down yet, and when the oldest was made; 0 for none."""
    ((count, oldest),) = yield UNDECIDED.given(limit=COUNTED, store=store, watermark=of_store(WATERMARK, store))
    return int(count), int(oldest)
