"""Moves of buckets to another store, and the replacement of blobs by copies there."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

import orjson

from sluice_s3.app.errors import BucketBusy, NoSuchBucket
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.buckets.statements import BUCKET
from sluice_s3.app.index.meta.statements import META, SET_META
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.multipart.statements import ADD_PIECE, ADD_UPLOAD, DETACH_UPLOAD, WHOLE_PIECES, WHOLE_UPLOAD
from sluice_s3.app.index.multipart.transactions import NUMBER_DIGITS, pieces_number
from sluice_s3.app.index.reclaim.refcounts import (
    add_reference,
    drop_reference,
    holds_body,
    reference_new_blob,
)
from sluice_s3.app.index.reclaim.rows import BlobReference
from sluice_s3.app.index.reclaim.statements import EXTENTS, MOVE_EXTENTS, MOVE_PIECE, MOVE_VERSION
from sluice_s3.app.index.relocation.rows import ReferenceSwap
from sluice_s3.app.index.relocation.statements import (
    BUCKET_STATE,
    END_MOVE,
    LAST_MOVED,
    LAST_MOVED_OF_ALL,
    LAST_SNAPSHOT,
    MOVE_BUCKET,
    MOVING_BUCKETS,
)
from sluice_s3.app.index.sql.transaction import DRAW, Row, Transaction

MOVED = "moved"
"""Name of the note that holds the number of the last move that began."""


def start_bucket_move(name: str, store: str) -> Transaction[Bucket]:
    """Begin to move a bucket; from this commit on new data goes to `store`.

    Raises NoSuchBucket, BucketBusy. Raises BucketBusy also until the end of the last move is journaled: the journals
    must tell on which store the data is. When `store` is the bucket's own store, data that is elsewhere moves there.
    """
    rows = yield BUCKET, (name,)
    if not rows:
        raise NoSuchBucket()
    bucket = Bucket._make(rows[0])
    if bucket.source and bucket.store == store:
        return bucket
    if bucket.source:
        raise BucketBusy(reason=f"it is being moved to {bucket.store}")
    if bucket.moved and bucket.moved > (yield from _last_snapshot(bucket.store)):
        raise BucketBusy(reason="its last move is not written down beside the data yet: try again in a moment")
    return (yield from _move(bucket, store))


def _move(bucket: Bucket, store: str) -> Transaction[Bucket]:
    number: int = yield DRAW
    yield MOVE_BUCKET, (store, bucket.store, number, bucket.id)
    yield SET_META, (MOVED, str(number))
    return bucket._replace(store=store, source=bucket.store, moved=number)


def turn_bucket_back(name: str) -> Transaction[Bucket]:
    """Cancel a move: new data goes to the old store again, and what was copied moves back there.

    Raises NoSuchBucket, and BucketBusy for a bucket that is not being moved. The journals of both stores describe a
    bucket while it moves, so that those of the old store have all of it.
    """
    rows = yield BUCKET, (name,)
    if not rows:
        raise NoSuchBucket()
    bucket = Bucket._make(rows[0])
    if not bucket.source:
        raise BucketBusy(reason="it is not being moved")
    return (yield from _move(bucket, bucket.source))


def finish_bucket_move(bucket: Bucket) -> Transaction[bool]:
    """End a move after which nothing of the bucket is left on its old store.

    Returns False until the journals of the new store contain the whole bucket, because from then on only they count.
    False also for a move that was cancelled meanwhile.
    """
    rows = yield BUCKET, (bucket.name,)
    if not rows or Bucket._make(rows[0]).moved != bucket.moved:
        return False
    if (yield from _last_snapshot(bucket.store)) < bucket.moved:
        return False
    number = yield DRAW
    yield END_MOVE, ("", number, bucket.id)
    return True


def moving_buckets() -> Transaction[list[Bucket]]:
    """Return the buckets that are being moved."""
    return [Bucket._make(row) for row in (yield MOVING_BUCKETS, ())]


def _last_snapshot(store: str) -> Transaction[int]:
    rows = yield LAST_SNAPSHOT, (store,)
    return int(rows[0][0] or 0)


def snapshot_is_due(store: str, watermark: int) -> Transaction[bool]:
    """Return whether a bucket arrived on a store after its newest complete snapshot began.

    That holds for a bucket that began or finished its move there. False until the journals contain all changes up to
    that move (`watermark`). Once such a snapshot exists, only these journals count, and changes that only the old
    store's journals hold would be lost with the index.
    """
    rows = yield LAST_MOVED, (store,)
    return (yield from _last_snapshot(store)) < (rows[0][0] or 0) <= watermark


def ever_moved() -> Transaction[bool]:
    """Return whether any bucket was ever moved, so that old rows may hold young blobs.

    True also when that bucket is deleted: another bucket may have copies of its objects, which hold the same pieces.
    """
    rows = yield LAST_MOVED_OF_ALL, ()
    return bool(rows[0][0]) or bool((yield META, (MOVED,)))


def _is_current(move: Bucket) -> Transaction[bool]:
    """Return whether a move was neither cancelled nor ended."""
    rows = yield BUCKET_STATE, (move.id,)
    return bool(rows) and rows[0][3] == move.moved


def swap_references(move: Bucket, swaps: Sequence[ReferenceSwap]) -> Transaction[list[bool]]:
    """Let rows of a bucket that moves hold a copy instead of a body.

    Returns False for each row once the move is cancelled: what the old store's journals describe by then must stay.
    Returns False for each row that no longer holds the body. A copy that another row already holds
    (`existing_copy`) is counted up. False also when that row no longer holds it.
    """
    if not (yield from _is_current(move)):
        return [False] * len(swaps)
    results = []
    for swap in swaps:
        swapped = (yield from holds_body(swap.holder, swap.old)) and (
            swap.existing_copy is None or (yield from holds_body(swap.existing_copy, swap.new))
        )
        if swapped:
            yield from _rewrite(swap)
        results.append(swapped)
    return results


def _rewrite(swap: ReferenceSwap) -> Transaction[None]:
    holder, count = swap.holder, 1
    if holder.kind == "version":
        yield MOVE_VERSION, (swap.new, holder.first)
    elif holder.kind == "piece":
        yield MOVE_PIECE, (swap.new, holder.first, holder.second, holder.third)
    else:
        rows = yield EXTENTS, (holder.first, holder.second)
        extents = orjson.loads(rows[0][0])
        count = [locator for locator, _, _ in extents].count(swap.old)
        moved = [(swap.new if locator == swap.old else locator, offset, size) for locator, offset, size in extents]
        yield MOVE_EXTENTS, (orjson.dumps(moved).decode(), holder.first, holder.second)
    for _ in range(count if swap.existing_copy is not None else count - 1):
        yield from add_reference(swap.new)
    for _ in range(count):
        yield from drop_reference(swap.old)


def unshare_body(move: Bucket, seq: int, key: str, old: str, locators: dict[str, str]) -> Transaction[str | None]:
    """Give a version its own copy of shared pieces, with its blobs at other `locators`.

    Returns the new body, or None when the move is cancelled, the version no longer holds these pieces, or a blob has no
    place. No other row may hold the blobs at `locators`.
    """
    if not ((yield from _is_current(move)) and (yield from holds_body(BlobReference("version", seq), old))):
        return None
    rows: list[Row] = yield WHOLE_PIECES, (pieces_number(old),)
    uploads = yield WHOLE_UPLOAD, (pieces_number(old),)
    if not uploads or not {row[4] for row in rows if row[4]} <= locators.keys():
        return None
    number = yield DRAW
    upload_id = f"{number:0{NUMBER_DIGITS}x}{secrets.token_hex(NUMBER_DIGITS)}"
    yield ADD_UPLOAD, (number, upload_id, move.id, key, *uploads[0][4:])
    yield ADD_PIECE, [(number, *row[1:4], locators.get(row[4], ""), *row[5:]) for row in rows]
    referenced: set[str] = set()
    for row in rows:
        if row[4]:
            yield from reference_new_blob(locators[row[4]], referenced)
    new = f"{PIECES}{number}"
    yield MOVE_VERSION, (new, seq)
    # the journals of both stores record an upload that belongs to no bucket
    yield DETACH_UPLOAD, (0, pieces_number(old), move.id)
    yield from drop_reference(old)
    return new
