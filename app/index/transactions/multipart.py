"""Multipart uploads. Complete turns part rows into pieces and writes no bytes.

An ended upload's rows are released in the background: Abort queues the body `pieces:N` as the overwriting of a
completed object does, and `expand` takes pieces and parts of that number alike.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import orjson

from app.errors import InvalidPart, NoSuchBucket, NoSuchUpload, SourceGone
from app.index.rows import (
    PIECES,
    Committed,
    Conditions,
    Discard,
    Extent,
    NewVersion,
    ObjectPart,
    Part,
    Piece,
    Upload,
    is_tree,
    tree_upload,
)
from app.index.schema import ABORTED, OPEN
from app.index.statements import (
    ADD_DISCARD,
    ADD_PIECE,
    ADD_UPLOAD,
    ALL_PARTS,
    BODY,
    BUCKET_ID,
    DISCARD,
    END_UPLOAD,
    OBJECT_PARTS,
    PART,
    PARTS,
    PIECE_LOCATORS,
    PIECES_FROM,
    PUT_PART,
    REMOVE_DISCARD,
    REMOVE_PART,
    REMOVE_PARTS,
    REMOVE_PIECE,
    REMOVE_UPLOAD,
    SOME_PIECES,
    UPLOAD,
    UPLOAD_STATE,
)
from app.index.steps import DRAW, Row, Transaction, now_ms
from app.index.transactions.counting import release, share
from app.index.transactions.objects import find_replaced, make_current

NUMBER_DIGITS = 16
"""Hex digits of an upload id that are its number, so that ids of one key sort by initiation; 32 random ones follow."""


def number_of(upload_id: str) -> int:
    """The number in a public upload id, -1 for what cannot be one."""
    digits = upload_id[:NUMBER_DIGITS]
    if len(upload_id) != 3 * NUMBER_DIGITS or not all(digit in "0123456789abcdef" for digit in digits):
        return -1
    number = int(digits, 16)
    return number if number < 1 << 63 else -1


def pieces_number(body: str) -> int:
    """The upload behind a body of pieces, or behind a plain file that was made of parts."""
    if is_tree(body):
        return tree_upload(body)
    return int(body.removeprefix(PIECES))


def part_of(row: Row) -> Part:
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
    """Open an upload. Its public id is unguessable."""
    if not (yield BUCKET_ID, (bucket_id,)):
        raise NoSuchBucket()
    number = yield DRAW
    upload_id = f"{number:0{NUMBER_DIGITS}x}{secrets.token_hex(NUMBER_DIGITS)}"
    described = (headers, storage_class, checksum_algorithm, checksum_type, owner_id)
    made = Upload(number, upload_id, bucket_id, key, now_ms(), *described, completed_seq=OPEN)
    yield ADD_UPLOAD, (*made, 0)
    return made


def upload(bucket_id: int, key: str, upload_id: str) -> Transaction[Upload | None]:
    """An open or completed upload."""
    rows = yield UPLOAD, (number_of(upload_id),)
    if not rows:
        return None
    found = Upload._make(rows[0])
    wanted = (upload_id, bucket_id, key)
    if (found.upload_id, found.bucket_id, found.key) != wanted or found.completed_seq == ABORTED:
        return None
    return found


def _check_open(number: int) -> Transaction[None]:
    rows = yield UPLOAD_STATE, (number,)
    if not rows or rows[0][0] != OPEN:
        raise NoSuchUpload()


def _replace_part(upload: Upload, part: Part) -> Transaction[Committed]:
    rows = yield PART, (upload.id, part.number)
    seq = yield DRAW
    modified = now_ms()
    if rows:
        modified = max(modified, rows[0][3] + 1)
    described = (part.number, part.size, part.etag, modified, part.checksum_algorithm, part.checksum)
    yield PUT_PART, (upload.id, *described, orjson.dumps([tuple(extent) for extent in part.extents]).decode())
    if rows:
        for extent in part_of(rows[0]).extents:
            yield from release(extent.locator)
    return Committed(seq, "", modified)


def put_part(upload: Upload, part: Part) -> Transaction[Committed]:
    """Add or replace a part whose blobs are its own."""
    yield from _check_open(upload.id)
    return (yield from _replace_part(upload, part))


def copy_part(source_seq: int, upload: Upload, part: Part) -> Transaction[Committed]:
    """Add or replace a part that shares the blobs of version `source_seq`.

    SourceGone also when compaction gave one of them another place since `part.extents` was made.
    """
    yield from _check_open(upload.id)
    rows = yield BODY, (source_seq,)
    if not rows:
        raise SourceGone()
    body = rows[0][0]
    held = {body}
    if body.startswith(PIECES):
        held = {locator for (locator,) in (yield PIECE_LOCATORS, (pieces_number(body),))}
    if not held.issuperset(extent.locator for extent in part.extents):
        raise SourceGone()
    for extent in part.extents:
        yield from share(extent.locator)
    return (yield from _replace_part(upload, part))


def parts(upload: Upload, after: int, limit: int) -> Transaction[list[Part]]:
    """Parts of an open upload."""
    rows = yield PARTS, (upload.id, after, limit)
    return [part_of(row) for row in rows]


def complete_upload(
    upload: Upload, chosen: Sequence[Part], new: NewVersion, conditions: Conditions | None
) -> Transaction[Committed]:
    """Make the chosen parts an object, or give the result of the Complete before."""
    rows = yield UPLOAD_STATE, (upload.id,)
    if not rows or rows[0][0] == ABORTED:
        raise NoSuchUpload()
    if rows[0][0] != OPEN:
        return Committed._make(rows[0])
    old = yield from find_replaced(upload.bucket_id, upload.key, conditions)
    kept = {part.number: part for part in map(part_of, (yield ALL_PARTS, (upload.id,)))}
    taken: list[Part] = []
    for part in chosen:
        found = kept.pop(part.number, None)
        # its extents may have changed: compaction gives blobs another place
        if found is None or found._replace(extents=part.extents) != part:
            raise InvalidPart(upload_id=upload.upload_id, part_number=part.number, etag=part.etag)
        taken.append(found)
    made = yield from make_current(old, upload.key, new._replace(body=f"{PIECES}{upload.id}"))
    yield END_UPLOAD, (*made, upload.id)
    yield ADD_PIECE, _pieces(upload.id, taken)
    yield REMOVE_PARTS, (upload.id,)
    for part in kept.values():
        for extent in part.extents:
            yield from release(extent.locator)
    return made


def _pieces(number: int, chosen: Sequence[Part]) -> list[Row]:
    """Rows of `pieces`, in the order of its columns."""
    made: list[Row] = []
    start = 0
    for part in chosen:
        checksum = part.checksum
        for locator, offset, size in part.extents or (Extent("", 0, 0),):
            made.append((number, start, part.number, size, locator, offset, checksum))
            start += size
            checksum = ""
    return made


def abort(number: int) -> Transaction[None]:
    """End an open upload; what it holds is released in the background."""
    yield END_UPLOAD, (ABORTED, "", 0, number)
    discard = yield DRAW
    yield ADD_DISCARD, (discard, f"{PIECES}{number}", now_ms())


def abort_upload(upload: Upload) -> Transaction[None]:
    """Abort an upload that is open."""
    yield from _check_open(upload.id)
    yield from abort(upload.id)


def pieces(body: str, offset: int, limit: int) -> Transaction[list[Piece]]:
    """Pieces from the one that holds byte `offset` on."""
    number = pieces_number(body)
    rows = yield PIECES_FROM, (number, number, offset, limit)
    return [Piece._make(row) for row in rows]


def object_part(body: str, number: int) -> Transaction[ObjectPart | None]:
    """One part of a completed object."""
    found = yield from object_parts(body, number - 1, 1)
    return found[0] if found and found[0].number == number else None


def object_parts(body: str, after: int, limit: int) -> Transaction[list[ObjectPart]]:
    """Parts of a completed object."""
    rows = yield OBJECT_PARTS, (pieces_number(body), after, limit)
    return [ObjectPart._make(row) for row in rows]


def expand_discard(discard: Discard, limit: int) -> Transaction[bool]:
    """Release some of what a queued body of pieces holds; True once nothing is left and the entry is gone."""
    if not (yield DISCARD, (discard.id,)):
        return True
    number = pieces_number(discard.body)
    rows = yield SOME_PIECES, (number, limit)
    for start, _, part_number, locator, _ in rows:
        yield REMOVE_PIECE, (number, start, part_number)
        if locator:
            yield from release(locator)
    left = limit - len(rows)
    found = (yield PARTS, (number, 0, left)) if left > 0 else []
    for part in map(part_of, found):
        yield REMOVE_PART, (number, part.number)
        for extent in part.extents:
            yield from release(extent.locator)
    if left <= len(found):
        return False
    yield REMOVE_UPLOAD, (number,)
    yield REMOVE_DISCARD, (discard.id,)
    return True
