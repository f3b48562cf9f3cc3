"""Renames of objects, and appends to them.

No existing byte is rewritten.
"""

from __future__ import annotations

import secrets

from xxhash import xxh3_64_hexdigest

from sluice_s3.app.errors import (
    InvalidBucketState,
    NoSuchBucket,
    NoSuchKey,
    PreconditionFailed,
    SourceGone,
    TokenReused,
)
from sluice_s3.app.index.journals.statements import ADD_TOMBSTONE
from sluice_s3.app.index.meta.statements import META, SET_META
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.multipart.statements import ADD_PIECE, ADD_UPLOAD, END_UPLOAD, WHOLE_PIECES
from sluice_s3.app.index.multipart.transactions import NUMBER_DIGITS, pieces_number
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NULL_VERSION, Appended, CommitResult, NewVersion, Rename, Version
from sluice_s3.app.index.objects.statements import (
    CURRENT_FOR_WRITE,
    REMOVE_RENAME_TOKENS,
    REMOVE_VERSION,
    RENAME_VERSION,
    REPLACE_VERSION,
)
from sluice_s3.app.index.objects.transactions import CurrentForWrite, current_for_write
from sluice_s3.app.index.reclaim.refcounts import add_reference, drop_reference
from sluice_s3.app.index.reclaim.statements import REFERENCE_COUNT
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms

TOKENS = "rename:"
"""Prefix of the notes of finished renames. The bucket and the token follow."""


def _current(bucket_id: int, key: str) -> Transaction[CurrentForWrite]:
    rows = yield CURRENT_FOR_WRITE, (key, bucket_id)
    if not rows:
        raise NoSuchBucket()
    current = CurrentForWrite._make(rows[0])
    if current.versioning:
        raise InvalidBucketState()
    return current


def rename_object(bucket_id: int, rename: Rename) -> Transaction[CommitResult | None]:
    """Rename an object, replacing the object at the target key.

    Returns None when the rename of that token was done before. LastModified becomes the time of the rename: a change of
    a key must not be older than what was written there before, by which `rebuild` orders them. Raises NoSuchBucket,
    NoSuchKey, PreconditionFailed, TokenReused, and InvalidBucketState where versions are kept.
    """
    note = f"{TOKENS}{bucket_id}:{rename.token}"
    digest = xxh3_64_hexdigest(repr(rename).encode("utf-8", "surrogatepass"))
    if rename.token:
        recorded = yield META, (note,)
        if recorded and recorded[0][0].partition(" ")[2] == digest:
            return None
        if recorded:
            raise TokenReused()
    source = yield from _current(bucket_id, rename.source)
    target = yield from _current(bucket_id, rename.target)
    if source.seq is None:
        raise NoSuchKey(key=rename.source)
    for conditions, version in ((rename.of_source, source), (rename.of_target, target)):
        if failed := conditions.fails(version.etag, version.modified):
            raise PreconditionFailed(condition=failed)
    if target.seq is not None:
        yield REMOVE_VERSION, (target.seq,)
        if target.body:
            yield from drop_reference(target.body)
    now = now_ms()
    removed = yield DRAW
    at = max(now, source.modified)
    yield ADD_TOMBSTONE, (removed, "object", bucket_id, rename.source, at, "", NULL_VERSION)
    seq = yield DRAW
    modified = max(now, source.modified + 1, target.modified + 1 if target.seq is not None else 0)
    yield RENAME_VERSION, (seq, rename.target, modified, source.seq)
    if rename.token:
        yield SET_META, (note, f"{now:013} {digest}")
    return CommitResult(seq, NULL_VERSION, modified)


def forget_renames(before: int) -> Transaction[None]:
    """Remove the tokens of renames before a time in milliseconds since the epoch."""
    yield REMOVE_RENAME_TOKENS, (f"{before:013}",)


def append(
    bucket_id: int, key: str, current: Version, new: NewVersion, appended: Appended, conditions: Conditions | None
) -> Transaction[CommitResult]:
    """Append one blob to a key's object, which becomes `new`.

    `new.body` is set here. Pieces that only this object holds get one more; otherwise the object gets pieces of its
    own. Raises SourceGone when `current` is no longer the key's object in that state, InvalidBucketState where versions
    are kept, and what `put_version` raises.
    """
    old = yield from current_for_write(bucket_id, key, conditions)
    if old.versioning:
        raise InvalidBucketState()
    if old.seq != current.seq or old.body != current.body:
        raise SourceGone()
    seq = yield DRAW
    modified = max(now_ms(), old.modified + 1)
    number = yield from _own_pieces(bucket_id, key, current, new, (seq, NULL_VERSION, modified))
    yield ADD_PIECE, (number, current.size, appended.number, appended.size, appended.locator, 0, appended.checksum)
    yield REPLACE_VERSION, (seq, modified, *new._replace(body=f"{PIECES}{number}"), old.seq)
    return CommitResult(seq, NULL_VERSION, modified)


def _own_pieces(
    bucket_id: int, key: str, current: Version, new: NewVersion, result: tuple[int, str, int]
) -> Transaction[int]:
    """Return the number of pieces that only this object holds.

    `result` is the completion result that the upload records: it tells journals and the orphan sweeper that the upload
    has something new.
    """
    body = current.body
    if body.startswith(PIECES) and not (yield REFERENCE_COUNT, (body,)):
        yield END_UPLOAD, (*result, pieces_number(body))
        return pieces_number(body)
    number: int = yield DRAW
    upload_id = f"{number:0{NUMBER_DIGITS}x}{secrets.token_hex(NUMBER_DIGITS)}"
    described = (new.headers, new.storage_class, new.checksum_algorithm, new.checksum_type, new.owner_id)
    yield ADD_UPLOAD, (number, upload_id, bucket_id, key, result[2], *described, *result)
    if not body.startswith(PIECES):
        yield ADD_PIECE, (number, 0, 1, current.size, body, 0, current.checksum)
        return number
    rows = yield WHOLE_PIECES, (pieces_number(body),)
    for row in rows:
        if row[4]:
            yield from add_reference(row[4])
    yield ADD_PIECE, [(number, *row[1:]) for row in rows]
    yield from drop_reference(body)
    return number
