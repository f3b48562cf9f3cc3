"""Changes of keys, from the result and arguments of a transaction.

See `app.index.engine.outbox`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluice_s3.app.index.engine.outbox import (
    DELETED,
    EXPIRED,
    MARKED,
    PUT,
    RENEWED,
    STORAGE_CLASS_CHANGED,
    ObjectChange,
)
from sluice_s3.app.index.lifecycle_scan import OBJECT, ExpireEntry
from sluice_s3.app.index.rewrites import Rename
from sluice_s3.app.index.rows import Bucket, CommitResult, NewVersion, Upload
from sluice_s3.app.index.transition_rows import TransitionEntry
from sluice_s3.app.index.version_rows import DeleteResult, Deletion


def put(done: CommitResult, bucket_id: int, key: str, new: NewVersion, *_: object) -> list[ObjectChange]:
    """Return the change of a new version."""
    return [ObjectChange(PUT, bucket_id, key, done.seq, done.version_id, done.modified, new.size, new.etag)]


def copy(
    done: CommitResult, source_seq: int, bucket_id: int, key: str, new: NewVersion, *_: object
) -> list[ObjectChange]:
    """Return the change of a new version that has the bytes of another one."""
    return put(done, bucket_id, key, new)


def complete(done: CommitResult, upload: Upload, chosen: object, new: NewVersion, *_: object) -> list[ObjectChange]:
    """Return the change of a new version made of parts."""
    return put(done, upload.bucket_id, upload.key, new)


def delete(
    done: CommitResult | DeleteResult | None, bucket_id: int, key: str, version_id: str | None = None, *_: object
) -> list[ObjectChange]:
    """Return the change of a deleted key, or nothing when nothing was deleted."""
    if done is None:
        return []
    marked = isinstance(done, DeleteResult) and done.marker and version_id is None
    return [ObjectChange(MARKED if marked else DELETED, bucket_id, key, done.seq, done.version_id, done.modified)]


def deletes(done: Sequence[Any], bucket_id: int, entries: Sequence[Deletion]) -> list[ObjectChange]:
    """Return the changes of many deleted keys."""
    found = zip(done, entries, strict=True)
    return [
        change
        for one, entry in found
        if not isinstance(one, Exception)
        for change in delete(one, bucket_id, entry.key, entry.version_id)
    ]


def expire(
    done: Sequence[bool] | None, bucket_id: int, settings: str, entries: Sequence[ExpireEntry]
) -> list[ObjectChange]:
    """Return the changes of versions that lifecycle rules removed."""
    return [
        ObjectChange(
            EXPIRED if entry.states == OBJECT else DELETED, bucket_id, entry.key, entry.seq, entry.version_id, 0
        )
        for entry, gone in zip(entries, done or (), strict=done is not None)
        if gone
    ]


def reclass(
    done: Sequence[int] | None, bucket: Bucket, settings: str | None, entries: Sequence[TransitionEntry]
) -> list[ObjectChange]:
    """Return the changes of versions that lifecycle rules moved to another storage class."""
    return [
        ObjectChange(
            STORAGE_CLASS_CHANGED,
            bucket.id,
            entry.key,
            seq,
            entry.version_id,
            0,
            entry.size,
            entry.etag,
            entry.storage_class,
        )
        for entry, seq in zip(entries, done or (), strict=done is not None)
        if seq
    ]


def set_headers(done: int, bucket_id: int, key: str, *_: object) -> list[ObjectChange]:
    """Return the change of a version with other headers."""
    return [ObjectChange(RENEWED, bucket_id, key, done, "", 0)]


def append(
    done: CommitResult, bucket_id: int, key: str, found: object, new: NewVersion, *_: object
) -> list[ObjectChange]:
    """Return the change of a version with more bytes."""
    return put(done, bucket_id, key, new)


def rename(done: CommitResult | None, bucket_id: int, rename: Rename) -> list[ObjectChange]:
    """Return the changes of an object with another key.

    The event builder knows its size and ETag.
    """
    if done is None:
        return []
    made = ObjectChange(PUT, bucket_id, rename.target, done.seq, done.version_id, done.modified)
    return [made, made._replace(kind=DELETED, key=rename.source)]
