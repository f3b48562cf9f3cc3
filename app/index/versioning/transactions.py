"""Buckets with versioning: writes and deletes of a key, and which version is the newest.

The newest version of a key is CURRENT or MARKER, all others are NONCURRENT or OLD_MARKER. While versioning is
suspended, a new version has the id `null`, and replaces the version that had it.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from sluice_s3.app.errors import InvalidBucketState, NoSuchBucket, PreconditionFailed
from sluice_s3.app.index.journals.statements import ADD_TOMBSTONE
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.objects.conditions import Conditions, check_conditions
from sluice_s3.app.index.objects.rows import NULL_VERSION, CommitResult, NewVersion, Version
from sluice_s3.app.index.objects.statements import ADD_VERSION, REMOVE_VERSION
from sluice_s3.app.index.reclaim.refcounts import drop_reference
from sluice_s3.app.index.schema.tables import CURRENT, ENABLED, MARKER, NONCURRENT, OLD_MARKER
from sluice_s3.app.index.sql.transaction import DRAW, Transaction, now_ms
from sluice_s3.app.index.versioning import version_ids
from sluice_s3.app.index.versioning.rows import DeleteResult
from sluice_s3.app.index.versioning.statements import (
    CURRENT_OF,
    NEWEST_OTHER,
    NEWEST_OTHER_VERSION,
    NULL_OF,
    NULL_VERSION_OF,
    OTHER_OF,
    OTHER_VERSION,
    SET_STATE,
    SET_VERSIONING,
    VERSIONING,
)

DEMOTED = {CURRENT: NONCURRENT, MARKER: OLD_MARKER}
PROMOTED = {older: newest for newest, older in DEMOTED.items()}


class VersionHeader(NamedTuple):
    """The columns of a version that a change needs."""

    seq: int
    version_id: str
    state: int
    etag: str
    size: int
    modified: int
    body: str
    headers: str


def set_versioning(bucket_id: int, versioning: int) -> Transaction[None]:
    """Enable or suspend versioning; see the schema.

    Raises NoSuchBucket. Raises InvalidBucketState for a suspension in a bucket with object lock.
    """
    rows = yield VERSIONING, (bucket_id,)
    if not rows:
        raise NoSuchBucket()
    if versioning != ENABLED and object_lock.SETTING in orjson.loads(rows[0][2] or "{}"):
        raise InvalidBucketState()
    yield SET_VERSIONING, (versioning, bucket_id)


def noncurrent_version(bucket_id: int, key: str, version_id: str) -> Transaction[Version | None]:
    """Return the version of that id, if it is not the current object."""
    if version_id == NULL_VERSION:
        rows = yield NULL_VERSION_OF, (bucket_id, key)
    else:
        at = version_ids.time_of(version_id)
        if at is None:
            return None
        rows = yield OTHER_VERSION, (bucket_id, key, at, version_id)
    return Version._make(rows[0]) if rows else None


def current_marker(bucket_id: int, key: str) -> Transaction[Version | None]:
    """Return the delete marker that is the newest version of a key, or None."""
    rows = yield NEWEST_OTHER_VERSION, (bucket_id, key)
    return Version._make(rows[0][:-1]) if rows and rows[0][-1] == MARKER else None


def require_older(bucket_id: int, key: str, dated: int) -> Transaction[None]:
    """Raise PreconditionFailed unless all versions of a key are older than `dated` (milliseconds since the epoch)."""
    rows = (yield CURRENT_OF, (bucket_id, key)) or (yield NEWEST_OTHER, (bucket_id, key))
    if rows and VersionHeader._make(rows[0]).modified >= dated:
        raise PreconditionFailed(condition="x-amz-sluice-last-modified")


def add_version(
    bucket_id: int, versioning: int, key: str, new: NewVersion, dated: int | None = None
) -> Transaction[CommitResult]:
    """Make `new` the newest version of a key.

    `dated` is its time if that is not now: see `require_older`.
    """
    after = yield from _demote_current(bucket_id, versioning, key)
    seq, version_id, modified = yield from _next(versioning, after, dated)
    yield ADD_VERSION, (seq, bucket_id, key, version_id, CURRENT, modified, *new)
    return CommitResult(seq, version_id, modified)


def add_delete_marker(bucket_id: int, versioning: int, key: str, dated: int | None = None) -> Transaction[DeleteResult]:
    """Make a delete marker the newest version of a key.

    The owner of the bucket owns it. For `dated` see `add_version`.
    """
    ((_, owner_id, _),) = yield VERSIONING, (bucket_id,)
    after = yield from _demote_current(bucket_id, versioning, key)
    seq, version_id, modified = yield from _next(versioning, after, dated)
    empty = NewVersion(0, "", "{}", "STANDARD", "", "", "", "", 0, owner_id)
    yield ADD_VERSION, (seq, bucket_id, key, version_id, MARKER, modified, *empty)
    return DeleteResult(seq, version_id, modified, True)


def _next(versioning: int, after: int, dated: int | None) -> Transaction[tuple[int, str, int]]:
    """Return sequence, id and time of a new version.

    Its time is later than `after`.
    """
    seq = yield DRAW
    modified = max(now_ms() if dated is None else dated, after + 1)
    return seq, version_ids.new_version_id(modified, seq) if versioning == ENABLED else NULL_VERSION, modified


def _demote_current(bucket_id: int, versioning: int, key: str) -> Transaction[int]:
    """Demote the newest version of a key, and return its time, or 0.

    While versioning is suspended, also removes the null version of the key.
    """
    rows = (yield CURRENT_OF, (bucket_id, key)) or (yield NEWEST_OTHER, (bucket_id, key))
    newest = VersionHeader._make(rows[0]) if rows else None
    if versioning != ENABLED:
        null = yield from stored_version(bucket_id, key, NULL_VERSION)
        if null is not None:
            # no tombstone: the new version has the same id, so the journals know that the old one is gone
            yield from _remove(null)
            if newest is not None and newest.seq == null.seq:
                return newest.modified
    if newest is None:
        return 0
    yield SET_STATE, (DEMOTED[newest.state], newest.seq)
    return newest.modified


def remove_version(
    bucket_id: int, key: str, version_id: str, conditions: Conditions | None, bypass: bool
) -> Transaction[DeleteResult | None]:
    """Remove a version permanently.

    Returns None when there is none of that id. Raises ObjectLocked.
    """
    version = yield from stored_version(bucket_id, key, version_id)
    if conditions is not None:
        state = (None, 0, 0) if version is None or not version.etag else (version.etag, version.size, version.modified)
        check_conditions(conditions, *state)
    if version is None:
        return None
    yield from _remove(version, bypass)
    number = yield DRAW
    yield ADD_TOMBSTONE, (number, "object", bucket_id, key, max(now_ms(), version.modified), "", version_id)
    if version.state in DEMOTED:
        rows = yield NEWEST_OTHER, (bucket_id, key)
        if rows:
            newest = VersionHeader._make(rows[0])
            yield SET_STATE, (PROMOTED[newest.state], newest.seq)
    return DeleteResult(version.seq, version_id, version.modified, version.state in (MARKER, OLD_MARKER))


def stored_version(bucket_id: int, key: str, version_id: str) -> Transaction[VersionHeader | None]:
    """Return the columns of a version that a change needs, or None."""
    rows = yield CURRENT_OF, (bucket_id, key)
    if not rows or rows[0][1] != version_id:
        if version_id == NULL_VERSION:
            rows = yield NULL_OF, (bucket_id, key)
        else:
            at = version_ids.time_of(version_id)
            rows = [] if at is None else (yield OTHER_OF, (bucket_id, key, at, version_id))
    return VersionHeader._make(rows[0]) if rows else None


def _remove(version: VersionHeader, bypass: bool = False) -> Transaction[None]:
    """Remove a version and release its body.

    Raises ObjectLocked before the first write.
    """
    object_lock.require_removable(version.headers, bypass=bypass)
    yield REMOVE_VERSION, (version.seq,)
    if version.body:
        yield from drop_reference(version.body)
