"""Object lock: protection of versions from removal, and from changes of the protection.

The lock of a version is in its row's headers, beside its ACL and its tags. So it is also in its blob's recovery header
and in the journals. "How S3 Object Lock works", Amazon S3 User Guide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from sluice_s3.app.errors import ObjectLocked
from sluice_s3.app.index.object_lock.retention_clock import clock

GOVERNANCE, COMPLIANCE = "GOVERNANCE", "COMPLIANCE"
MODES = frozenset({GOVERNANCE, COMPLIANCE})
LOCK = "lock"
"""Name of the lock beside the headers; no header has this name."""
LOCKED = f'"{LOCK}":'
"""Text in a row's headers with a lock, or with a tag of that name: `lock_of` distinguishes them."""
SETTING = "object_lock"
"""Name of the bucket's setting, which is never removed: [mode, days, years], or [] without a default."""


class Lock(NamedTuple):
    """Retention and legal hold of a version."""

    mode: str = ""
    """One of MODES, or empty without a retention."""
    until: int = 0
    """When the retention ends, in milliseconds since the epoch."""
    hold: bool | None = None
    """The legal hold; None when the version never had one."""


NONE = Lock()
UNREADABLE = Lock(COMPLIANCE, 1 << 62, True)
"""The substitute for an unreadable lock."""


def lock_of(headers: str) -> Lock:
    """Return the lock in a row's headers; `NONE` for most rows."""
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


def is_retained(lock: Lock) -> bool:
    """Return whether the retention of a lock has not ended."""
    return bool(lock.mode) and lock.until > clock.now_ms()


def require_removable(headers: str, *, bypass: bool = False) -> None:
    """Raise ObjectLocked for a locked version.

    `bypass` overrides a retention of GOVERNANCE, and nothing else.
    """
    lock = lock_of(headers)
    if lock is NONE:
        return
    if lock.hold or (is_retained(lock) and not (bypass and lock.mode == GOVERNANCE)):
        raise ObjectLocked()


def require_changeable(before: str, after: str, *, bypass: bool = False) -> None:
    """Raise ObjectLocked unless a version's headers may change from `before` to `after`.

    A retention that has not ended may always be extended. In GOVERNANCE with `bypass`, it may also be shortened or get
    the other mode. A legal hold can be set and removed at any time.
    """
    if LOCKED not in before:
        return
    old, new = lock_of(before), lock_of(after)
    if not is_retained(old) or (new.mode == old.mode and new.until >= old.until):
        return
    if old.mode != GOVERNANCE or not bypass:
        raise ObjectLocked()
