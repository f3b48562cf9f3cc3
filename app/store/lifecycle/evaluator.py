"""Lifecycle rules: which versions of which objects are due, and when.

No I/O: see `app.jobs.lifecycle`. Sources: "Lifecycle configuration elements" and "How S3 Lifecycle calculates how long
an object has been noncurrent", Amazon S3 User Guide. Times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.lifecycle.storage_classes import COLDNESS, Transition, is_due, large_enough, may_transition

SETTING = "lifecycle"
"""Name of the bucket's setting: a JSON object of `rules` and `minimum`."""
MARK = f'"{SETTING}":'
"""Text in the settings of a bucket that has rules: a quoted name occurs nowhere else in JSON."""
TAGS = "tags"
"""Name in a row's headers, as `app.s3.wire.metadata` writes them."""


class Rule(NamedTuple):
    """One rule; a field is None where the rule is silent.

    `form` and the four fields after it say which objects it covers.
    """

    id: str
    enabled: bool
    form: str
    """The form of the filter in the document: BASE, FILTER, or the one child of its Filter."""
    prefix: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    larger: int | None = None
    """Only objects of more bytes than this."""
    smaller: int | None = None
    """Only objects of fewer bytes than this."""
    days: int | None = None
    """Days after which current objects expire."""
    date: int | None = None
    """Date from which current objects expire."""
    markers: bool | None = None
    """Whether to delete delete markers that are the only version left of their key."""
    noncurrent_days: int | None = None
    """Days after which noncurrent versions are deleted, counted from the version that replaced them."""
    newer: int | None = None
    """Number of a key's newest noncurrent versions to retain."""
    abort_days: int | None = None
    """Days after which incomplete uploads are aborted, counted from their start."""
    transitions: tuple[Transition, ...] = ()
    """Transitions of current objects to other storage classes."""
    older_transitions: tuple[Transition, ...] = ()
    """Transitions of noncurrent versions."""

    def covers(self, key: str, size: int, tags: Mapping[str, str]) -> bool:
        """Return whether the rule covers an object."""
        return (
            key.startswith(self.prefix or "")
            and (self.larger is None or size > self.larger)
            and (self.smaller is None or size < self.smaller)
            and all(tags.get(name) == value for name, value in self.tags)
        )

    @property
    def of_versions(self) -> bool:
        """Whether the rule acts on versions, not only on uploads."""
        taken = any(value is not None for value in (self.days, self.date, self.markers, self.noncurrent_days))
        return taken or bool(self.transitions or self.older_transitions)

    @property
    def of_keys_only(self) -> bool:
        """Whether the rule depends on the key only, not on the object."""
        return not self.tags and self.larger is None and self.smaller is None


TRANSITIONS = ("transitions", "older_transitions")
"""The fields of a rule that are transitions."""
BASE, FILTER = "Rule", "Filter"
"""`Rule.form`: a Prefix outside of a filter, as in the first version of the API; an empty Filter."""


class Rules(NamedTuple):
    """The lifecycle configuration of a bucket."""

    rules: tuple[Rule, ...] = ()
    minimum: str = ""
    """`x-amz-transition-default-minimum-object-size`, as the client sent it."""

    @property
    def enabled(self) -> list[Rule]:
        """The rules that are enabled."""
        return [rule for rule in self.rules if rule.enabled]

    @property
    def need_tags(self) -> bool:
        """Whether any rule needs an object's tags."""
        return any(rule.tags for rule in self.enabled)


NONE = Rules()


def rules_of(bucket: Bucket) -> Rules:
    """Return the rules of a bucket; NONE for most."""
    return _parsed(bucket.settings) if MARK in bucket.settings else NONE


@lru_cache(maxsize=1024)
def _parsed(settings: str) -> Rules:
    found = orjson.loads(settings).get(SETTING)
    if found is None:
        return NONE
    return Rules(tuple(map(_rule, found["rules"])), found["minimum"])


def _rule(fields: dict[str, Any]) -> Rule:
    moves = {name: tuple(Transition(*move) for move in fields.get(name, ())) for name in TRANSITIONS}
    return Rule(**{**fields, **moves, "tags": tuple(map(tuple, fields.get("tags", ())))})


def to_setting(rules: Rules) -> dict[str, Any]:
    """Return the stored form of rules."""
    described = [
        {name: value for name, value in rule._asdict().items() if value is not None and value != ()}
        for rule in rules.rules
    ]
    for rule in described:
        rule.update({name: list(map(list, rule[name])) for name in TRANSITIONS if name in rule})
    return {"rules": described, "minimum": rules.minimum}


class LifecycleVersion(NamedTuple):
    """The fields of a version that rules need."""

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
"""What is due: a current object, a noncurrent version or older delete marker, or a lone delete marker."""
TRANSITION, OLDER_TRANSITION = "transition", "older-transition"
"""What is due for a transition: the current object of a key, or a noncurrent version."""


class DueAction(NamedTuple):
    """A version that is due for deletion or a transition."""

    kind: str
    key: str
    version_id: str
    seq: int
    storage_class: str = ""
    """The target storage class of a transition."""
    rule: str = ""
    """The id of the rule."""
    size: int = 0
    """Bytes."""


def tags_of(headers: str) -> Mapping[str, str]:
    """Return the tags in a row's headers."""
    found: dict[str, str] = orjson.loads(headers).get(TAGS, {}) if f'"{TAGS}":' in headers else {}
    return found


