"""Object lock: what keeps a version from being removed, and what may still be changed of that.

The lock of a version stands in its row's headers, beside its ACL and its tags, and so in its blob's claim and in the
journals. "How S3 Object Lock works", Amazon S3 User Guide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from app.errors import ObjectLocked
from app.index.lock_clock import clock

GOVERNANCE, COMPLIANCE = "GOVERNANCE", "COMPLIANCE"
MODES = frozenset({GOVERNANCE, COMPLIANCE})
LOCK = "lock"
"""Name beside the headers, which none of these has."""
LOCKED = f'"{LOCK}":'
"""In a row's headers when there is a lock, or a tag of that name: `of` tells them apart."""
SETTING = "object_lock"
"""Name of the bucket's setting, which once made is never taken away: [mode, days, years], or [] without a default."""


class Lock(NamedTuple):
    """Retention and legal hold of a version."""

    mode: str = ""
    """One of MODES, or empty without a retention."""
    until: int = 0
    """Milliseconds since the epoch: when the retention ends."""
    hold: bool | None = None
    """None when it never had a legal hold."""


NONE = Lock()
UNREADABLE = Lock(COMPLIANCE, 1 << 62, True)
"""What is taken for a lock that cannot be read."""


def of(headers: str) -> Lock:
    """The lock in a row's headers; NONE for most."""
    if LOCKED not in headers:
        return NONE
    try:
        row = orjson.loads(headers)
        return _lock(row[LOCK]) if LOCK in row else NONE
    except (ValueError, TypeError, KeyError):
        return UNREADABLE


def _lock(found: Any) -> Lock:
    mode, until, hold = found
    if mode not in MODES | {""} or type(until) is not int or hold not in (None, True, False):
        raise ValueError
    return Lock(mode, until, hold)


def retains(lock: Lock) -> bool:
    """Whether its retention has not ended."""
    return bool(lock.mode) and lock.until > clock.now_ms()


def check_removal(headers: str, *, bypass: bool = False) -> None:
    """Raises ObjectLocked for a version that may not be removed; `bypass` passes GOVERNANCE, and nothing else."""
    lock = of(headers)
    if lock is NONE:
        return
    if lock.hold or (retains(lock) and not (bypass and lock.mode == GOVERNANCE)):
        raise ObjectLocked()


def check_change(before: str, after: str, *, bypass: bool = False) -> None:
    """Raises ObjectLocked unless a version's headers may become these others.

    A retention that has not ended may always end later. That it ends earlier, or becomes one of the other mode, is
    possible in GOVERNANCE with `bypass`. A legal hold can be put and taken at any time.
    """
    if LOCKED not in before:
        return
    old, new = of(before), of(after)
    if not retains(old) or (new.mode == old.mode and new.until >= old.until):
        return
    if old.mode != GOVERNANCE or not bypass:
        raise ObjectLocked()
