"""A seed decides everything but time."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.reliability.lab.faults import FAULTS
from tests.reliability.lab.faults.clocks import can_fake
from tests.reliability.lab.plan import CLIENTS, FILES, LOADS, Step, episode, episodes, steps
from tests.reliability.lab.setups import SETUPS
from tests.reliability.lab.trial import faults_of

LOCAL = SETUPS["sqlite-local"]


def begun(seed: int, client: int, count: int = 500) -> list[Step]:
    return list(islice(steps(episode(seed, LOCAL.name, "kill-all", LOCAL.buckets, 100, 2.0), client, 3), count))


def test_a_seed_decides_what_each_client_does() -> None:
    assert [begun(7, client) for client in range(CLIENTS)] == [begun(7, client) for client in range(CLIENTS)]
    assert begun(7, 0) != begun(8, 0)
    assert begun(7, 0) != begun(7, 1)


def test_an_episode_is_the_same_alone_and_among_others() -> None:
    names = faults_of(LOCAL)
    every = episodes(7, LOCAL.name, names, LOCAL.buckets, 100, 2.0)
    assert sorted(one.fault for one in every) == sorted(names)
    for one in every:
        assert [one] == episodes(7, LOCAL.name, [one.fault], LOCAL.buckets, 100, 2.0)
    others = episodes(8, LOCAL.name, names, LOCAL.buckets, 100, 2.0)
    assert [one.fault for one in every] != [one.fault for one in others]


def test_every_load_is_there() -> None:
    made = [step for client in range(CLIENTS) for step in begun(3, client)]
    made += islice(steps(episode(3, "sqlite-tree", "kill-all", (FILES,), 100, 2.0), 0, 3), 500)
    assert {(step.bucket, step.kind) for step in made} == {(bucket, kind) for bucket in LOADS for kind in LOADS[bucket]}
    assert {step.condition for step in made} == {"", "none", "mine"}
    assert {step.gateway for step in made} == {0, 1, 2}


def test_every_fault_strikes_somewhere() -> None:
    if not can_fake(LOCAL):
        pytest.skip("faults of clocks need faketime (Debian: faketime)")
    assert {name for setup in SETUPS.values() for name in faults_of(setup)} == FAULTS.keys()
