"""Input of the scrubber: every row that references a blob, in batches.

Each batch is read in one state of the index.
"""
# ruff: noqa: S608 - statements of constants, see `app.index.sql.dialect`

from __future__ import annotations

from typing import NamedTuple

from sluice_s3.app.encryption.scheme import SEALED
from sluice_s3.app.index.change_feed import SCAN_START, ScanPosition
from sluice_s3.app.index.rows import PIECES
from sluice_s3.app.index.sql.dialect import Query, Words
from sluice_s3.app.index.sql.transaction import Transaction

ROWS_PER_BATCH = 500

KINDS = ("version", "piece", "part")


def _versions(words: Words) -> str:
    return f"""
    SELECT seq, 0, 0, body, 0, size,
        CASE WHEN parts = 0 AND {words.place("headers", SEALED)} = 0 THEN etag ELSE '' END, buckets.name, key
    FROM (SELECT * FROM versions WHERE seq > {words.number("a")} ORDER BY seq LIMIT {words.number("limit")}) AS versions
    LEFT JOIN buckets ON buckets.id = versions.bucket_id ORDER BY seq
    """


def _pieces(words: Words) -> str:
    return f"""
    SELECT upload, start, part_number, locator, blob_offset, size, '', buckets.name, uploads.key
    FROM (SELECT * FROM pieces WHERE (upload, start, part_number) > ({", ".join(map(words.number, "abc"))})
          ORDER BY upload, start, part_number LIMIT {words.number("limit")}) AS pieces
    LEFT JOIN uploads ON uploads.id = pieces.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
    ORDER BY upload, start, part_number
    """


def _parts(words: Words) -> str:
    return f"""
    SELECT parts.upload, parts.number, 0, {words.locator}, {words.offset}, {words.size}, '', buckets.name, uploads.key
    FROM (SELECT * FROM parts WHERE (upload, number) > ({", ".join(map(words.number, "ab"))})
          ORDER BY upload, number LIMIT {words.number("limit")}) AS parts
    LEFT JOIN {words.extents} ON true
    LEFT JOIN uploads ON uploads.id = parts.upload LEFT JOIN buckets ON buckets.id = uploads.bucket_id
    ORDER BY parts.upload, parts.number
    """


QUERIES = {
    "version": Query(_versions),
    "piece": Query(_pieces),
    "part": Query(_parts),
}


def _holds_version(words: Words) -> str:
    return f"SELECT 1 FROM versions WHERE seq = {words.number('a')} AND body = {words.text('locator')}"


def _holds_piece(words: Words) -> str:
    return f"""
    SELECT 1 FROM pieces WHERE (upload, start, part_number) = ({", ".join(map(words.number, "abc"))})
    AND locator = {words.text("locator")}
    """


def _holds_part(words: Words) -> str:
    return f"""
    SELECT 1 FROM parts, {words.extents} WHERE (upload, number) = ({", ".join(map(words.number, "ab"))})
    AND {words.locator} = {words.text("locator")}
    """


HOLDS = {
    "version": Query(_holds_version),
    "piece": Query(_holds_piece),
    "part": Query(_holds_part),
}


class ScrubItem(NamedTuple):
    """A row that references a blob."""

    kind: str
    place: ScanPosition
    """Position of the row within its kind."""
    locator: str
    offset: int
    size: int
    etag: str
    """The MD5 of the whole blob, if the row has it; never that of an encrypted blob."""
    bucket: str
    key: str


def scrub_page(kind: str, after: ScanPosition = SCAN_START) -> Transaction[tuple[list[ScrubItem], ScanPosition | None]]:
    """Return a batch of rows after `after`, and the next position.

    The position is None at the end of the kind.
    """
    rows = yield QUERIES[kind].given(**dict(zip("abc", after, strict=True)), limit=ROWS_PER_BATCH)
    if not rows:
        return [], None
    found = [
        ScrubItem(kind, (a, b, c), locator, offset, size, etag if len(etag) == 32 else "", bucket or "", key or "")
        for a, b, c, locator, offset, size, etag, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    a, b, c, *_ = rows[-1]
    return found, (a, b, c)


def still_references(row: ScrubItem) -> Transaction[bool]:
    """Return whether a row still references its blob."""
    rows = yield HOLDS[row.kind].given(**dict(zip("abc", row.place, strict=True)), locator=row.locator)
    return bool(rows)
