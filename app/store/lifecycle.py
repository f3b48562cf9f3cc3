"""Lifecycle rules: which versions of which objects are due to go, and when. No I/O: see `app.jobs.lifecycle`.

"Lifecycle configuration elements" and "How S3 Lifecycle calculates how long an object has been noncurrent", Amazon S3
User Guide. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from app.index.rows import Bucket
from app.store.transitions import RANKS, Transition, is_due, large_enough, may_move

SETTING = "lifecycle"
"""Name of the bucket's setting: a JSON object of `rules` and `minimum`."""
MARK = f'"{SETTING}":'
"""In the settings of a bucket that has rules: a name with a quote before it stands nowhere else in JSON."""
REAL_DAY = 86_400
TAGS = "tags"
"""Name in a row's headers, as `app.s3.metadata` writes them."""


class Rule(NamedTuple):
    """One rule; None where it says nothing. What it is for stands in `form` and the four fields after it."""

    id: str
    enabled: bool
    form: str
    """How the document writes what it is for: BASE, FILTER, or the one child of its Filter."""
    prefix: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    larger: int | None = None
    """Of more bytes than these only."""
    smaller: int | None = None
    """Of fewer bytes than these only."""
    days: int | None = None
    """Current objects go so many days after they were written."""
    date: int | None = None
    """Current objects go from then on."""
    markers: bool | None = None
    """Delete markers go that are the only version left of their key."""
    noncurrent_days: int | None = None
    """Older versions go so many days after a newer one took their place."""
    newer: int | None = None
    """So many of a key's newest older versions stay all the same."""
    abort_days: int | None = None
    """Uploads that nobody completes end so many days after they were begun."""
    transitions: tuple[Transition, ...] = ()
    """Current objects move to other storage classes."""
    older_transitions: tuple[Transition, ...] = ()
    """Older versions do."""

    def covers(self, key: str, size: int, tags: Mapping[str, str]) -> bool:
        """Whether the rule is for an object."""
        return (
            key.startswith(self.prefix or "")
            and (self.larger is None or size > self.larger)
            and (self.smaller is None or size < self.smaller)
            and all(tags.get(name) == value for name, value in self.tags)
        )

    @property
    def of_versions(self) -> bool:
        """It does something to versions, not only to uploads."""
        taken = any(value is not None for value in (self.days, self.date, self.markers, self.noncurrent_days))
        return taken or bool(self.transitions or self.older_transitions)

    @property
    def of_keys_only(self) -> bool:
        """It asks nothing that only an object has."""
        return not self.tags and self.larger is None and self.smaller is None


TRANSITIONS = ("transitions", "older_transitions")
"""Those fields of a rule that are transitions."""
BASE, FILTER = "Rule", "Filter"
"""`Rule.form`: a Prefix of its own, as the first version of the API had it; an empty Filter."""


class Rules(NamedTuple):
    """What a bucket's setting says."""

    rules: tuple[Rule, ...] = ()
    minimum: str = ""
    """`x-amz-transition-default-minimum-object-size`, as it was given."""

    @property
    def enabled(self) -> list[Rule]:
        """Those that hold."""
        return [rule for rule in self.rules if rule.enabled]

    @property
    def need_tags(self) -> bool:
        """Whether any of them asks for an object's tags."""
        return any(rule.tags for rule in self.enabled)


NONE = Rules()


def rules_of(bucket: Bucket) -> Rules:
    """The rules of a bucket; NONE for most."""
    return _parsed(bucket.settings) if MARK in bucket.settings else NONE


@lru_cache(maxsize=1024)
def _parsed(settings: str) -> Rules:
    found = orjson.loads(settings).get(SETTING)
    if found is None:
        return NONE
    return Rules(tuple(map(_rule, found["rules"])), found["minimum"])


def _rule(one: dict[str, Any]) -> Rule:
    moves = {name: tuple(Transition(*move) for move in one.get(name, ())) for name in TRANSITIONS}
    return Rule(**{**one, **moves, "tags": tuple(map(tuple, one.get("tags", ())))})


def to_setting(rules: Rules) -> dict[str, Any]:
    """Rules as they are stored."""
    described = [
        {name: value for name, value in rule._asdict().items() if value is not None and value != ()}
        for rule in rules.rules
    ]
    for rule in described:
        rule.update({name: list(map(list, rule[name])) for name in TRANSITIONS if name in rule})
    return {"rules": described, "minimum": rules.minimum}


LAST_DAY = 253_402_214_400_000
"""The last midnight that a date of HTTP or XML can tell: 9999-12-31, in milliseconds since the epoch."""


