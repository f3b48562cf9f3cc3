"""Restore state of archived versions, which are restored for a while.

A version's own headers have its state. So its blob's recovery header and the journals have it, too. Notes of the index
say which versions to check, and when. Notes may be wrong, the headers never are.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

RESTORE = "restore"
"""Name of the state beside the headers; no header has this name."""
MARK = f'"{RESTORE}":'
"""Text in a row's headers with a state, or with a tag of that name: `restore_state` distinguishes them."""
PREFIX = "restore:"
"""Prefix of the notes' names, before the bucket, the version and the key. Their values are times."""

ARCHIVE_OFFSET = 1 << 60
"""Where pieces in the archive begin while an object is restored, in bytes; no object is so large."""


class RestoreState(NamedTuple):
    """The restore state of a version.

    Times are in milliseconds since the epoch.
    """

    days: int
    tier: str
    asked: int
    until: int
    """When the restore ends; 0 while it has not begun."""


def restore_state(headers: str) -> RestoreState | None:
    """Return the restore state in a row's headers; None for most rows."""
    if MARK not in headers:
        return None
    state = orjson.loads(headers).get(RESTORE)
    return None if state is None else RestoreState(*state)


def with_restore(headers: str, restore: RestoreState | None) -> str:
    """Return the headers with this restore state.

    None removes the state.
    """
    if restore is None and MARK not in headers:
        return headers
    row = orjson.loads(headers)
    row.pop(RESTORE, None)
    if restore is not None:
        row[RESTORE] = list(restore)
    return orjson.dumps(row).decode()


class DueRestore(NamedTuple):
    """A due note, and the version that it names."""

    name: str
    value: str
    bucket_id: int
    version_id: str
    key: str


def restore_meta_key(bucket_id: int, version_id: str, key: str) -> str:
    """Return the name of a version's note."""
    return f"{PREFIX}{bucket_id}:{version_id}:{key}"


def restore_meta_value(at: int) -> str:
    """Return the value of a note that is due from `at` on.

    `at` is in milliseconds since the epoch.
    """
    return f"{at:015}"
