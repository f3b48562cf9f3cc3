"""Storage classes of lifecycle transitions: which due class is taken, and when.

Source: "Transitioning objects using Amazon S3 Lifecycle", Amazon S3 User Guide. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import NamedTuple

from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar

COLDNESS = {
    "STANDARD": 0,
    "REDUCED_REDUNDANCY": 0,
    "STANDARD_IA": 1,
    "INTELLIGENT_TIERING": 2,
    "ONEZONE_IA": 3,
    "GLACIER_IR": 4,
    "GLACIER": 5,
    "DEEP_ARCHIVE": 6,
}
"""All classes; objects only move down this waterfall."""
ARCHIVES = frozenset({"GLACIER", "DEEP_ARCHIVE"})
"""Classes whose objects must be restored before they can be read."""
MIN_SIZE_BYTES = 128 * 1024
"""Bytes below which objects do not move, unless the rule filters by size."""
VARIES_BY_CLASS = "varies_by_storage_class"
"""`x-amz-transition-default-minimum-object-size`: archives take objects of every size."""


class Transition(NamedTuple):
    """One transition of a rule. Either `days` or `date` is there."""

    storage_class: str
    days: int | None = None
    """Days after the object was written, or after a newer version replaced it."""
    date: int | None = None
    newer: int | None = None
    """Of noncurrent versions: number of a key's newest versions that do not move."""


def may_transition(old: str, new: str) -> bool:
    """Return whether objects of a class may move to another class."""
    return COLDNESS.get(old, 0) < COLDNESS[new] and (old, new) != ("ONEZONE_IA", "GLACIER_IR")


def large_enough(minimum: str, storage_class: str, size: int) -> bool:
    """Return whether an object is large enough to move to a class by a rule without sizes."""
    if size >= MIN_SIZE_BYTES:
        return True
    return minimum == VARIES_BY_CLASS and storage_class in ARCHIVES


def is_due(transition: Transition, day: LifecycleCalendar, since: int, now: int) -> bool:
    """Return whether a transition is due for what was written, or became noncurrent, at `since`."""
    when = transition.date if transition.days is None else day.after(since, transition.days)
    return when is not None and when <= now