def expiry(
    rules: Iterable[Rule], day: LifecycleCalendar, key: str, size: int, modified: int, tags: Mapping[str, str]
) -> tuple[int, str] | None:
    """Return when a current object expires and by which rule: the earliest."""
    found = [
        (when, rule.id)
        for rule in rules
        if rule.enabled and (when := _when(rule, day, modified)) is not None and rule.covers(key, size, tags)
    ]
    return min(found, key=lambda item: item[0], default=None)


def abort(rules: Iterable[Rule], day: LifecycleCalendar, key: str, initiated: int) -> tuple[int, str] | None:
    """Return when an incomplete upload is aborted and by which rule: the earliest."""
    found = [
        (day.after(initiated, rule.abort_days), rule.id)
        for rule in rules
        if rule.enabled and rule.abort_days is not None and key.startswith(rule.prefix or "")
    ]
    return min(found, key=lambda item: item[0], default=None)


def _when(rule: Rule, day: LifecycleCalendar, modified: int) -> int | None:
    return rule.date if rule.days is None else day.after(modified, rule.days)


class LifecycleEvaluator:
    """Evaluator of versions in key order, the newest of a key first.

    A current version or a newest delete marker is evaluated once the next version is known: only then is it clear
    whether a delete marker is alone. `end` states that there is no next version.

    Transitions go to the storage `classes` only; with `keeps` an object that expires stays as a noncurrent version.
    """

    def __init__(
        self, rules: Rules, day: LifecycleCalendar, now: int, classes: Collection[str] = (), *, keeps: bool = False
    ) -> None:
        self._rules = rules.enabled
        self._minimum = rules.minimum
        self._classes = classes
        self._keeps = keeps
        self._day = day
        self._now = now
        self._last: LifecycleVersion | None = None
        self._lone: LifecycleVersion | None = None
        """A newest delete marker that may be the only version left of its key."""
        self._newer = 0
        """Number of noncurrent objects of the key so far."""

    def take(self, version: LifecycleVersion, *, newest: bool, marker: bool) -> Iterator[DueAction]:
        """Evaluate the next version.

        `newest` and `marker` say whether it is its key's newest, and a delete marker.
        """
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
                expired = self._expired_by(version)
                if expired is None or self._keeps:  # a permanent deletion needs no move, a delete marker follows it
                    yield from self._move(version, version.modified, TRANSITION)
                if expired is not None:
                    yield _due(OBJECT, version, expired)
        elif before is not None and before.key == version.key:
            old = self._old_by(version, before.modified, marker=marker)
            if old is not None:
                yield _due(OLDER, version, old)
            elif not marker:
                yield from self._move(version, before.modified, OLDER_TRANSITION)
            self._newer += not marker

    def end(self) -> Iterator[DueAction]:
        """Evaluate what is pending: no version follows."""
        lone, self._lone, self._last = self._lone, None, None
        if lone is not None:
            yield from self._judge_marker(lone)

    def _expired_by(self, version: LifecycleVersion) -> str | None:
        """Return the id of the rule by which a current object is due to expire."""
        tags = tags_of(version.headers)
        found = expiry(self._rules, self._day, version.key, version.size, version.modified, tags)
        return found[1] if found is not None and found[0] <= self._now else None

    def _old_by(self, version: LifecycleVersion, since: int, *, marker: bool) -> str | None:
        """Return the id of the rule by which a noncurrent version is due to be deleted."""
        for rule in self._rules:
            if rule.noncurrent_days is None or self._newer < (rule.newer or 0):
                continue
            if marker and not rule.of_keys_only:
                continue
            if not rule.covers(version.key, version.size, tags_of(version.headers)):
                continue
            if self._day.after(since, rule.noncurrent_days) <= self._now:
                return rule.id
        return None

    def _move(self, version: LifecycleVersion, since: int, kind: str) -> Iterator[DueAction]:
        """Yield the transition to the coldest class for which a version is due.

        Days count from `since`, when the version became noncurrent.
        """
        found: list[tuple[str, str]] = []
        for rule in self._rules if self._classes else ():
            moves = rule.transitions if kind == TRANSITION else rule.older_transitions
            if not moves or not rule.covers(version.key, version.size, tags_of(version.headers)):
                continue
            has_size = rule.larger is not None or rule.smaller is not None  # which overrides the default
            for move in moves:
                new = move.storage_class
                if (
                    new in self._classes
                    and may_transition(version.storage_class, new)
                    and (kind == TRANSITION or self._newer >= (move.newer or 0))
                    and (has_size or large_enough(self._minimum, new, version.size))
                    and is_due(move, self._day, since, self._now)
                ):
                    found.append((new, rule.id))
        if found:
            coldest, rule_id = max(found, key=lambda one: COLDNESS[one[0]])
            yield _due(kind, version, rule_id, coldest)

    def _judge_marker(self, version: LifecycleVersion) -> Iterator[DueAction]:
        for rule in self._rules:
            when = version.modified if rule.markers else _when(rule, self._day, version.modified)
            if (
                when is not None
                and when <= self._now
                and rule.of_keys_only
                and version.key.startswith(rule.prefix or "")
            ):
                yield _due(MARKER, version, rule.id)
                return


def _due(kind: str, version: LifecycleVersion, rule: str, storage_class: str = "") -> DueAction:
    return DueAction(kind, version.key, version.version_id, version.seq, storage_class, rule, version.size)


def scan_prefixes(rules: Iterable[Rule]) -> list[str]:
    """Return the prefixes that rules cover, none of which begins with another."""
    found: list[str] = []
    for prefix in sorted({rule.prefix or "" for rule in rules}):
        if not found or not prefix.startswith(found[-1]):
            found.append(prefix)
    return found
