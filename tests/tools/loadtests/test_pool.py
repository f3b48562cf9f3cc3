"""The objects of a mix: what is read is not deleted."""

from __future__ import annotations

from collections import Counter

import pytest

from sluice_s3.loadtests.object_pool import MIX, ObjectPool, parse_mix, pick_operation


def test_names_are_never_given_twice() -> None:
    pool = ObjectPool("p")
    assert len({pool.name() for _ in range(100)}) == 100
    assert len(pool) == 0


def test_who_is_read_is_not_taken() -> None:
    pool = ObjectPool("p")
    pool.add("only")
    with pool.use() as first, pool.use() as second:
        assert (first, second) == ("only", "only")
        assert pool.take() == ""
    assert pool.take() == "only"
    assert pool.take() == ""
    with pool.use() as name:
        assert name == ""


def test_the_mix_is_that_of_warp() -> None:
    found = Counter(pick_operation() for _ in range(20_000))
    assert set(found) == set(MIX)
    assert all(abs(found[operation] / 200 - percent) < 3 for operation, percent in MIX.items())


def test_a_mix_of_ones_own() -> None:
    assert parse_mix("") == MIX
    assert parse_mix("get=90, put=10") == {"GET": 90, "PUT": 10}
    assert {pick_operation(parse_mix("STAT=1,DELETE=0")) for _ in range(100)} == {"STAT"}


@pytest.mark.parametrize("text", ["GET", "GET=", "GET=x", "GET=-1", "GET=nan", "GET=inf", "COPY=1", "GET=0,PUT=0", ","])
def test_what_is_no_mix_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no share|has no operation"):
        parse_mix(text)
