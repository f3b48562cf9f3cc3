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
from sluice_s3.app.index.rewrites import Appended, Rename
from sluice_s3.app.index.rows import NULL_VERSION, PIECES, CommitResult, Conditions, NewVersion, Version
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms
from sluice_s3.app.index.statements import (
    ADD_PIECE,
    ADD_UPLOAD,
    END_UPLOAD,
    HOLDERS,
    META,
    REMOVE_VERSION,
    REPLACE_VERSION,
    REPLACED,
    SET_META,
)
from sluice_s3.app.index.transactions.multipart import NUMBER_DIGITS, pieces_number
from sluice_s3.app.index.transactions.objects import CurrentForWrite, current_for_write
from sluice_s3.app.index.transactions.refcounts import add_reference, drop_reference
from sluice_s3.app.index.upkeep_statements import ADD_REMOVAL, FORGET_TOKENS, RENAME_VERSION, WHOLE_PIECES

TOKENS = "rename:"
"""Prefix of the notes of finished renames. The bucket and the token follow."""


def _found(bucket_id: int, key: str) -> Transaction[CurrentForWrite]:
    rows = yield REPLACED, (key, bucket_id)
    if not rows:
        raise NoSuchBucket()
    found = CurrentForWrite._make(rows[0])
    if found.versioning:
        raise InvalidBucketState()
    return found


def rename_object(bucket_id: int, rename: Rename) -> Transaction[CommitResult | None]:
    """Rename an object, replacing the object at the target key.

    Returns None when the rename of that token was done before. LastModified becomes the time of the rename: a change of
    a key must not be older than what was written there before, by which `rebuild` orders them. Raises NoSuchBucket,
    NoSuchKey, PreconditionFailed, TokenReused, and InvalidBucketState where versions are kept.
    """
    note = f"{TOKENS}{bucket_id}:{rename.token}"
    digest = xxh3_64_hexdigest(repr(rename).encode("utf-8", "surrogatepass"))
    if rename.token:
        known = yield META, (note,)
        if known and known[0][0].partition(" ")[2] == digest:
            return None
        if known:
            raise TokenReused()
    source = yield from _found(bucket_id, rename.source)
    target = yield from _found(bucket_id, rename.target)
    if source.seq is None:
        raise NoSuchKey(key=rename.source)
    for wanted, found in ((rename.of_source, source), (rename.of_target, target)):
        if failed := wanted.fails(found.etag, found.modified):
            raise PreconditionFailed(condition=failed)
    if target.seq is not None:
        yield REMOVE_VERSION, (target.seq,)
        if target.body:
            yield from drop_reference(target.body)
    now = now_ms()
    removed = yield DRAW
    at = max(now, source.modified)
    yield ADD_REMOVAL, (removed, "object", bucket_id, rename.source, at, "", NULL_VERSION)
    seq = yield DRAW
    modified = max(now, source.modified + 1, target.modified + 1 if target.seq is not None else 0)
    yield RENAME_VERSION, (seq, rename.target, modified, source.seq)
    if rename.token:
        yield SET_META, (note, f"{now:013} {digest}")
    return CommitResult(seq, NULL_VERSION, modified)


def forget_renames(before: int) -> Transaction[None]:
    """Remove the tokens of renames before a time in milliseconds since the epoch."""
    yield FORGET_TOKENS, (f"{before:013}",)


def append(
    bucket_id: int, key: str, found: Version, new: NewVersion, more: Appended, conditions: Conditions | None
) -> Transaction[CommitResult]:
    """Append one blob to a key's object, which becomes `new`.

    `new.body` is set here. Pieces that only this object holds get one more; otherwise the object gets pieces of its
    own. Raises SourceGone when `found` is no longer the key's object in that state, InvalidBucketState where versions
    are kept, and what `put_version` raises.
    """
    old = yield from current_for_write(bucket_id, key, conditions)
    if old.versioning:
        raise InvalidBucketState()
    if old.seq != found.seq or old.body != found.body:
        raise SourceGone()
    seq = yield DRAW
    modified = max(now_ms(), old.modified + 1)
    number = yield from _own_pieces(bucket_id, key, found, new, (seq, NULL_VERSION, modified))
    yield ADD_PIECE, (number, found.size, more.number, more.size, more.locator, 0, more.checksum)
    yield REPLACE_VERSION, (seq, modified, *new._replace(body=f"{PIECES}{number}"), old.seq)
    return CommitResult(seq, NULL_VERSION, modified)


def _own_pieces(
    bucket_id: int, key: str, found: Version, new: NewVersion, made: tuple[int, str, int]
) -> Transaction[int]:
    """Return the number of pieces that only this object holds.

    `made` is the completion result that the upload records: it tells journals and the orphan sweeper that the upload
    has something new.
    """
    body = found.body
    if body.startswith(PIECES) and not (yield HOLDERS, (body,)):
        yield END_UPLOAD, (*made, pieces_number(body))
        return pieces_number(body)
    number: int = yield DRAW
    upload_id = f"{number:0{NUMBER_DIGITS}x}{secrets.token_hex(NUMBER_DIGITS)}"
    described = (new.headers, new.storage_class, new.checksum_algorithm, new.checksum_type, new.owner_id)
    yield ADD_UPLOAD, (number, upload_id, bucket_id, key, made[2], *described, *made)
    if not body.startswith(PIECES):
        yield ADD_PIECE, (number, 0, 1, found.size, body, 0, found.checksum)
        return number
    rows = yield WHOLE_PIECES, (pieces_number(body),)
    for row in rows:
        if row[4]:
            yield from add_reference(row[4])
    yield ADD_PIECE, [(number, *row[1:]) for row in rows]
    yield from drop_reference(body)
    return number
