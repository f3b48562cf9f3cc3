"""What the scrubber reads: every row that holds a blob, in batches, each in one state of the index."""
# ruff: noqa: S608 - statements of constants, see `app.index.words`

from __future__ import annotations

from typing import NamedTuple

from app.encryption.scheme import SEALED
from app.index.decisions import FIRST, Place
from app.index.rows import PIECES
from app.index.steps import Transaction
from app.index.words import Query, Words

BATCH = 500

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


class Live(NamedTuple):
    """A row that holds a blob."""

    kind: str
    place: Place
    """Which row of its kind."""
    locator: str
    offset: int
    size: int
    etag: str
    """The MD5 of the whole blob, if the row says it: not that of one that is encrypted."""
    bucket: str
    key: str


def live(kind: str, after: Place = FIRST) -> Transaction[tuple[list[Live], Place | None]]:
    """A batch of rows behind `after`, and the position to go on from, None at the end of the kind."""
    rows = yield QUERIES[kind].given(**dict(zip("abc", after, strict=True)), limit=BATCH)
    if not rows:
        return [], None
    found = [
        Live(kind, (a, b, c), locator, offset, size, etag if len(etag) == 32 else "", bucket or "", key or "")
        for a, b, c, locator, offset, size, etag, bucket, key in rows
        if locator and not locator.startswith(PIECES)
    ]
    a, b, c, *_ = rows[-1]
    return found, (a, b, c)


def holds(row: Live) -> Transaction[bool]:
    """Whether a row still holds that blob at that place."""
    rows = yield HOLDS[row.kind].given(**dict(zip("abc", row.place, strict=True)), locator=row.locator)
    return bool(rows)
