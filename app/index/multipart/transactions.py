"""Multipart uploads.

Complete turns part rows into pieces and writes no bytes. The rows of an ended upload are released in the background.
Abort queues the body `pieces:N`, as an overwrite of a completed object does. `expand_discard` releases the pieces and
parts of that number alike.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import orjson

from sluice_s3.app.errors import InvalidPart, NoSuchBucket, NoSuchUpload, SourceGone
from sluice_s3.app.index.buckets.statements import BUCKET_ID
from sluice_s3.app.index.multipart import listing
from sluice_s3.app.index.multipart.rows import PIECES, Extent, ObjectPart, Part, Piece, Upload
from sluice_s3.app.index.multipart.statements import (
    ADD_PIECE,
    ADD_UPLOAD,
    ALL_PARTS,
    END_UPLOAD,
    FIRST_PIECES,
    OBJECT_PARTS,
    PART,
    PARTS,
    PIECE_LOCATORS,
    PIECES_FROM,
    PUT_PART,
    REMOVE_PART,
    REMOVE_PARTS,
    REMOVE_PIECE,
    REMOVE_UPLOAD,
    UPLOAD,
    UPLOAD_STATE,
)
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import CommitResult, NewVersion
from sluice_s3.app.index.objects.transactions import current_for_write, write_current
from sluice_s3.app.index.plain_files.rows import is_plain_file, tree_upload
from sluice_s3.app.index.reclaim.refcounts import add_reference, drop_reference
from sluice_s3.app.index.reclaim.rows import QueuedDiscard
from sluice_s3.app.index.reclaim.statements import ADD_DISCARD, BODY, DISCARD, REMOVE_DISCARD
from sluice_s3.app.index.schema.tables import ABORTED, OPEN
from sluice_s3.app.index.sql.transaction import DRAW, Row, Transaction, now_ms

NUMBER_DIGITS = 16
"""Hex digits of an upload id that encode its number, so that ids of one key sort by initiation. 32 random digits
follow."""


def number_of(upload_id: str) -> int:
    """Return the number in a public upload id, -1 for an invalid one."""
    digits = upload_id[:NUMBER_DIGITS]
    if len(upload_id) != 3 * NUMBER_DIGITS or not all(digit in "0123456789abcdef" for digit in digits):
        return -1
    number = int(digits, 16)
    return number if number < 1 << 63 else -1


def pieces_number(body: str) -> int:
    """Return the upload of a body of pieces, or of a plain file from parts."""
    if is_plain_file(body):
        return tree_upload(body)
    return int(body.removeprefix(PIECES))


def part_of(row: Row) -> Part:
    """Return the part in a row of `parts`, whose extents are JSON."""
    return Part._make((*row[:-1], tuple(map(Extent._make, orjson.loads(row[-1])))))


def create_upload(
    bucket_id: int,
    key: str,
    headers: str,
    storage_class: str,
    checksum_algorithm: str,
    checksum_type: str,
    owner_id: str,
) -> Transaction[Upload]:
    """Open an upload, whose public id is unguessable.

    Raises NoSuchBucket.
    """
    if not (yield BUCKET_ID, (bucket_id,)):
        raise NoSuchBucket()
    number = yield DRAW
    upload_id = f"{number:0{NUMBER_DIGITS}x}{secrets.token_hex(NUMBER_DIGITS)}"
    described = (headers, storage_class, checksum_algorithm, checksum_type, owner_id)
    new_upload = Upload(number, upload_id, bucket_id, key, now_ms(), *described, completed_seq=OPEN)
    yield ADD_UPLOAD, (*new_upload, 0)
    return new_upload


def upload(bucket_id: int, key: str, upload_id: str) -> Transaction[Upload | None]:
    """Return the open or completed upload of that id and key, or None."""
    rows = yield UPLOAD, (number_of(upload_id),)
    if not rows:
        return None
    stored = Upload._make(rows[0])
    expected = (upload_id, bucket_id, key)
    if (stored.upload_id, stored.bucket_id, stored.key) != expected or stored.completed_seq == ABORTED:
        return None
    return stored


def uploads(
    bucket_id: int, prefix: str, delimiter: str, after_key: str, after_upload_id: str, limit: int
) -> Transaction[tuple[list[Upload], list[str], bool]]:
    """Return a page of open uploads, their common prefixes, and whether there are more.

    Uploads are ordered by key, then by initiation. The page continues after `after_key`; with `after_upload_id`, after
    that upload of the key.
    """
    number = number_of(after_upload_id) if after_upload_id else None
    return (yield from listing.uploads(bucket_id, prefix, delimiter, after_key, number, limit))


def _check_open(number: int) -> Transaction[None]:
    rows = yield UPLOAD_STATE, (number,)
    if not rows or rows[0][0] != OPEN:
        raise NoSuchUpload()


def _replace_part(upload: Upload, part: Part) -> Transaction[CommitResult]:
    rows = yield PART, (upload.id, part.number)
    seq = yield DRAW
    modified = now_ms()
    if rows:
        modified = max(modified, rows[0][3] + 1)
    described = (part.number, part.size, part.etag, modified, part.checksum_algorithm, part.checksum)
    yield PUT_PART, (upload.id, *described, orjson.dumps([tuple(extent) for extent in part.extents]).decode())
    if rows:
        for extent in part_of(rows[0]).extents:
            yield from drop_reference(extent.locator)
    return CommitResult(seq, "", modified)


def put_part(upload: Upload, part: Part) -> Transaction[CommitResult]:
    """Add or replace a part whose blobs no other row holds.

    Raises NoSuchUpload. `part.modified` is set here. For `part.extents` with locators that another row already holds,
    use `copy_part`.
    """
    yield from _check_open(upload.id)
    return (yield from _replace_part(upload, part))


def copy_part(source_seq: int, upload: Upload, part: Part) -> Transaction[CommitResult]:
    """Add or replace a part that shares the blobs of version `source_seq`.

    The blobs are counted up. Raises NoSuchUpload. Raises SourceGone when that version no longer exists, or compaction
    has moved one of the blobs since `part.extents` was read.
    """
    yield from _check_open(upload.id)
    rows = yield BODY, (source_seq,)
    if not rows:
        raise SourceGone()
    body = rows[0][0]
    locators = {body}
    if body.startswith(PIECES):
        locators = {locator for (locator,) in (yield PIECE_LOCATORS, (pieces_number(body),))}
    if not locators.issuperset(extent.locator for extent in part.extents):
        raise SourceGone()
    for extent in part.extents:
        yield from add_reference(extent.locator)
    return (yield from _replace_part(upload, part))


def parts(upload: Upload, after: int, limit: int) -> Transaction[list[Part]]:
    """Return the parts of an open upload with numbers greater than `after`."""
    rows = yield PARTS, (upload.id, after, limit)
    return [part_of(row) for row in rows]


def complete_upload(
    upload: Upload, chosen: Sequence[Part], new: NewVersion, conditions: Conditions | None = None
) -> Transaction[CommitResult]:
    """Make the chosen parts the current version of the upload's key; `new.body` is set here.

    `chosen` are rows from `parts`; all other parts are discarded. Returns the recorded result when the upload was
    completed before. Raises InvalidPart when a part was replaced since, NoSuchUpload when the upload was aborted, and
    what `put_version` raises.
    """
    rows = yield UPLOAD_STATE, (upload.id,)
    if not rows or rows[0][0] == ABORTED:
        raise NoSuchUpload()
    if rows[0][0] != OPEN:
        return CommitResult._make(rows[0])
    old = yield from current_for_write(upload.bucket_id, upload.key, conditions)
    stored_parts = {part.number: part for part in map(part_of, (yield ALL_PARTS, (upload.id,)))}
    completed_parts: list[Part] = []
    for part in chosen:
        stored = stored_parts.pop(part.number, None)
        # extents are not compared: compaction may have moved the blobs
        if stored is None or stored._replace(extents=part.extents) != part:
            raise InvalidPart(upload_id=upload.upload_id, part_number=part.number, etag=part.etag)
        completed_parts.append(stored)
    result = yield from write_current(old, upload.key, new._replace(body=f"{PIECES}{upload.id}"), conditions)
    yield END_UPLOAD, (*result, upload.id)
    yield ADD_PIECE, _pieces(upload.id, completed_parts)
    yield REMOVE_PARTS, (upload.id,)
    for part in stored_parts.values():
        for extent in part.extents:
            yield from drop_reference(extent.locator)
    return result


def _pieces(number: int, chosen: Sequence[Part]) -> list[Row]:
    """Return rows of `pieces`, in the order of its columns."""
    rows: list[Row] = []
    start = 0
    for part in chosen:
        checksum = part.checksum
        for locator, offset, size in part.extents or (Extent("", 0, 0),):
            rows.append((number, start, part.number, size, locator, offset, checksum))
            start += size
            checksum = ""
    return rows


def abort(number: int) -> Transaction[None]:
    """End an open upload.

    Its parts are released in the background.
    """
    yield END_UPLOAD, (ABORTED, "", 0, number)
    discard = yield DRAW
    yield ADD_DISCARD, (discard, f"{PIECES}{number}", now_ms())


def abort_upload(upload: Upload) -> Transaction[None]:
    """Abort an upload.

    Raises NoSuchUpload unless it is open.
    """
    yield from _check_open(upload.id)
    yield from abort(upload.id)


def pieces(body: str, offset: int, limit: int) -> Transaction[list[Piece]]:
    """Return up to `limit` pieces of a body, from the one with byte `offset`."""
    number = pieces_number(body)
    rows = yield PIECES_FROM, (number, number, offset, limit)
    return [Piece._make(row) for row in rows]


def object_part(body: str, number: int) -> Transaction[ObjectPart | None]:
    """Return one part of a completed object by its body, or None."""
    following = yield from object_parts(body, number - 1, 1)
    return following[0] if following and following[0].number == number else None


def object_parts(body: str, after: int, limit: int) -> Transaction[list[ObjectPart]]:
    """Return the parts of a completed object with numbers greater than `after`, by its body."""
    rows = yield OBJECT_PARTS, (pieces_number(body), after, limit)
    return [ObjectPart._make(row) for row in rows]


def expand_discard(discard: QueuedDiscard, limit: int) -> Transaction[bool]:
    """Release up to `limit` pieces or parts of a queued body.

    Returns True once none is left and the entry is removed.
    """
    if not (yield DISCARD, (discard.id,)):
        return True
    number = pieces_number(discard.body)
    rows = yield FIRST_PIECES, (number, limit)
    for start, _, part_number, locator, _ in rows:
        yield REMOVE_PIECE, (number, start, part_number)
        if locator:
            yield from drop_reference(locator)
    room = limit - len(rows)
    part_rows = (yield PARTS, (number, 0, room)) if room > 0 else []
    for part in map(part_of, part_rows):
        yield REMOVE_PART, (number, part.number)
        for extent in part.extents:
            yield from drop_reference(extent.locator)
    if room <= len(part_rows):
        return False
    yield REMOVE_UPLOAD, (number,)
    yield REMOVE_DISCARD, (discard.id,)
    return True
