"""The advisory locks of an operation; see `app.index.engine.lock_keys`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sluice_s3.app.index.engine.declared import Write

GLOBAL_LOCK = 0x5_10_1CE
"""The advisory lock that every operation takes: most share it, some take it exclusively."""
MAX_LOCKS = 128
"""Maximum number of locks of one group. The locks of all groups must fit into the server's lock table
(`max_locks_per_transaction` times `max_connections`, 6400 by default)."""

Locks = tuple[int, ...]


def locks_of(write: Write[..., Any], arguments: tuple[Any, ...], more: Iterable[int] = ()) -> Locks | None:
    """Return the locks of an operation in ascending order.

    Returns None for an operation that must run alone.
    """
    declared = write.locks(*arguments)
    if declared is None:
        return None
    locks = sorted({*declared, *more})
    return tuple(locks) if len(locks) <= MAX_LOCKS else None
