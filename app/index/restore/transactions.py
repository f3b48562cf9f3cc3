"""Restores of archived versions, and the notes of them."""

from __future__ import annotations

from sluice_s3.app.index.meta.statements import FORGET_NOTE, MOVE_NOTE, SET_META
from sluice_s3.app.index.objects.transactions import set_headers
from sluice_s3.app.index.restore.state import (
    DueRestore,
    RestoreState,
    restore_meta_key,
    restore_meta_value,
    with_restore,
)
from sluice_s3.app.index.sql.transaction import Transaction


def request_restore(
    bucket_id: int, key: str, version_id: str, seq: int, headers: str, restore: RestoreState
) -> Transaction[int]:
    """Set the restore state of the version `seq`, and note when to check it.

    Returns its new number. `headers` are its current headers. Raises ConditionalRequestConflict when the version has
    changed.
    """
    number = yield from set_headers(bucket_id, key, seq, with_restore(headers, restore))
    yield SET_META, (restore_meta_key(bucket_id, version_id, key), restore_meta_value(restore.until))
    return number


def reschedule_restore(pending: DueRestore, value: str) -> Transaction[None]:
    """Set the time of the next check of an archived version.

    An empty `value` removes it. Does nothing if a newer note has replaced `pending`.
    """
    if value:
        yield MOVE_NOTE, (value, pending.name, pending.value)
    else:
        yield FORGET_NOTE, (pending.name, pending.value)
