"""Expiration by lifecycle rules.

Each version goes only in the state in which it was evaluated, as by a DELETE.
"""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.statements import SETTINGS
from sluice_s3.app.index.lifecycle.rows import LONE, OBJECT, ExpireEntry
from sluice_s3.app.index.multipart.statements import UPLOAD_STATE
from sluice_s3.app.index.multipart.transactions import abort
from sluice_s3.app.index.objects.transactions import delete_version
from sluice_s3.app.index.schema.tables import OPEN
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.versioning.statements import CURRENT_OF, LIST_OTHERS_OF_KEY
from sluice_s3.app.index.versioning.transactions import remove_version, stored_version


def expire(bucket_id: int, settings: str, entries: Sequence[ExpireEntry]) -> Transaction[list[bool] | None]:
    """Remove each version that is still as it was evaluated.

    Returns for each whether it was removed. A current object is removed as by DELETE: where versions are kept, a delete
    marker takes its place. Returns None, and changes nothing, when the bucket's settings have changed. A locked version
    stays.
    """
    rows = yield SETTINGS, (bucket_id,)
    if not rows or rows[0][0] != settings:
        return None
    removed = []
    for entry in entries:
        try:
            removed.append((yield from _expire(bucket_id, entry)))
        except DomainError:  # raised before a write of this entry
            removed.append(False)
    return removed


def expire_uploads(bucket_id: int, settings: str, numbers: Sequence[int]) -> Transaction[int | None]:
    """Abort those of the uploads that are open, and return their number.

    Returns None as `expire` does.
    """
    rows = yield SETTINGS, (bucket_id,)
    if not rows or rows[0][0] != settings:
        return None
    ended = 0
    for number in numbers:
        state = yield UPLOAD_STATE, (number,)
        if state and state[0][0] == OPEN:
            yield from abort(number)
            ended += 1
    return ended


def _expire(bucket_id: int, entry: ExpireEntry) -> Transaction[bool]:
    key = entry.key
    if entry.states == OBJECT:
        rows = yield CURRENT_OF, (bucket_id, key)
        if not rows or rows[0][0] != entry.seq:
            return False
        return (yield from delete_version(bucket_id, key, None, None)) is not None
    current = yield from stored_version(bucket_id, key, entry.version_id)
    if current is None or current.seq != entry.seq or current.state not in entry.states:
        return False
    if entry.states == LONE and (yield LIST_OTHERS_OF_KEY, (bucket_id, key, current.modified, 1)):
        return False
    return (yield from remove_version(bucket_id, key, entry.version_id, None, bypass=False)) is not None
