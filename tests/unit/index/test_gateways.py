"""Leases and signs of life in the index."""

from __future__ import annotations

import pytest

from sluice_s3.app.errors import LeaseLost
from sluice_s3.app.index.cluster import transactions as cluster
from sluice_s3.app.index.cluster import writers
from sluice_s3.app.index.cluster.rows import Lease
from sluice_s3.app.index.engine.fencing import fenced, with_lease
from sluice_s3.app.index.sql.transaction import Transaction
from tests.unit.index.tools import Memory


def test_one_holder_at_a_time(memory: Memory) -> None:
    first, second = memory.run(writers.register("a")), memory.run(writers.register("b"))
    lease = memory.run(cluster.take_lease(first, "store:default"))
    assert lease == Lease("store:default", first, 1)
    assert memory.run(cluster.take_lease(second, "store:default")) is None
    assert not memory.run(cluster.is_free(second, "store:default"))
    assert memory.run(cluster.take_lease(second, "sweep")) == Lease("sweep", second, 1)


@pytest.mark.parametrize("how", ["dead", "forgotten", "retired", "left"])
def test_taken_over(memory: Memory, how: str) -> None:
    first, second = memory.run(writers.register("a")), memory.run(writers.register("b"))
    lease = memory.run(cluster.take_lease(first, "sweep"))
    assert lease is not None
    if how == "left":
        memory.run(cluster.release_lease(lease))
    elif how == "retired":
        assert memory.run(writers.retire(first))
    else:
        memory.run(writers.declare_dead(first))
        if how == "forgotten":
            memory.run(writers.forget_writer(first))
    assert memory.run(cluster.is_free(second, "sweep"))
    assert memory.run(cluster.take_lease(second, "sweep")) == Lease("sweep", second, 2)
    assert not memory.run(cluster.holds_lease(lease))
    memory.run(cluster.release_lease(lease))  # too late: it is another's
    assert memory.run(cluster.holds_lease(Lease("sweep", second, 2)))


def test_a_change_under_a_lost_lease_is_none(memory: Memory) -> None:
    first, second = memory.run(writers.register("a")), memory.run(writers.register("b"))
    lease = memory.run(cluster.take_lease(first, "sweep"))
    assert lease is not None

    def change() -> Transaction[int]:
        return (yield from writers.register("c"))

    with with_lease(lease):
        memory.run(fenced(change)())
        memory.run(cluster.release_lease(lease))
        memory.run(cluster.take_lease(second, "sweep"))
        before = memory.rows("SELECT * FROM writers")
        with pytest.raises(LeaseLost):
            memory.run(fenced(change)())
    assert memory.rows("SELECT * FROM writers") == before
    assert fenced(change) is change, "outside of it nothing is checked"


def test_a_lease_taken_again_by_its_holder_is_another(memory: Memory) -> None:
    """What was begun under the one it left must not end under the one it took."""
    first = memory.run(writers.register("a"))
    lease = memory.run(cluster.take_lease(first, "sweep"))
    assert lease is not None
    memory.run(cluster.release_lease(lease))
    memory.run(cluster.take_lease(first, "sweep"))
    with pytest.raises(LeaseLost):
        memory.run(cluster.check_lease(lease))


def test_signs_of_life(memory: Memory) -> None:
    first, second = memory.run(writers.register("a")), memory.run(writers.register("b"))
    assert memory.run(cluster.beat(first, 1, 0)) == [(first, "live", 1, 0), (second, "live", 0, 0)]
    memory.run(writers.declare_dead(first))
    assert memory.run(cluster.beat(second, 7, 5)) == [(first, "dead", 1, 0), (second, "live", 7, 5)]
    memory.run(writers.forget_writer(first))
    memory.run(cluster.beat(first, 2, 0))
    assert memory.run(cluster.beats()) == [(second, "live", 7, 5)]
    memory.run(writers.retire(second))
    assert memory.rows("SELECT * FROM heartbeats") == [], "nor of one that gave a sign after it was forgotten"
