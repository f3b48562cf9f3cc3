"""The advisory locks of an operation; see `app.index.engine.lock_keys`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sluice_s3.app.index.engine.declared import Write

GLOBAL_LOCK = 0x5_10_1CE
"""The lock that all take in common, and some alone."""
MAX_LOCKS = 128
"""Locks that one group takes at most: those of all groups must find room in the server's table
(`max_locks_per_transaction` times `max_connections`, 6400 unless changed)."""

Locks = tuple[int, ...]


def locks_of(write: Write[..., Any], arguments: tuple[Any, ...], also: Iterable[int] = ()) -> Locks | None:
    """Return the locks of an operation, in order; None for one that must be alone."""
    named = write.locks(*arguments)
    if named is None:
        return None
    found = sorted({*named, *also})
    return tuple(found) if len(found) <= MAX_LOCKS else None
