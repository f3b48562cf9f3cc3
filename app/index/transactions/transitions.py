"""Transitions: change storage class and place of versions in one step.

Each applies only to an unchanged version.
"""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.index.rows import Bucket
from sluice_s3.app.index.sql.transaction import DRAW, Transaction
from sluice_s3.app.index.statements import SET_META
from sluice_s3.app.index.transactions.body_relocation import BodyRelocation
from sluice_s3.app.index.transactions.refcounts import drop_reference
from sluice_s3.app.index.transactions.versions import VersionHeader, stored_version
from sluice_s3.app.index.transition_rows import Archive, TransitionEntry
from sluice_s3.app.index.upkeep_statements import FORGET_NOTE
from sluice_s3.app.index.version_statements import FOUND_AS, RECLASS_VERSION


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
    rows = yield FOUND_AS, (bucket.id,)
    if not rows or settings not in (None, rows[0][0]):
        return None
    if tuple(rows[0][1:]) != (bucket.store, bucket.source, bucket.moved):
        return None
    answers = []
    referenced: set[str] = set()
    for entry in entries:
        found = yield from stored_version(bucket.id, entry.key, entry.version_id)
        if found is None or (found.seq, found.body) != (entry.seq, entry.body) or found.state not in entry.states:
            answers.append(0)
        else:
            answers.append((yield from _reclass(bucket.id, entry, found, referenced)))
    return answers


def _reclass(bucket_id: int, entry: TransitionEntry, found: VersionHeader, referenced: set[str]) -> Transaction[int]:
    seq: int = yield DRAW
    body = found.body
    made = BodyRelocation(bucket_id, entry.key, entry.storage_class, found, (seq, found.version_id, found.modified))
    if entry.archive is Archive.LEFT:
        body = yield from made.restore()
    elif entry.locators:
        body = yield from made.relocate(entry.locators, referenced, keep=entry.archive is Archive.KEPT)
        if not body:
            return 0
    headers = found.headers if entry.headers is None else entry.headers
    yield RECLASS_VERSION, (seq, headers, entry.storage_class, body, found.seq)
    if body != found.body:
        yield from drop_reference(found.body)
    if entry.note is not None and entry.note.value:
        yield SET_META, (entry.note.name, entry.note.value)
    elif entry.note is not None:
        yield FORGET_NOTE, (entry.note.name, entry.note.seen)
    return seq
