"""The rows of a bucket on each store, in batches.

Each batch is read in one state of the index, on a separate connection.
"""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
from sluice_s3.app.index.sql.transaction import Transaction

ROWS_PER_BATCH = 500


# ordered by number, so one pass finds every row that existed when it began
def _render_versions(dialect: SqlDialect) -> str:
    return f"""
    SELECT seq, key, versions.body, size, coalesce(shared.holders, 1), storage_class
    FROM versions LEFT JOIN shared ON shared.body = versions.body
    WHERE seq > {dialect.number("after")} AND bucket_id = {dialect.number("bucket")} AND versions.body != ''
    ORDER BY seq LIMIT {dialect.number("limit")}
    """


VERSIONS = Query(_render_versions)


def _render_pieces(dialect: SqlDialect) -> str:
    return f"""
    SELECT start, part_number, pieces.locator, coalesce(shared.holders, 1)
    FROM pieces LEFT JOIN shared ON shared.body = pieces.locator
    WHERE upload = {dialect.number("upload")} AND pieces.locator != '' ORDER BY start, part_number
    """


PIECES = Query(_render_pieces)


def _render_parts(dialect: SqlDialect) -> str:
    return f"""
    SELECT parts.upload, parts.number, uploads.key, {dialect.locator} AS locator, coalesce(shared.holders, 1),
        uploads.storage_class
    FROM uploads JOIN parts ON parts.upload = uploads.id JOIN {dialect.extents} ON true
    LEFT JOIN shared ON shared.body = {dialect.locator}
    WHERE uploads.bucket_id = {dialect.number("bucket")} AND uploads.completed_seq = 0
    """


PARTS = Query(_render_parts)


def _render_size(dialect: SqlDialect) -> str:
    return f"SELECT count(*), coalesce(sum(size), 0) FROM versions WHERE bucket_id = {dialect.number('bucket')}"


def _any_query(render_condition: Callable[[str, SqlDialect], str]) -> Query:
    """Return a query for whether a row references a blob with such a locator.

    `render_condition` returns the condition on the locator.
    """

    def render(dialect: SqlDialect) -> str:
        return f"""
        SELECT 1 FROM versions WHERE {render_condition("body", dialect)}
        UNION ALL SELECT 1 FROM pieces WHERE {render_condition("locator", dialect)}
        UNION ALL SELECT 1 FROM parts, {dialect.extents} WHERE {render_condition(dialect.locator, dialect)}
        LIMIT 1
        """

    return Query(render)


def _render_is_on_store(locator: str, dialect: SqlDialect) -> str:
    """Return the condition for the locators of a store other than the default one.

    They begin with the store's name and a slash.
    """
    return f"substr({locator}, 1, length({dialect.text('start')})) = {dialect.text('start')}"


def _render_is_on_default_store(locator: str, dialect: SqlDialect) -> str:
    """Return the condition for the locators of the default store.

    They begin with the letter of their kind and a colon.
    """
    return f"substr({locator}, 2, 1) = ':'"


SIZE = Query(_render_size)
ANY_ON = _any_query(_render_is_on_store)
ANY_ON_DEFAULT = _any_query(_render_is_on_default_store)


class BodyRow(NamedTuple):
    """A version and its body.

    `holders` is the number of rows that reference that body.
    """

    seq: int
    key: str
    body: str
    size: int
    holders: int
    storage_class: str


class BlobRow(NamedTuple):
    """A blob that a piece or a part references.

    `first` and `second` are the start and part number of a piece, or the upload and number of a part.
    """

    first: int
    second: int
    locator: str
    holders: int
    storage_class: str = ""
    """Storage class of the part's upload; empty for a piece."""


def bodies(bucket_id: int, after: int) -> Transaction[list[BodyRow]]:
    """Return a batch of a bucket's versions after `after` that have a body."""
    rows = yield VERSIONS.bind(bucket=bucket_id, after=after, limit=ROWS_PER_BATCH)
    return [BodyRow._make(row) for row in rows]


def pieces(upload: int) -> Transaction[list[BlobRow]]:
    """Return the blobs of a completed upload.

    Each has its start, part number, locator and number of references.
    """
    rows = yield PIECES.bind(upload=upload)
    return [BlobRow(*row) for row in rows]


def parts(bucket_id: int) -> Transaction[list[tuple[str, BlobRow]]]:
    """Return the blobs of a bucket's open uploads, each with its key.

    Each has its upload, number, locator and number of references.
    """
    rows = yield PARTS.bind(bucket=bucket_id)
    return [(key, BlobRow(upload, part, *blob)) for upload, part, key, *blob in rows]


def is_store_in_use(store: str) -> Transaction[bool]:
    """Return whether any row references a blob of a store.

    Reads all rows when none does.
    """
    rows = yield ANY_ON_DEFAULT.bind() if store == DEFAULT else ANY_ON.bind(start=f"{store}/")
    return bool(rows)


def bucket_size(bucket_id: int) -> Transaction[tuple[int, int]]:
    """Return the number of versions of a bucket and their bytes.

    Reads all versions.
    """
    ((count, total),) = yield SIZE.bind(bucket=bucket_id)
    return int(count), int(total)
