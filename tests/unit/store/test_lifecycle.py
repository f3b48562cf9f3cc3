"""Lifecycle rules against a slow evaluator that looks at everything each time."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.schema.tables import CURRENT, MARKER, NONCURRENT, OLD_MARKER
from sluice_s3.app.s3.wire import metadata
from sluice_s3.app.store.lifecycle import evaluator
from sluice_s3.app.store.lifecycle.calendar import LAST_DAY, REAL_DAY_SECONDS, LifecycleCalendar
from sluice_s3.app.store.lifecycle.evaluator import (
    BASE,
    FILTER,
    OLDER,
    DueAction,
    LifecycleEvaluator,
    LifecycleVersion,
    Rule,
    Rules,
)
from sluice_s3.app.store.lifecycle.storage_classes import MIN_SIZE_BYTES, VARIES_BY_CLASS, Transition

DAY_MS = REAL_DAY_SECONDS * 1000
NOON = 12 * 3600 * 1000


def bucket(rules: Rules) -> Bucket:
    settings = orjson.dumps({"cors": [], evaluator.SETTING: evaluator.to_setting(rules)}).decode()
    return Bucket(1, "b", "owner", "r", 0, settings=settings)


# what S3's guide says, example by example
@pytest.mark.parametrize(
    ("since", "days", "due"),
    [
        (10 * DAY_MS + NOON, 3, 14 * DAY_MS),
        (10 * DAY_MS + 1, 1, 12 * DAY_MS),
        (10 * DAY_MS, 1, 11 * DAY_MS),
        (11 * DAY_MS - 1, 30, 41 * DAY_MS),
        (11 * DAY_MS, 2**31 - 1, LAST_DAY),
    ],
)
def test_days_end_at_midnight(since: int, days: int, due: int) -> None:
    assert LifecycleCalendar().after(since, days) == due


def test_a_short_day_is_not_rounded() -> None:
    assert LifecycleCalendar(10).after(12_345, 3) == 42_345
    assert LifecycleCalendar(10).period == 1000
    assert LifecycleCalendar().period == DAY_MS


def test_tags_are_read_as_they_are_written() -> None:
    headers = metadata.pack_headers({"content-type": "x"}, None, {"a": "b", "c": ""})
    assert evaluator.tags_of(headers) == {"a": "b", "c": ""}
    assert evaluator.tags_of(metadata.pack_headers({"x-amz-meta-tags": '"tags":'})) == {}


def test_the_earliest_rule_counts() -> None:
    rules = (Rule("later", True, FILTER, days=9), Rule("off", False, FILTER, days=1), Rule("first", True, BASE, days=2))
    assert evaluator.expiry(rules, LifecycleCalendar(), "k", 1, NOON, {}) == (3 * DAY_MS, "first")
    assert evaluator.expiry((*rules, Rule("past", True, FILTER, date=5)), LifecycleCalendar(), "k", 1, NOON, {}) == (
        5,
        "past",
    )
    assert evaluator.expiry(rules[1:2], LifecycleCalendar(), "k", 1, NOON, {}) is None


def test_prefixes_are_gone_through_once() -> None:
    prefixes = ["a/b", "b", "a/", "b", "c/d"]
    assert evaluator.scan_prefixes(Rule("", True, BASE, prefix=prefix) for prefix in prefixes) == ["a/", "b", "c/d"]
    assert evaluator.scan_prefixes([Rule("", True, FILTER), Rule("", True, BASE, prefix="x")]) == [""]


keys = st.sampled_from(["a", "a/b", "a/c", "b"])
tags = st.dictionaries(st.sampled_from("xy"), st.sampled_from("12"), max_size=2)
times = st.integers(0, 12)
few = st.none() | st.integers(1, 4)


CLASSES = ("STANDARD_IA", "ONEZONE_IA", "GLACIER_IR", "DEEP_ARCHIVE")
UNMAPPED = "GLACIER_IR"


@st.composite
def transitions(draw: st.DrawFn, *, older: bool) -> Transition:
    kind, days = draw(st.sampled_from(CLASSES)), draw(st.integers(0, 4))
    if older:
        return Transition(kind, days, None, draw(few))
    if draw(st.booleans()):
        return Transition(kind, None, draw(times) * DAY_MS)
    return Transition(kind, days)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    days, date = draw(few), None
    if days is None:
        date = draw(st.none() | times.map(lambda day: day * DAY_MS))
    noncurrent = draw(few)
    moves = draw(st.lists(transitions(older=False), max_size=2, unique_by=lambda one: one.storage_class))
    older = draw(st.lists(transitions(older=True), max_size=2, unique_by=lambda one: one.storage_class))
    markers = draw(st.none() | st.booleans()) if days is None and date is None else None
    return Rule(
        draw(st.sampled_from("rst")),
        draw(st.sampled_from([True, True, True, False])),
        "And",
        prefix=draw(st.sampled_from([None, "", "a", "a/", "b"])),
        tags=tuple(draw(tags).items()) if markers is None else (),
        larger=draw(st.none() | st.integers(0, 5)) if markers is None else None,
        smaller=draw(st.none() | st.integers(3, 9)) if markers is None else None,
        days=days,
        date=date,
        markers=markers,
        noncurrent_days=noncurrent,
        newer=None if noncurrent is None else draw(few),
        abort_days=None,
        transitions=tuple(moves),
        older_transitions=tuple(older),
    )


@st.composite
def versions(draw: st.DrawFn) -> list[tuple[LifecycleVersion, bool]]:
    """Versions in the order of listings, each with whether it is a delete marker."""
    made = []
    seq = 0
    for key in sorted(draw(st.sets(keys, min_size=1))):
        when = sorted(draw(st.sets(st.integers(0, 40), min_size=1, max_size=5)), reverse=True)
        for number, quarter in enumerate(when):
            seq += 1
            marker = draw(st.booleans())
            state = (MARKER if marker else CURRENT) if number == 0 else (OLD_MARKER if marker else NONCURRENT)
            size = 0 if marker else draw(st.integers(0, 9))
            headers = "{}" if marker else metadata.pack_headers({}, None, draw(tags))
            if draw(st.booleans()) and not marker:
                size += MIN_SIZE_BYTES
            kind = "STANDARD" if marker else draw(st.sampled_from(("STANDARD", *CLASSES)))
            made.append(
                (LifecycleVersion(seq, key, f"v{seq}", state, size, quarter * DAY_MS // 4, headers, kind), marker)
            )
    return made


def is_due(given_rules: list[Rule], every: list[tuple[LifecycleVersion, bool]], at: int, now: int) -> bool:
    """Slowly and obviously: rule by rule, all versions of the key looked at anew."""
    version, marker = every[at]
    of_key = [one for one in every if one[0].key == version.key]
    newer = [one for one in of_key if one[0].modified > version.modified]
    older = [one for one in of_key if one[0].modified < version.modified]
    for rule in given_rules:
        if not rule.enabled or not version.key.startswith(rule.prefix or ""):
            continue
        if marker and (rule.tags or rule.larger is not None or rule.smaller is not None):
            continue
        found = evaluator.tags_of(version.headers)
        if any(found.get(name) != value for name, value in rule.tags):
            continue
        if rule.larger is not None and not version.size > rule.larger:
            continue
        if rule.smaller is not None and not version.size < rule.smaller:
            continue
        if newer:
            since = min(one[0].modified for one in newer)
            kept = sum(1 for one in newer[1:] if not one[1])
            days = rule.noncurrent_days
            if days is not None and kept >= (rule.newer or 0) and passed(since, days, now):
                return True
            continue
        if marker and older:
            continue
        if marker and rule.markers and version.modified <= now:
            return True
        if rule.date is not None and now >= rule.date:
            return True
        if rule.days is not None and passed(version.modified, rule.days, now):
            return True
    return False


def moves_to(given: Rules, every: list[tuple[LifecycleVersion, bool]], at: int, now: int) -> str:
    """Slowly and obviously: where a version is due to move, if it stays at all."""
    version, marker = every[at]
    newer = [one for one in every if one[0].key == version.key and one[0].modified > version.modified]
    since = min(one[0].modified for one in newer) if newer else version.modified
    best = ""
    for rule in given.rules:
        found = evaluator.tags_of(version.headers)
        if marker or not rule.enabled or not version.key.startswith(rule.prefix or ""):
            continue
        if any(found.get(name) != value for name, value in rule.tags):
            continue
        if rule.larger is not None and version.size <= rule.larger:
            continue
        if rule.smaller is not None and version.size >= rule.smaller:
            continue
        for move in rule.older_transitions if newer else rule.transitions:
            order = ("STANDARD", *CLASSES)
            if move.storage_class == UNMAPPED or order.index(move.storage_class) <= order.index(version.storage_class):
                continue
            if newer and sum(1 for one in newer[1:] if not one[1]) < (move.newer or 0):
                continue
            by_default = rule.larger is None and rule.smaller is None
            archived = given.minimum == VARIES_BY_CLASS and move.storage_class == "DEEP_ARCHIVE"
            if by_default and version.size < MIN_SIZE_BYTES and not archived:
                continue
            if move.days is None:
                assert move.date is not None
                due = now >= move.date
            else:
                due = passed(since, move.days, now)
            if due and (not best or order.index(move.storage_class) > order.index(best)):
                best = move.storage_class
    return best


def passed(since: int, days: int, now: int) -> bool:
    """Whether there was a midnight so many days later, or the first one behind that."""
    return any(since + days * DAY_MS <= midnight * DAY_MS <= now for midnight in range(100))


@example(
    [Rule("r", True, "And", smaller=3, older_transitions=(Transition("STANDARD_IA", 0),))],
    [
        (LifecycleVersion(1, "a", "v1", CURRENT, 0, DAY_MS, "{}", "STANDARD"), False),
        (LifecycleVersion(2, "a", "v2", NONCURRENT, 0, 0, "{}", "STANDARD"), False),
    ],
    0,
    False,
    False,
    "m",
)  # written by a clock that is ahead
@given(
    st.lists(rules(), max_size=4),
    versions(),
    times,
    st.booleans(),
    st.booleans(),
    st.sampled_from(["m", VARIES_BY_CLASS]),
)
def test_judged_as_by_the_slow_evaluator(
    given_rules: list[Rule], every: list[tuple[LifecycleVersion, bool]], day: int, noon: bool, keeps: bool, minimum: str
) -> None:
    now = day * DAY_MS + NOON * noon
    setting = evaluator.rules_of(bucket(Rules(tuple(given_rules), minimum)))
    assert setting == Rules(tuple(given_rules), minimum)
    judge = LifecycleEvaluator(setting, LifecycleCalendar(), now, {*CLASSES} - {UNMAPPED}, keeps=keeps)
    found: list[DueAction] = []
    for version, marker in every:
        found += judge.take(version, newest=version.state in (CURRENT, MARKER), marker=marker)
    found += judge.end()
    moving = {one.seq: one.storage_class for one in found if one.storage_class}
    found = [one for one in found if not one.storage_class]
    wanted = {one[0].seq for at, one in enumerate(every) if is_due(given_rules, every, at, now)}
    assert {one.seq for one in found} == wanted
    stays = {one[0].seq for one in every if one[0].seq not in wanted or (keeps and one[0].state == CURRENT)}
    places = {one[0].seq: moves_to(setting, every, at, now) for at, one in enumerate(every)}
    assert moving == {seq: place for seq, place in places.items() if place and seq in stays}
    for one in found:
        (state,) = [version.state for version, _ in every if version.seq == one.seq]
        assert (one.kind == OLDER) == (state in (NONCURRENT, OLD_MARKER))
