"""Plain files: changes in progress, and changes that other programs made.

A change is two transactions with the change of the file between them. The first checks the conditions and locks the key
by a write intent, so that nothing else changes its row. The second updates the row to the new state of the file.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from sluice_s3.app.errors import InvalidPart, KeyBusy, NoSuchBucket, NoSuchUpload, WriterDead
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.buckets.statements import BUCKET_ID
from sluice_s3.app.index.journals.statements import ADD_TOMBSTONE
from sluice_s3.app.index.meta.statements import SEQUENCE
from sluice_s3.app.index.multipart.rows import Part, Upload
from sluice_s3.app.index.multipart.statements import ADD_PIECE, ALL_PARTS, END_UPLOAD, REMOVE_PARTS, UPLOAD_STATE
from sluice_s3.app.index.multipart.transactions import part_of
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NULL_VERSION, CommitResult, NewVersion
from sluice_s3.app.index.objects.statements import ADD_VERSION, REMOVE_VERSION, REPLACE_VERSION
from sluice_s3.app.index.objects.transactions import CurrentForWrite, current_for_write, delete_version, write_current
from sluice_s3.app.index.plain_files.rows import ExternalFile, Intent, PendingHash, with_upload
from sluice_s3.app.index.plain_files.statements import (
    ADD_INTENT,
    ADD_PENDING_HASH,
    BUCKETS_ON,
    CURRENT_AFTER,
    INTENT,
    INTENT_AND_VERSION,
    INTENT_FOR_KEY,
    INTENTS_OF,
    PENDING_HASHES,
    REMOVE_INTENT,
    REMOVE_PENDING_HASH,
    SET_HASHES,
    TOMBSTONES_SINCE,
)
from sluice_s3.app.index.reclaim.refcounts import drop_reference
from sluice_s3.app.index.schema.tables import ABORTED, CURRENT, OPEN
from sluice_s3.app.index.sql.transaction import DRAW, Row, Transaction, now_ms

PUT, COMPLETE, DELETE = "put", "complete", "delete"


def _lock(bucket_id: int, key: str, conditions: Conditions | None) -> Transaction[CurrentForWrite]:
    if (yield INTENT_FOR_KEY, (bucket_id, key)):
        raise KeyBusy(key=key)
    return (yield from current_for_write(bucket_id, key, conditions))


def _add_intent(incarnation: int, *fields: object) -> Transaction[Intent]:
    if not incarnation:
        raise WriterDead(reason="opened without a writer")
    number = yield DRAW
    intent = Intent._make((number, incarnation, *fields))
    yield ADD_INTENT, intent
    return intent


def start_put(
    incarnation: int, bucket_id: int, key: str, blob_id: int, new: NewVersion, conditions: Conditions | None
) -> Transaction[Intent]:
    """Check the conditions, and lock a key whose file is about to be replaced.

    The new file is written aside under `blob_id`. `new.body` is the locator that the file will have. Raises KeyBusy
    while another intent locks the key, and what `put_version` raises.
    """
    yield from _lock(bucket_id, key, conditions)
    described = orjson.dumps(list(new)).decode()
    return (yield from _add_intent(incarnation, bucket_id, key, PUT, new.body, blob_id, 0, described, ""))


def start_complete(
    incarnation: int,
    upload: Upload,
    chosen: Sequence[Part],
    blob_id: int,
    new: NewVersion,
    conditions: Conditions | None,
) -> Transaction[Intent | CommitResult]:
    """Lock a key for a file made of an upload's parts; see `start_put`.

    Returns the recorded result when the upload was completed before. Raises NoSuchUpload, InvalidPart, and as
    `start_put`.
    """
    rows = yield UPLOAD_STATE, (upload.id,)
    if not rows or rows[0][0] == ABORTED:
        raise NoSuchUpload()
    if rows[0][0] != OPEN:
        return CommitResult._make(rows[0])
    yield from _lock(upload.bucket_id, upload.key, conditions)
    stored_parts = {part.number: part for part in map(part_of, (yield ALL_PARTS, (upload.id,)))}
    for part in chosen:
        stored = stored_parts.get(part.number)
        # extents are not compared: compaction may have moved the blobs
        if stored is None or stored._replace(extents=part.extents) != part:
            raise InvalidPart(upload_id=upload.upload_id, part_number=part.number, etag=part.etag)
    new = new._replace(body=with_upload(new.body, upload.id))
    described = orjson.dumps(list(new)).decode()
    parts = orjson.dumps([(part.number, part.size, part.checksum) for part in chosen]).decode()
    bucket_key = (upload.bucket_id, upload.key)
    return (yield from _add_intent(incarnation, *bucket_key, COMPLETE, new.body, blob_id, upload.id, described, parts))


def start_delete(
    incarnation: int, bucket_id: int, key: str, version_id: str | None, conditions: Conditions | None
) -> Transaction[Intent | None]:
    """Lock a key whose file is about to be unlinked.

    Returns None when it has no row, or none of that version.
    """
    old = yield from _lock(bucket_id, key, conditions)
    if old.seq is None or version_id not in (None, NULL_VERSION):
        return None
    return (yield from _add_intent(incarnation, bucket_id, key, DELETE, old.body, 0, 0, "", ""))


def commit_intent(number: int) -> Transaction[CommitResult | None]:
    """Update the row to the new state of the file, and unlock the key.

    Returns None when that was done before.
    """
    rows = yield INTENT, (number,)
    if not rows:
        return None
    intent = Intent._make(rows[0])
    if intent.kind == DELETE:
        removed = yield from delete_version(intent.bucket_id, intent.key, None, None)
        result = None if removed is None else CommitResult(*removed[:3])
    else:
        old = yield from current_for_write(intent.bucket_id, intent.key, None)
        result = yield from write_current(old, intent.key, NewVersion._make(orjson.loads(intent.new)))
        if intent.kind == COMPLETE:
            yield from _end_upload(intent, result)
    yield REMOVE_INTENT, (number,)
    return result


def _end_upload(intent: Intent, result: CommitResult) -> Transaction[None]:
    """Turn the parts into pieces without blobs that record only sizes and checksums.

    Releases the blobs of the parts.
    """
    rows = yield UPLOAD_STATE, (intent.upload,)
    if not rows or rows[0][0] != OPEN:
        return  # aborted meanwhile: the abort releases the parts
    part_rows = yield ALL_PARTS, (intent.upload,)
    yield END_UPLOAD, (*result, intent.upload)
    pieces: list[Row] = []
    start = 0
    for part_number, size, checksum in orjson.loads(intent.parts):
        pieces.append((intent.upload, start, part_number, size, "", 0, checksum))
        start += size
    yield ADD_PIECE, pieces
    yield REMOVE_PARTS, (intent.upload,)
    for part in map(part_of, part_rows):
        for extent in part.extents:
            yield from drop_reference(extent.locator)


def abort_intent(number: int) -> Transaction[None]:
    """Unlock the key of a file that did not change."""
    yield REMOVE_INTENT, (number,)


def intent_for_key(bucket_id: int, key: str) -> Transaction[Intent | None]:
    """Return the write intent on a key, or None."""
    rows = yield INTENT_FOR_KEY, (bucket_id, key)
    return Intent._make(rows[0]) if rows else None


def intents_of(incarnation: int) -> Transaction[list[Intent]]:
    """Return the write intents of a writer, oldest first."""
    rows = yield INTENTS_OF, (incarnation,)
    return [Intent._make(row) for row in rows]


def position() -> Transaction[int]:
    """Return the last number drawn from the commit sequence."""
    rows = yield SEQUENCE, ()
    return int(rows[0][0])


def adopt_external_files(
    bucket_id: int, owner_id: str, since: int, files: Sequence[ExternalFile]
) -> Transaction[list[int]]:
    """Add rows for files that other programs created or changed.

    Returns their sequences. Their ETags are placeholders until the files are hashed. The sequence is 0 for a key whose
    row is not the one seen, which has a write intent, or which was deleted after `since` (the position before the
    scan): then the scan is out of date.
    """
    if not (yield BUCKET_ID, (bucket_id,)):
        raise NoSuchBucket()
    removed = {key for (key,) in (yield TOMBSTONES_SINCE, (since, bucket_id))}
    sequences: list[int] = []
    now = now_ms()
    for file in files:
        current = yield from _version_unless_locked(bucket_id, file.key)
        if current is None or (current[0] or 0) != file.seen or file.key in removed:
            sequences.append(0)
            continue
        seq = yield DRAW
        sequences.append(seq)
        new = NewVersion(file.size, file.etag, file.headers, "STANDARD", "", "", "", file.body, 0, owner_id)
        modified = min(file.modified, now)
        if current[0] is None:
            yield ADD_VERSION, (seq, bucket_id, file.key, NULL_VERSION, CURRENT, modified, *new)
        else:
            yield REPLACE_VERSION, (seq, max(modified, current[1] + 1), *new, current[0])
            yield from drop_reference(current[2])
        yield ADD_PENDING_HASH, (seq,)
    return sequences


def _version_unless_locked(bucket_id: int, key: str) -> Transaction[Row | None]:
    """Return sequence, time and body of a key's version, each None when there is none.

    None under a write intent.
    """
    rows = yield INTENT_AND_VERSION, (bucket_id, key, bucket_id, key)
    return None if rows[0][0] is not None else rows[0][1:]


def remove_missing_files(bucket_id: int, vanished: Sequence[tuple[str, int]]) -> Transaction[list[bool]]:
    """Remove the rows of files that other programs deleted.

    Returns for each whether it was removed. `vanished` holds the key, and the sequence of the row when the file was
    looked for.
    """
    removed: list[bool] = []
    for key, seq in vanished:
        current = yield from _version_unless_locked(bucket_id, key)
        removed.append(current is not None and current[0] == seq)
        if current is None or not removed[-1]:
            continue
        yield REMOVE_VERSION, (seq,)
        number = yield DRAW
        yield ADD_TOMBSTONE, (number, "object", bucket_id, key, now_ms(), "", NULL_VERSION)
        if current[2]:
            yield from drop_reference(current[2])
    return removed


def current_keys_after(bucket_id: int, after: str, limit: int) -> Transaction[list[tuple[str, int, str]]]:
    """Return key, sequence and body of current objects after a key."""
    rows: list[tuple[str, int, str]] = yield CURRENT_AFTER, (bucket_id, after, limit)
    return rows


def buckets_on(store: str) -> Transaction[list[Bucket]]:
    """Return the buckets with data on a store."""
    rows = yield BUCKETS_ON, (store, store)
    return [Bucket._make(row) for row in rows]


def pending_hashes(after: int, limit: int) -> Transaction[list[PendingHash]]:
    """Return versions that wait for their hashes.

    `bucket_id` is 0 for a version that is gone or replaced.
    """
    rows = yield PENDING_HASHES, (after, limit)
    return [
        PendingHash(seq, bucket_id or 0, key or "", size or 0, body or "") for seq, bucket_id, key, size, body in rows
    ]


def set_hashes(seq: int, body: str, etag: str, algorithm: str, checksum: str) -> Transaction[bool]:
    """Set the true ETag and checksum of a version.

    Returns False when it is no longer the one that was read.
    """
    yield REMOVE_PENDING_HASH, (seq,)
    number = yield DRAW
    kind = "FULL_OBJECT" if algorithm else ""
    return bool((yield SET_HASHES, (number, etag, algorithm, kind, checksum, seq, body)))


def forget_unhashed(seqs: Sequence[int]) -> Transaction[None]:
    """Remove versions from those that wait for their hashes."""
    yield REMOVE_PENDING_HASH, [(seq,) for seq in seqs]
