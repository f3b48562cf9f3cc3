"""Archived versions that somebody wants back, and the notes of them."""

from __future__ import annotations

from app.index.restores import Restore, note_name, note_value, with_restore
from app.index.statements import SET_META
from app.index.steps import Transaction
from app.index.transactions.objects import set_headers
from app.index.upkeep_statements import FORGET_NOTE, MOVE_NOTE


def ask_restore(
    bucket_id: int, key: str, version_id: str, seq: int, headers: str, restore: Restore
) -> Transaction[int]:
    """Give the version `seq`, whose headers are these, another state, and note when to look at it; its new number.

    Raises ConditionalRequestConflict when it has other headers by now.
    """
    number = yield from set_headers(bucket_id, key, seq, with_restore(headers, restore))
    yield SET_META, (note_name(bucket_id, version_id, key), note_value(restore.until))
    return number


def look_later(name: str, seen: str, value: str) -> Transaction[None]:
    """Look at what a note is about at another time, or never if that is empty; unless it was noted anew since."""
    if value:
        yield MOVE_NOTE, (value, name, seen)
    else:
        yield FORGET_NOTE, (name, seen)
