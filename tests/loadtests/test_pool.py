"""The objects of a mix: what is read is not deleted."""

from __future__ import annotations

from collections import Counter

from loadtests.pool import MIX, Pool, chosen


def test_names_are_never_given_twice() -> None:
    pool = Pool("p")
    assert len({pool.name() for _ in range(100)}) == 100
    assert len(pool) == 0


def test_who_is_read_is_not_taken() -> None:
    pool = Pool("p")
    pool.add("only")
    with pool.use() as first, pool.use() as second:
        assert (first, second) == ("only", "only")
        assert pool.take() == ""
    assert pool.take() == "only"
    assert pool.take() == ""
    with pool.use() as name:
        assert name == ""


def test_the_mix_is_that_of_warp() -> None:
    found = Counter(chosen() for _ in range(20_000))
    assert set(found) == set(MIX)
    assert all(abs(found[operation] / 200 - percent) < 3 for operation, percent in MIX.items())
