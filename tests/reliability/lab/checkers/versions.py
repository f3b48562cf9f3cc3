"""Is what ListObjectVersions shows of a key possible? Asked while nobody changes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tests.reliability.lab.checkers.histories import Kind, Operation, Outcome, Removal


class Version(NamedTuple):
    """One entry, the newest of its key first. A delete marker has no ETag."""

    id: str
    etag: str
    is_latest: bool
    modified: str = ""
    """Its time as text that sorts as the times do."""


def faults(
    seen: Sequence[Version],
    history: Sequence[Operation],
    removals: Sequence[Removal] = (),
    locked: Mapping[str, str] | None = None,
) -> list[tuple[str, str]]:
    """What in the versions of one key nothing explains: lost, wrong or ghost, and words. `locked` are ETags by id."""
    changes = [one for one in history if one.kind is not Kind.READ]
    return [
        *_missing(seen, changes, removals, locked or {}),
        *_unexplained(seen, changes, removals),
        *_disordered(seen, changes),
    ]


def _missing(
    seen: Sequence[Version], changes: Sequence[Operation], removals: Sequence[Removal], locked: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Every version that was acknowledged is there as it was, unless its DELETE may have taken place."""
    there = {one.id: one for one in seen}
    maybe = {one.version for one in removals if one.outcome in (Outcome.DONE, Outcome.UNKNOWN)}
    wrong = []
    for one in changes:
        if one.outcome is not Outcome.DONE or not one.version:
            continue
        found = there.get(one.version)
        if found is None and one.version not in maybe:
            wrong.append(("lost", f"version {one.version} of {one.who} is gone"))
        elif found is not None and found.etag != one.value:
            wrong.append(("wrong", f"version {one.version} of {one.who} has {found.etag}, not {one.value}"))
    for version, etag in locked.items():
        found = there.get(version)
        if found is None:
            wrong.append(("lost", f"the locked version {version} ({etag}) is gone"))
    for one in removals:
        if one.outcome is Outcome.DONE and one.version in locked:
            wrong.append(("lost", f"the locked version {one.version} was removed, with 204"))
    return wrong


def _unexplained(
    seen: Sequence[Version], changes: Sequence[Operation], removals: Sequence[Removal]
) -> list[tuple[str, str]]:
    """Each version was acknowledged, or is one that an operation without an answer may have made, once."""
    known = {one.version for one in changes if one.outcome is Outcome.DONE and one.version}
    maybe = Counter(one.value for one in changes if one.is_open)
    gone = {one.version for one in removals if one.outcome is Outcome.DONE}
    wrong = []
    for one in seen:
        if one.id in gone:
            wrong.append(("ghost", f"version {one.id} was removed and is there"))
        elif one.id not in known:
            if not maybe[one.etag]:
                wrong.append(("ghost", f"nobody made version {one.id} ({one.etag or 'a marker'})"))
            maybe[one.etag] -= 1
    return wrong


def _disordered(seen: Sequence[Version], changes: Sequence[Operation]) -> list[tuple[str, str]]:
    """The first is the latest and the only one; what was begun after another one's answer comes before it."""
    wrong = []
    latest = [one.is_latest for one in seen]
    if seen and latest != [True, *[False] * (len(seen) - 1)]:
        wrong.append(("wrong", f"the latest should be the first: {latest}"))
    place = {one.id: number for number, one in enumerate(seen)}
    known = [one for one in changes if one.version in place and one.outcome is Outcome.DONE]
    for newer in known:
        for older in known:
            if older.ended < newer.begun and place[older.version] < place[newer.version]:
                wrong.append(("wrong", f"{newer.version} of {newer.who} is listed as older than {older.version}"))
    times = [one.modified for one in seen]
    if times != sorted(times, reverse=True):
        wrong.append(("wrong", f"times do not follow the order: {times}"))
    return wrong