class Day(NamedTuple):
    """How long a day is."""

    seconds: int = REAL_DAY
    """Fewer are for tests. Such a day has no midnight, so that nothing is rounded."""

    def after(self, since: int, days: int) -> int:
        """So many days after a moment, rounded up to midnight UTC as S3 does; never behind `LAST_DAY`."""
        length = self.seconds * 1000
        due = min(since + days * length, LAST_DAY)
        return due if self.seconds != REAL_DAY else -(-due // length) * length

    @property
    def period(self) -> int:
        """Milliseconds between two looks at a bucket: what is due changes at midnight."""
        return self.seconds * 1000 if self.seconds == REAL_DAY else max(self.seconds * 100, 1000)


class Stored(NamedTuple):
    """A version as far as rules ask for it."""

    seq: int
    key: str
    version_id: str
    state: int
    """See the schema."""
    size: int
    modified: int
    headers: str
    """Empty unless rules need tags."""
    storage_class: str = "STANDARD"


OBJECT, OLDER, MARKER = "object", "older", "marker"
"""What is due: the current object of a key, an older version or an older delete marker, or a delete marker that is all
that is left."""
TRANSITION, OLDER_TRANSITION = "transition", "older-transition"
"""What is due to move to another storage class: the current object of a key, or an older version."""


class Due(NamedTuple):
    """A version that is due to go, or to move."""

    kind: str
    key: str
    version_id: str
    seq: int
    storage_class: str = ""
    """Where it moves to."""


def tags_of(headers: str) -> Mapping[str, str]:
    """The tags in a row's headers."""
    found: dict[str, str] = orjson.loads(headers).get(TAGS, {}) if f'"{TAGS}":' in headers else {}
    return found


def expiry(
    rules: Iterable[Rule], day: Day, key: str, size: int, modified: int, tags: Mapping[str, str]
) -> tuple[int, str] | None:
    """When a current object goes, and by which rule: the earliest."""
    found = [
        (when, rule.id)
        for rule in rules
        if rule.enabled and (when := _when(rule, day, modified)) is not None and rule.covers(key, size, tags)
    ]
    return min(found, key=lambda one: one[0], default=None)


def abort(rules: Iterable[Rule], day: Day, key: str, initiated: int) -> tuple[int, str] | None:
    """When an upload that nobody completes ends, and by which rule: the earliest."""
    found = [
        (day.after(initiated, rule.abort_days), rule.id)
        for rule in rules
        if rule.enabled and rule.abort_days is not None and key.startswith(rule.prefix or "")
    ]
    return min(found, key=lambda one: one[0], default=None)


def _when(rule: Rule, day: Day, modified: int) -> int | None:
    return rule.date if rule.days is None else day.after(modified, rule.days)


class Judge:
    """Says of versions, given by key and of a key the newest first, which are due.

    A version that is current or a delete marker that is newest is judged once the next version is known: whether a
    delete marker is alone is known only then. `end` tells that there is none.

    Objects move to those of the storage `classes` only; `keeps` says that an object that expires stays as a version.
    """

    def __init__(self, rules: Rules, day: Day, now: int, classes: Collection[str] = (), *, keeps: bool = False) -> None:
        self._rules = rules.enabled
        self._minimum = rules.minimum
        self._classes = classes
        self._keeps = keeps
        self._day = day
        self._now = now
        self._last: Stored | None = None
        self._lone: Stored | None = None
        """A newest delete marker that may be all that is left of its key."""
        self._newer = 0
        """How many older objects of the key were seen."""

    def take(self, version: Stored, *, newest: bool, marker: bool) -> Iterator[Due]:
        """The next version: whether it is the newest of its key, and a delete marker."""
        lone, self._lone = self._lone, None
        if lone is not None and lone.key != version.key:
            yield from self._judge_marker(lone)
        before, self._last = self._last, version
        if before is None or before.key != version.key:
            self._newer = 0
        if newest:
            if marker:
                self._lone = version
            else:
                expired = self._is_expired(version)
                if not expired or self._keeps:  # what is deleted for good goes before, a delete marker comes after
                    yield from self._move(version, version.modified, TRANSITION)
                if expired:
                    yield Due(OBJECT, version.key, version.version_id, version.seq)
        elif before is not None and before.key == version.key:
            if self._is_old(version, before.modified, marker=marker):
                yield Due(OLDER, version.key, version.version_id, version.seq)
            elif not marker:
                yield from self._move(version, before.modified, OLDER_TRANSITION)
            self._newer += not marker

    def end(self) -> Iterator[Due]:
        """No version is left."""
        lone, self._lone, self._last = self._lone, None, None
        if lone is not None:
            yield from self._judge_marker(lone)

    def _is_expired(self, version: Stored) -> bool:
        tags = tags_of(version.headers)
        found = expiry(self._rules, self._day, version.key, version.size, version.modified, tags)
        return found is not None and found[0] <= self._now

    def _is_old(self, version: Stored, since: int, *, marker: bool) -> bool:
        for rule in self._rules:
            if rule.noncurrent_days is None or self._newer < (rule.newer or 0):
                continue
            if marker and not rule.of_keys_only:
                continue
            if not rule.covers(version.key, version.size, tags_of(version.headers)):
                continue
            if self._day.after(since, rule.noncurrent_days) <= self._now:
                return True
        return False

    def _move(self, version: Stored, since: int, kind: str) -> Iterator[Due]:
        """The coldest class that a version is due for. What was made older at `since` counts from then."""
        found = []
        for rule in self._rules if self._classes else ():
            moves = rule.transitions if kind == TRANSITION else rule.older_transitions
            if not moves or not rule.covers(version.key, version.size, tags_of(version.headers)):
                continue
            for move in moves:
                new = move.storage_class
                if (
                    new in self._classes
                    and may_move(version.storage_class, new)
                    and (kind == TRANSITION or self._newer >= (move.newer or 0))
                    and large_enough(rule, self._minimum, new, version.size)
                    and is_due(move, self._day, since, self._now)
                ):
                    found.append(new)
        if found:
            yield Due(kind, version.key, version.version_id, version.seq, max(found, key=RANKS.__getitem__))

    def _judge_marker(self, version: Stored) -> Iterator[Due]:
        for rule in self._rules:
            when = version.modified if rule.markers else _when(rule, self._day, version.modified)
            if (
                when is not None
                and when <= self._now
                and rule.of_keys_only
                and version.key.startswith(rule.prefix or "")
            ):
                yield Due(MARKER, version.key, version.version_id, version.seq)
                return


def ranges(rules: Iterable[Rule]) -> list[str]:
    """The prefixes of all keys that rules are for, none of which begins with another."""
    found: list[str] = []
    for prefix in sorted({rule.prefix or "" for rule in rules}):
        if not found or not prefix.startswith(found[-1]):
            found.append(prefix)
    return found
