"""Which versions of a key the destination lacks. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sluice_s3.app.transfer.bodies import is_md5, part_count
from sluice_s3.app.transfer.listing import Entry

TOLERANCE_MS = 1000
"""Versions of one second at a source that has no finer times get times 1 ms apart; they move when one is removed."""


class Missing(NamedTuple):
    """A version to copy, and its time at the destination in milliseconds since the epoch."""

    entry: Entry
    modified: int


class Plan(NamedTuple):
    """What is to be done for one key."""

    missing: list[Missing]
    """Oldest first."""
    present: int
    """Versions that are already there."""
    too_late: list[Entry]
    """Versions that are missing, but have a newer one there: none can be put before it."""


def plan_dated(source: Sequence[Entry], target: Sequence[Entry]) -> Plan:
    """Compare where versions get their own time, which tells them apart.

    All versions are oldest first. The source's may have equal times.
    """
    unmatched = list(target)
    missing: list[Missing] = []
    too_late: list[Entry] = []
    newest = target[-1].modified if target else 0
    before = 0
    for entry in source:
        before = modified = max(entry.modified, before + 1)
        found = _find(entry, modified, unmatched)
        if found is not None:
            unmatched.remove(found)
        elif modified > newest:
            missing.append(Missing(entry, modified))
        else:
            too_late.append(entry)
    return Plan(missing, len(source) - len(missing) - len(too_late), too_late)


def _find(entry: Entry, modified: int, entries: Sequence[Entry]) -> Entry | None:
    alike = [one for one in entries if (one.marker, one.size) == (entry.marker, entry.size)]
    exact = [one for one in alike if one.modified == modified]
    near = [one for one in alike if abs(one.modified - entry.modified) < TOLERANCE_MS and one.etag == entry.etag]
    return next(iter(exact + near), None)


def plan_aligned(source: Sequence[Entry], target: Sequence[Entry], *, size_only: bool = False) -> Plan:
    """Compare where versions get the time of their copy: by their order and what they are.

    The longest end of `target` that equals the first versions of `source`, or versions of it that follow each other,
    is what came before.
    """
    best = length = 0
    for end in range(1, len(source) + 1):
        run = 0
        while run < min(end, len(target)) and is_alike(source[end - 1 - run], target[-1 - run], size_only):
            run += 1
        # all of the source up to here, or all of the target: else the versions only happen to be alike
        if run > length and run in (end, len(target)):
            best, length = end, run
    return Plan([Missing(entry, entry.modified) for entry in source[best:]], best, [])


def plan_current(source: Sequence[Entry], target: Sequence[Entry], *, dated: bool, size_only: bool = False) -> Plan:
    """Compare the objects only: older versions and deletions are not copied."""
    if not source or source[-1].marker:
        return Plan([], 0, [])
    entry, here = source[-1], target[-1] if target else None
    missing = Plan([Missing(entry, entry.modified)], 0, [])
    if here is None or here.marker:
        return missing if here is None or not dated or here.modified < entry.modified else Plan([], 0, [entry])
    # some servers give objects of parts an ETag of their own form; the times tell whether one was replaced
    own_form = bool(part_count(entry.etag)) != bool(part_count(here.etag))
    alike = is_alike(entry, here, size_only or own_form)
    # an object of the same bytes that is newer at the source has other metadata
    if alike and entry.modified <= here.modified:
        return Plan([], 1, [])
    if dated and entry.modified <= here.modified:
        return Plan([], 1, []) if _find(entry, entry.modified, [here]) else Plan([], 0, [entry])
    return missing


def is_alike(entry: Entry, other: Entry, size_only: bool = False) -> bool:
    """Return whether two entries have the same bytes, as far as sizes and comparable ETags tell."""
    if (entry.marker, entry.size) != (other.marker, other.size):
        return False
    comparable = all(is_md5(one.etag) or part_count(one.etag) for one in (entry, other))
    return entry.marker or size_only or not comparable or entry.etag == other.etag
