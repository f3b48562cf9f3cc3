"""The ids of versions: opaque to clients, but they tell where the version stands among those of its key.

An id is the version's time and the number of the commit sequence that it was made with, in hex: unique in the store for
ever. Versions of one key have times that grow with their numbers, so that an id still tells the place of a version that
is gone, from which a listing goes on.
"""

from __future__ import annotations

from app.index.rows import NULL_VERSION

TIME_DIGITS, SEQ_DIGITS = 12, 16
DIGITS = frozenset("0123456789abcdef")


def made(modified: int, seq: int) -> str:
    """The id of a version that is made now."""
    return f"{modified:0{TIME_DIGITS}x}{seq:0{SEQ_DIGITS}x}"


def time_of(version_id: str) -> int | None:
    """The time (milliseconds) of the version of that id, None when it is no id that `made` can give."""
    if len(version_id) != TIME_DIGITS + SEQ_DIGITS or not DIGITS.issuperset(version_id):
        return None
    return int(version_id[:TIME_DIGITS], 16)


def is_possible(version_id: str) -> bool:
    """Whether a version can have this id."""
    return version_id == NULL_VERSION or time_of(version_id) is not None
