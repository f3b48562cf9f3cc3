"""Changes of keys, from the result and arguments of a transaction.

See `app.index.engine.outbox`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.engine.outbox import (
    DELETED,
    EXPIRED,
    MARKED,
    PUT,
    RENEWED,
    STORAGE_CLASS_CHANGED,
    ObjectChange,
)
from sluice_s3.app.index.lifecycle.rows import OBJECT, ExpireEntry
from sluice_s3.app.index.multipart.rows import Upload
from sluice_s3.app.index.objects.rows import CommitResult, NewVersion, Rename
from sluice_s3.app.index.relocation.rows import TransitionEntry
from sluice_s3.app.index.versioning.rows import DeleteResult, Deletion


def put(result: CommitResult, bucket_id: int, key: str, new: NewVersion, *_: object) -> list[ObjectChange]:
    """Return the change of a new version."""
    return [ObjectChange(PUT, bucket_id, key, result.seq, result.version_id, result.modified, new.size, new.etag)]


def copy(
    result: CommitResult, source_seq: int, bucket_id: int, key: str, new: NewVersion, *_: object
) -> list[ObjectChange]:
    """Return the change of a new version that has the bytes of another one."""
    return put(result, bucket_id, key, new)


def complete(result: CommitResult, upload: Upload, chosen: object, new: NewVersion, *_: object) -> list[ObjectChange]:
    """Return the change of a new version made of parts."""
    return put(result, upload.bucket_id, upload.key, new)


def delete(
    result: CommitResult | DeleteResult | None, bucket_id: int, key: str, version_id: str | None = None, *_: object
) -> list[ObjectChange]:
    """Return the change of a deleted key, or nothing when nothing was deleted."""
    if result is None:
        return []
    marked = isinstance(result, DeleteResult) and result.marker and version_id is None
    return [ObjectChange(MARKED if marked else DELETED, bucket_id, key, result.seq, result.version_id, result.modified)]


def deletes(result: Sequence[Any], bucket_id: int, entries: Sequence[Deletion]) -> list[ObjectChange]:
    """Return the changes of many deleted keys."""
    results = zip(result, entries, strict=True)
    return [
        change
        for outcome, entry in results
        if not isinstance(outcome, Exception)
        for change in delete(outcome, bucket_id, entry.key, entry.version_id)
    ]


def expire(
    result: Sequence[bool] | None, bucket_id: int, settings: str, entries: Sequence[ExpireEntry]
) -> list[ObjectChange]:
    """Return the changes of versions that lifecycle rules removed."""
    return [
        ObjectChange(
            EXPIRED if entry.states == OBJECT else DELETED, bucket_id, entry.key, entry.seq, entry.version_id, 0
        )
        for entry, removed in zip(entries, result or (), strict=result is not None)
        if removed
    ]


def reclass(
    result: Sequence[int] | None, bucket: Bucket, settings: str | None, entries: Sequence[TransitionEntry]
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
        for entry, seq in zip(entries, result or (), strict=result is not None)
        if seq
    ]


def set_headers(result: int, bucket_id: int, key: str, *_: object) -> list[ObjectChange]:
    """Return the change of a version with other headers."""
    return [ObjectChange(RENEWED, bucket_id, key, result, "", 0)]


def append(
    result: CommitResult, bucket_id: int, key: str, current: object, new: NewVersion, *_: object
) -> list[ObjectChange]:
    """Return the change of a version with more bytes."""
    return put(result, bucket_id, key, new)


def rename(result: CommitResult | None, bucket_id: int, rename: Rename) -> list[ObjectChange]:
    """Return the changes of an object with another key.

    The event builder knows its size and ETag.
    """
    if result is None:
        return []
    created = ObjectChange(PUT, bucket_id, rename.target, result.seq, result.version_id, result.modified)
    return [created, created._replace(kind=DELETED, key=rename.source)]
