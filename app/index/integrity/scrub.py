"""Input of the scrubber: every row that references a blob, in batches.

Each batch is read in one state of the index.
"""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from typing import NamedTuple

from sluice_s3.app.encryption.scheme import SEALED
from sluice_s3.app.index.journals.queries import SCAN_START, ScanPosition
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.sql.dialect import Query, SqlDialect
from sluice_s3.app.index.sql.transaction import Transaction

ROWS_PER_BATCH = 500

KINDS = ("version", "piece", "part")


def _render_versions(dialect: SqlDialect) -> str:
    return f"""
    SELECT seq, 0, 0, body, 0, size,
        CASE WHEN parts = 0 AND {dialect.position("headers", SEALED)} = 0 THEN etag ELSE '' END, buckets.name, key
    FROM (SELECT * FROM versions WHERE seq > {dialect.number("a")}
          ORDER BY seq LIMIT {dialect.number("limit")}) AS versions
    LEFT JOIN buckets ON buckets.id = versions.bucket_id ORDER BY seq
    """


def _render_pieces(dialect: SqlDialect) -> str:
    return f"""
    SELECT upload, start, part_number, locator, blob_offset, size, '', buckets.name, uploads.key
    FROM (SELECT * FROM pieces WHERE (upload, start, part_number) > ({", ".join(map(dialect.number, "abc"))})
          ORDER BY upload, start, part_number LIMIT {dialect.number("limit")}) AS pieces
    LEFT JOIN uploads ON uploads.id = pieces.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
    ORDER BY upload, start, part_number
    """


def _render_parts(dialect: SqlDialect) -> str:
    return f"""
    SELECT parts.upload, parts.number, 0, {dialect.locator}, {dialect.offset}, {dialect.size}, '',
        buckets.name, uploads.key
    FROM (SELECT * FROM parts WHERE (upload, number) > ({", ".join(map(dialect.number, "ab"))})
          ORDER BY upload, number LIMIT {dialect.number("limit")}) AS parts
    LEFT JOIN {dialect.extents} ON true
    LEFT JOIN uploads ON uploads.id = parts.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
    ORDER BY parts.upload, parts.number
    """


QUERIES = {
    "version": Query(_render_versions),
    "piece": Query(_render_pieces),
    "part": Query(_render_parts),
}


class ScrubItem(NamedTuple):
    """A row that references a blob."""

    kind: str
    position: ScanPosition
    """The numbers of a `BlobReference`."""
    locator: str
    offset: int
    size: int
    etag: str
    """The ETag of the whole blob; empty for one of several parts or an encrypted blob."""
    bucket: str
    key: str


def scrub_page(kind: str, after: ScanPosition = SCAN_START) -> Transaction[tuple[list[ScrubItem], ScanPosition | None]]:
    """Return a batch of rows after `after`, and the next position.

    The position is None at the end of the kind.
    """
    rows = yield QUERIES[kind].bind(**dict(zip("abc", after, strict=True)), limit=ROWS_PER_BATCH)
    if not rows:
        return [], None
    page = [
        ScrubItem(kind, (a, b, c), locator, offset, size, etag, bucket or "", key or "")
        for a, b, c, locator, offset, size, etag, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    a, b, c, *_ = rows[-1]
    return page, (a, b, c)
