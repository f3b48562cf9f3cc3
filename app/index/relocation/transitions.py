"""Transitions: change storage class and place of versions in one step.

Each applies only to an unchanged version.
"""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.meta.statements import FORGET_NOTE, SET_META
from sluice_s3.app.index.reclaim.refcounts import drop_reference
from sluice_s3.app.index.relocation.body_relocation import BodyRelocation
from sluice_s3.app.index.relocation.rows import Archive, TransitionEntry
from sluice_s3.app.index.relocation.statements import BUCKET_STATE, SET_STORAGE_CLASS
from sluice_s3.app.index.sql.transaction import DRAW, Transaction
from sluice_s3.app.index.versioning.transactions import VersionHeader, stored_version


def transition_versions(
    bucket: Bucket, settings: str | None, entries: Sequence[TransitionEntry]
) -> Transaction[list[int] | None]:
    """Give each unchanged version its new class and places.

    Returns its new number, 0 for a changed version. The new number makes the transition a later change for the
    journals. The version id and LastModified stay. No other row may hold the blobs at the new places.

    Returns None, and changes nothing, when the bucket's settings are not `settings` (unless None), or when a move of
    the bucket began or ended since it was read: a finished move does not look again for data that arrives on the old
    store.
    """
    rows = yield BUCKET_STATE, (bucket.id,)
    if not rows or settings not in (None, rows[0][0]):
        return None
    if tuple(rows[0][1:]) != (bucket.store, bucket.source, bucket.moved):
        return None
    numbers = []
    referenced: set[str] = set()
    for entry in entries:
        current = yield from stored_version(bucket.id, entry.key, entry.version_id)
        if (
            current is None
            or (current.seq, current.body) != (entry.seq, entry.body)
            or current.state not in entry.states
        ):
            numbers.append(0)
        else:
            numbers.append((yield from _transition(bucket.id, entry, current, referenced)))
    return numbers


def _transition(
    bucket_id: int, entry: TransitionEntry, current: VersionHeader, referenced: set[str]
) -> Transaction[int]:
    seq: int = yield DRAW
    body = current.body
    relocation = BodyRelocation(
        bucket_id, entry.key, entry.storage_class, current, (seq, current.version_id, current.modified)
    )
    if entry.archive is Archive.LEFT:
        body = yield from relocation.restore()
    elif entry.locators:
        body = yield from relocation.relocate(entry.locators, referenced, keep=entry.archive is Archive.KEPT)
        if not body:
            return 0
    headers = current.headers if entry.headers is None else entry.headers
    yield SET_STORAGE_CLASS, (seq, headers, entry.storage_class, body, current.seq)
    if body != current.body:
        yield from drop_reference(current.body)
    if entry.note is not None and entry.note.value:
        yield SET_META, (entry.note.name, entry.note.value)
    elif entry.note is not None:
        yield FORGET_NOTE, (entry.note.name, entry.note.seen)
    return seq
