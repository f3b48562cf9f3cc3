"""Objects: put, copy and delete, and reads of one version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sluice_s3.app.errors import ConditionalRequestConflict, DomainError, NoSuchBucket, SourceGone
from sluice_s3.app.index.journals.statements import ADD_TOMBSTONE
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.objects.conditions import Conditions, check_conditions
from sluice_s3.app.index.objects.rows import NULL_VERSION, CommitResult, NewVersion, Version
from sluice_s3.app.index.objects.statements import (
    ADD_VERSION,
    CURRENT_FOR_DELETE,
    CURRENT_FOR_WRITE,
    REMOVE_VERSION,
    REPLACE_VERSION,
    SET_HEADERS,
    VERSION,
    VERSION_HEADERS,
)
from sluice_s3.app.index.plain_files.statements import MOVE_PENDING_HASH
from sluice_s3.app.index.reclaim.refcounts import add_reference, drop_reference, enqueue_discard
from sluice_s3.app.index.reclaim.statements import BODY
from sluice_s3.app.index.schema.tables import CURRENT
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms
from sluice_s3.app.index.versioning.rows import DeleteResult, Deletion, Done
from sluice_s3.app.index.versioning.transactions import (
    add_delete_marker,
    add_version,
    noncurrent_version,
    remove_version,
    require_older,
)

MAX_BRIEF_ENTRIES = 4
"""Entries up to which a delete of several takes about as long as a put."""
NO_BUCKET_ROW = (None, None, None, 0, 0, "", 0, None)
"""What a delete finds when the bucket does not exist."""


class CurrentForWrite(NamedTuple):
    """The current state of a key for a write.

    `seq` and `etag` are None when there is no object.
    """

    seq: int | None
    etag: str | None
    size: int
    modified: int
    body: str
    bucket_id: int
    versioning: int


def version(bucket_id: int, key: str, version_id: str | None = None) -> Transaction[Version | None]:
    """Return the current object of a key, or the version of that id.

    That version may be a delete marker.
    """
    rows = yield VERSION, (bucket_id, key)
    if rows and version_id in (None, rows[0][2]):
        return Version._make(rows[0])
    if version_id is None:
        return None
    return (yield from noncurrent_version(bucket_id, key, version_id))


def current_for_write(bucket_id: int, key: str, conditions: Conditions | None) -> Transaction[CurrentForWrite]:
    """Return what a write would replace, after checking its conditions.

    Raises NoSuchBucket and as `check_conditions`.
    """
    rows = yield CURRENT_FOR_WRITE, (key, bucket_id)
    if not rows:
        raise NoSuchBucket()
    old = CurrentForWrite._make(rows[0])
    if conditions is not None:
        check_conditions(conditions, old.etag, old.size, old.modified)
        if conditions.dated is not None:
            yield from require_older(old.bucket_id, key, conditions.dated)
    return old


def write_current(
    old: CurrentForWrite, key: str, new: NewVersion, conditions: Conditions | None = None
) -> Transaction[CommitResult]:
    """Write `new` in the place of `old`, and release the body of `old`.

    A body that `new` also holds is not released. Where versions are kept, `new` is added beside `old`. Then the caller
    has already counted up its body if another row holds that, too. `conditions`, which are checked, may have its time.
    """
    dated = None if conditions is None else conditions.dated
    if old.versioning:
        return (yield from add_version(old.bucket_id, old.versioning, key, new, dated))
    seq = yield DRAW
    modified = now_ms() if dated is None else dated
    if old.seq is None:
        yield ADD_VERSION, (seq, old.bucket_id, key, NULL_VERSION, CURRENT, modified, *new)
    else:
        modified = max(modified, old.modified + 1)
        yield REPLACE_VERSION, (seq, modified, *new, old.seq)
        if old.body and old.body != new.body:
            yield from drop_reference(old.body)
    return CommitResult(seq, NULL_VERSION, modified)


def put_version(
    bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None = None
) -> Transaction[CommitResult]:
    """Make `new` the current version of a key.

    The replaced body goes to the discard queue; where versions are kept, the old object becomes an older version.
    Conditions apply to the current object, and a delete marker is no object. Raises NoSuchBucket, PreconditionFailed,
    NoSuchKey (If-Match on a missing key).
    """
    old = yield from current_for_write(bucket_id, key, conditions)
    return (yield from write_current(old, key, new, conditions))


def copy_version(
    source_seq: int, bucket_id: int, key: str, new: NewVersion, conditions: Conditions | None = None
) -> Transaction[CommitResult]:
    """Make a version that shares the body of version `source_seq`; see `put_version`.

    The body is counted up. Raises SourceGone when that version no longer exists. The source may be the key itself.
    """
    old = yield from current_for_write(bucket_id, key, conditions)
    rows = yield BODY, (source_seq,)
    if not rows:
        raise SourceGone()
    body = rows[0][0]
    if body and (old.versioning or body != old.body):
        yield from add_reference(body)
    return (yield from write_current(old, key, new._replace(body=body)))


def set_headers(bucket_id: int, key: str, seq: int, headers: str, bypass: bool = False) -> Transaction[int]:
    """Replace the headers of the version `seq`, and return its new number.

    The new number makes the headers a later change for the journals. LastModified stays. Raises
    ConditionalRequestConflict when the version no longer exists, and ObjectLocked for an earlier end of its retention;
    with `bypass` only in COMPLIANCE mode. See `object_lock`.
    """
    rows = yield VERSION_HEADERS, (seq,)
    if not rows:
        raise ConditionalRequestConflict()
    object_lock.require_changeable(rows[0][0], headers, bypass=bypass)
    number = yield DRAW
    yield SET_HEADERS, (number, headers, seq, bucket_id)
    yield MOVE_PENDING_HASH, (number, seq)
    return int(number)


def delete_version(
    bucket_id: int,
    key: str,
    version_id: str | None = None,
    conditions: Conditions | None = None,
    bypass: bool = False,
) -> Transaction[CommitResult | DeleteResult | None]:
    """Delete an object and release its body.

    Returns None when there was none, which is no error without a condition. Where versions are kept, it adds a delete
    marker, or with `version_id` removes that version (None: there is none). Raises NoSuchKey for If-Match on a missing
    key, PreconditionFailed, and ObjectLocked for a version that its legal hold or its retention protects. `bypass`
    overrides a retention in GOVERNANCE mode.
    """
    rows = yield CURRENT_FOR_DELETE, (key, bucket_id)
    seq, current_id, etag, size, modified, body, versioning, holders = rows[0] if rows else NO_BUCKET_ROW
    if versioning and version_id is not None:
        return (yield from remove_version(bucket_id, key, version_id, conditions, bypass))
    if seq is None or version_id not in (None, current_id):
        seq = etag = None
    if conditions is not None:
        check_conditions(conditions, etag, size, modified)
    if versioning:
        dated = None if conditions is None else conditions.dated
        if dated is not None:
            yield from require_older(bucket_id, key, dated)
        return (yield from add_delete_marker(bucket_id, versioning, key, dated))
    if seq is None:
        return None
    yield REMOVE_VERSION, (seq,)
    number = yield DRAW
    # not earlier than the version's time, by whatever clock that was set: `rebuild` recognizes deletions by it
    yield ADD_TOMBSTONE, (number, "object", bucket_id, key, max(now_ms(), modified), "", NULL_VERSION)
    if body:
        yield from (enqueue_discard(body) if holders is None else drop_reference(body))
    return CommitResult(seq, NULL_VERSION, modified)


def has_few_entries(_bucket_id: int, entries: Sequence[Deletion]) -> bool:
    """Return whether `delete_versions` takes a few statements."""
    return len(entries) <= MAX_BRIEF_ENTRIES


def delete_versions(bucket_id: int, entries: Sequence[Deletion]) -> Transaction[list[Done]]:
    """Delete each entry.

    An entry whose condition fails has its error as its result.
    """
    results: list[Done] = []
    for entry in entries:
        try:
            results.append((yield from delete_version(bucket_id, *entry)))
        except DomainError as error:  # raised before a write of this entry
            results.append(error)
    return results
