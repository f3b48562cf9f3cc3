"""Which scenarios are played next, in what order, and when it is enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from sluice_s3.loadtests.compare import rounds as planning
from sluice_s3.loadtests.compare.pace import Pace
from sluice_s3.loadtests.compare.plan import Plan, select_scenarios
from sluice_s3.loadtests.compare.rounds import Round, Rounds, Standing, rounds_of
from sluice_s3.loadtests.compare.targets import targets_of
from sluice_s3.loadtests.compare.time_budget import TURN_SECONDS, fixed_seconds
from sluice_s3.loadtests.report.use_cases import USES_OF

ALL = select_scenarios(())


class Says:
    """A judge that says what a test wants."""

    uses = USES_OF

    def __init__(self, *settled: str) -> None:
        self.settled = set(settled)

    def add(self, cell: Mapping[str, Any]) -> None:
        raise AssertionError("no cell is played here")

    def standings(self) -> list[Standing]:
        uses = dict.fromkeys(use for name in ALL for use in USES_OF[name])
        return [
            Standing(use, tuple(name for name in ALL if use in USES_OF[name]), 3, use in self.settled) for use in uses
        ]


def rounds(minutes: float = 5, judge: Says | None = None, past: list[Round] | None = None, **plan: Any) -> Rounds:
    found = Plan(
        **{"repeats": 3, "scenarios": ALL, "stores": ("a=local", "b=local", "c=local"), "minutes": minutes, **plan}
    )
    made = Rounds(found, targets_of(found), judge or Says(), past or [])
    made.pace = Pace()
    return made


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "measured_slowness", lambda: 1.0)


def test_the_order_is_random_recorded_and_fair() -> None:
    def orders(seed: int) -> list[list[str]]:
        own = rounds(seed=seed, most_repeats=30)
        return [list(found.order) for _ in range(30) if (found := own.next(1e6)) is not None]

    found = orders(1)
    assert len(found) == 30
    assert found == orders(1)
    assert len({tuple(one) for one in found}) > 3
    assert found != orders(2)
    for place in range(3):
        assert set(Counter(one[place] for one in found).values()) == {10}, "each target is as often at each place"
    begun = [Round(one, {"mixed": number + 1}) for number, one in enumerate(found[:7])]
    again = rounds(seed=1, past=begun).next(1e6)
    assert again is not None
    assert list(again.order) == found[7], "a resumed run goes on where it was"


def test_without_minutes_every_repeat_is_played() -> None:
    own = rounds(minutes=0, judge=Says(*sum(USES_OF.values(), ())))
    assert [len(found.repeats) for _ in range(3) if (found := own.next(float("inf"))) is not None] == [len(ALL)] * 3
    assert (own.next(float("inf")), own.why) == (None, "repeats")


def test_what_is_settled_gets_no_more_time() -> None:
    own = rounds(judge=Says("Mixed load", "Metadata", "Many writers", "Large writes", "Large reads"))
    for number in (1, 2, 3):
        found = own.next(1e6)
        assert found is not None
        assert found.repeats == dict.fromkeys(ALL, number), "three repeats of all come first"
    found = own.next(1e6)
    assert found is not None
    assert found.repeats == dict.fromkeys(("sizes", "small_files", "batches"), 4), "of all that tells an open use"
    assert isinstance(own._judge, Says)
    own._judge.settled |= {"Small-file reads", "Small-file writes"}
    assert (own.next(1e6), own.why) == (None, "settled")


def test_little_time_goes_to_what_no_other_scenario_tells() -> None:
    own = rounds()
    three = 3 * own.pace.round({name: list(ALL.values()) for name in "abc"})
    assert own.affordable(list(ALL), three) == list(ALL)
    assert own.affordable(list(ALL), three - 1) == [name for name in ALL if name != "batches"], "sizes tells its uses"
    few = own.affordable(list(ALL), three / 2)
    assert 0 < len(few) < len(ALL) - 1
    assert own.affordable(list(ALL), 1) == []
    found = own.next(1)
    assert found is not None
    assert len(found.repeats) == 1, "a guess alone is no reason to measure nothing"
    assert (own.next(1), own.why) == (None, "time")


def test_what_was_left_out_is_taken_up_again_when_there_is_time() -> None:
    first = Round("abc", {"mixed": 1})
    own = rounds(past=[first, Round("abc", {"mixed": 2}), Round("abc", {"mixed": 3})], judge=Says("Mixed load"))
    found = own.next(1e6)
    assert found is not None
    assert "mixed" not in found.repeats
    assert found.repeats["sizes"] == 1, "repeats are a scenario's own, so that uses of two have the same ones"


def test_the_pace_is_what_was_seen() -> None:
    pace, mixed = Pace(), ALL["mixed"]
    assert (pace.turn("a"), pace.cell("a", mixed)) == (TURN_SECONDS, mixed.seconds)
    pace.add_turn("a", 40.0)
    assert pace.turn("a") == 40.0
    assert 2 < pace.slowness < 10
    timed = mixed.seconds - fixed_seconds(mixed)
    assert pace.cell("b", mixed) == pytest.approx(timed + fixed_seconds(mixed) * pace.slowness), "a duration is itself"
    pace.add_cell("a", mixed, 30.0)
    assert pace.cell("b", mixed) == 30.0, "as slow as the other, until it is seen"
    pace.add_cell("a", mixed, 20.0)
    assert pace.cell("a", mixed) == 25.0
    pace.add_cell("a", mixed, 60.0)
    assert pace.cell("a", mixed) == 60.0, "it gets slower"


def test_a_run_that_did_not_note_its_rounds() -> None:
    cells = [{"target": name, "repeat": repeat} for repeat in (1, 2) for name in ("a", "b")]
    found = rounds_of({"cells": cells, "plan": {"scenarios": {"mixed": {}, "sizes": {}}}})
    assert found == [Round(["a", "b"], {"mixed": 1, "sizes": 1}), Round(["a", "b"], {"mixed": 2, "sizes": 2})]
    assert rounds_of({"rounds": [found[0].as_json()], "cells": []}) == found[:1]
