"""Storage classes that lifecycle rules move versions to: which of those that are due is taken, and when.

"Transitioning objects using Amazon S3 Lifecycle", Amazon S3 User Guide. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from app.store.lifecycle import Day, Rule

RANKS = {
    "STANDARD": 0,
    "REDUCED_REDUNDANCY": 0,
    "STANDARD_IA": 1,
    "INTELLIGENT_TIERING": 2,
    "ONEZONE_IA": 3,
    "GLACIER_IR": 4,
    "GLACIER": 5,
    "DEEP_ARCHIVE": 6,
}
"""All classes; objects move down this waterfall only."""
ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Classes whose objects must be restored before they can be read."""
LEAST_SIZE = 128 * 1024
"""Bytes under which objects stay where they are, unless a rule speaks of sizes itself."""
VARIES = "varies_by_storage_class"
"""`x-amz-transition-default-minimum-object-size`: archives take objects of every size."""


class Transition(NamedTuple):
    """One transition of a rule. Either `days` or `date` is there."""

    storage_class: str
    days: int | None = None
    """Days after the object was written, or after a newer version took its place."""
    date: int | None = None
    newer: int | None = None
    """Of noncurrent versions: so many of a key's newest stay all the same."""


def may_move(old: str, new: str) -> bool:
    """Whether objects of a class may move to another one."""
    return RANKS.get(old, 0) < RANKS[new] and (old, new) != ("ONEZONE_IA", "GLACIER_IR")


def large_enough(rule: Rule, minimum: str, storage_class: str, size: int) -> bool:
    """Whether an object may move to a class for its size; what a rule says of sizes goes over the default."""
    if rule.larger is not None or rule.smaller is not None or size >= LEAST_SIZE:
        return True
    return minimum == VARIES and storage_class in ARCHIVES


def is_due(transition: Transition, day: Day, since: int, now: int) -> bool:
    """Whether the time of a transition has come for what was written, or made older, at `since`."""
    when = transition.date if transition.days is None else day.after(since, transition.days)
    return when is not None and when <= now
