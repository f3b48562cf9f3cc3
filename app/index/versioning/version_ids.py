"""Version ids: opaque to clients, but ordered among those of their key.

An id is the version's time and its commit sequence number, in hex. It is unique in the store for ever. Versions of one
key have times that grow with their numbers, so a listing can continue after the id of a removed version.
"""

from __future__ import annotations

from sluice_s3.app.index.objects.rows import NULL_VERSION

TIME_DIGITS, SEQ_DIGITS = 12, 16
DIGITS = frozenset("0123456789abcdef")


def new_version_id(modified: int, seq: int) -> str:
    """Return the id of a version that is created now.

    `modified` is in milliseconds since the epoch.
    """
    return f"{modified:0{TIME_DIGITS}x}{seq:0{SEQ_DIGITS}x}"


def time_of(version_id: str) -> int | None:
    """Return the time in a version id, in milliseconds since the epoch.

    Returns None for a text that `new_version_id` cannot return.
    """
    if len(version_id) != TIME_DIGITS + SEQ_DIGITS or not DIGITS.issuperset(version_id):
        return None
    return int(version_id[:TIME_DIGITS], 16)


def is_version_id(version_id: str) -> bool:
    """Return whether a version can have this id."""
    return version_id == NULL_VERSION or time_of(version_id) is not None
