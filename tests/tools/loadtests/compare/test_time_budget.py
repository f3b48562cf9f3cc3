"""Minutes become repeats and durations, and a run ends when they are over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluice_s3.loadtests.compare import run as running
from sluice_s3.loadtests.compare.plan import Plan, select_scenarios
from sluice_s3.loadtests.compare.time_budget import LEAST_REPEATS, MOST_REPEATS, USUAL_REPEATS, divide
from tests.tools.loadtests.compare.test_run import KEYS, Said

USUAL = select_scenarios(())
MIXED = select_scenarios(["mixed"])


@pytest.mark.parametrize(("minutes", "scenarios"), [(2, MIXED), (5, USUAL), (5, MIXED), (10, USUAL), (30, MIXED)])
def test_the_time_is_used_and_kept(minutes: float, scenarios: Any) -> None:
    found = divide(minutes, scenarios, 2)
    assert LEAST_REPEATS <= found.repeats <= MOST_REPEATS
    assert minutes * 60 * 0.75 <= found.seconds(2) <= minutes * 60 * 1.001


def test_repeats_go_before_durations_and_few_minutes_give_no_verdict() -> None:
    assert divide(5, MIXED, 2).repeats == USUAL_REPEATS
    short = divide(1, MIXED, 2)
    assert short.repeats == USUAL_REPEATS - 1 or short.repeats == LEAST_REPEATS
    assert float(short.scenarios["mixed"].arguments["duration"]) < float(MIXED["mixed"].arguments["duration"])
    assert divide(0.2, USUAL, 2).repeats == 1
    fixed = select_scenarios(["batches"])
    assert divide(60, fixed, 2).repeats == MOST_REPEATS
    assert divide(60, fixed, 2).scenarios["batches"].arguments == fixed["batches"].arguments


@pytest.mark.parametrize(("minutes", "repeats"), [(2, 3), (1, 3), (0.5, 2), (3, 4)])
def test_no_repeat_is_begun_for_which_the_time_would_not_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, repeats: int
) -> None:
    """But for those that a verdict needs there is half as much again, and a minute."""
    clock = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])
    played = []

    def play(_: running.Run, target: Any, repeat: int, *__: Any) -> None:
        played.append((target.name, repeat))
        clock[0] += 20

    monkeypatch.setattr(running.Run, "_run_target", play)
    plan = Plan(5, MIXED, stores=("a=local", "b=local"), minutes=minutes)
    run = running.start_run(tmp_path / "run", plan, KEYS, Said())
    run.go()
    assert played[:6] == [("a", 1), ("b", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 3)][: 2 * repeats]
    assert len(played) == 2 * repeats
    assert (run.meta["state"], run.meta["plan"]["repeats"]) == ("complete", repeats)


def test_a_run_that_takes_far_too_long_is_partial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(running.time, "monotonic", lambda: clock[0])

    def play(run: running.Run, *_: Any) -> None:
        clock[0] += 130
        run._check()

    monkeypatch.setattr(running.Run, "_run_target", play)
    run = running.start_run(tmp_path / "run", Plan(1, MIXED, stores=("a=local", "b=local"), minutes=1), KEYS, Said())
    run.go()
    assert (run.meta["state"], run.meta["reason"]) == ("partial", "it took far more than its 1 minutes")
