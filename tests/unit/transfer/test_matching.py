"""Which versions a destination lacks."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from sluice_s3.app.transfer.listing import Entry
from sluice_s3.app.transfer.matching import Plan, plan_aligned, plan_current, plan_dated

MD5 = "{:032x}".format


def version(number: int, modified: int, *, marker: bool = False) -> Entry:
    return Entry("k", f"id{modified}", modified, 0 if marker else number, "" if marker else MD5(number), "", marker)


def missing(plan: Plan) -> list[int]:
    return [one.modified for one in plan.missing]


def copied(plan: Plan, target: Sequence[Entry]) -> list[Entry]:
    """The destination after the first copies of a plan."""
    return [*target, *(one.entry._replace(modified=one.modified) for one in plan.missing)]


MADE = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.sampled_from([-900, 0, 1, 900, 5000])), max_size=8).map(
    lambda steps: [
        version(content, 10_000 + sum(step for _, _, step in steps[: at + 1]), marker=marker)
        for at, (content, marker, _) in enumerate(steps)
    ]
)


@given(MADE, st.integers(0, 8), st.integers(0, 8))
def test_a_killed_copy_goes_on_without_a_double(source: list[Entry], done: int, new: int) -> None:
    """Whatever was copied, and whatever the source has since: the rest is copied, once and in order."""
    before = source[: max(0, len(source) - new)]
    target = copied(plan_dated(before, []), [])[:done]
    plan = plan_dated(source, target)
    after = copied(plan, target)
    assert [one[3:] for one in after] == [one[3:] for one in source]
    assert [one.modified for one in after] == sorted({one.modified for one in after})
    assert plan_dated(source, after) == Plan([], len(source), [])


@given(MADE, st.integers(0, 8))
def test_order_tells_how_far_a_copy_without_times_came(source: list[Entry], done: int) -> None:
    plan = plan_aligned(source, source[:done])
    assert [one.entry for one in plan.missing] == source[done:]


def test_versions_of_one_second_stay_apart() -> None:
    source = [version(1, 5000), version(1, 5000), version(2, 5000, marker=True), version(3, 9000)]
    plan = plan_dated(source, [])
    assert missing(plan) == [5000, 5001, 5002, 9000]
    there = copied(plan, [])
    assert missing(plan_dated(source, there)) == []
    assert missing(plan_dated(source[1:], there)) == [], "the first was removed at the source, and the times moved"


def test_a_version_before_a_newer_one_is_too_late() -> None:
    plan = plan_dated([version(1, 1000), version(2, 60_000)], [version(3, 30_000)])
    assert [one.modified for one in plan.too_late] == [1000]
    assert missing(plan) == [60_000]


def test_versions_removed_on_either_side_do_not_matter() -> None:
    source = [version(number, 1000 * number) for number in range(1, 6)]
    assert missing(plan_aligned(source[2:], source[:4])) == [5000]
    assert missing(plan_aligned(source, source[2:4])) == [5000]
    assert missing(plan_aligned(source, [version(9, 500)])) == [1000, 2000, 3000, 4000, 5000]


def test_objects_alone() -> None:
    old, new = version(1, 1000), version(2, 2000)
    assert missing(plan_current([old, new], [old], dated=False)) == [2000]
    assert plan_current([old, new], [new], dated=False).present == 1
    assert missing(plan_current([new._replace(modified=3000)], [new], dated=False)) == [3000], "other metadata"
    assert plan_current([old], [new], dated=True).too_late == [old]
    assert plan_current([version(0, 1, marker=True)], [old], dated=False) == Plan([], 0, [])


def test_etags_that_are_no_md5_are_not_compared() -> None:
    opaque = version(1, 1000)._replace(etag="0123456789abcdef0000000001-crc64nvme")
    assert plan_current([opaque], [version(1, 2000)], dated=False).present == 1
    parts = version(1, 1000)._replace(etag=MD5(5) + "-2")
    assert plan_current([parts], [version(1, 2000)], dated=False).present == 1
    assert missing(plan_current([parts._replace(modified=3000)], [version(1, 2000)], dated=False)) == [3000]
    other = version(1, 2000)._replace(etag=MD5(7))
    assert missing(plan_current([version(1, 1000)], [other], dated=False)) == [1000]
    assert plan_current([version(1, 1000)], [other], dated=False, size_only=True).present == 1
