"""Minutes become repeats and durations, and a run ends when they are over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.loadtests.compare import outlook, rounds, time_budget
from sluice_s3.loadtests.compare import run as running
from sluice_s3.loadtests.compare.plan import Plan, select_scenarios
from sluice_s3.loadtests.compare.time_budget import (
    GRACE_SHARE,
    LEAST_REPEATS,
    LONG_REPEATS,
    MOST_REPEATS,
    USUAL_REPEATS,
    divide,
)
from sluice_s3.loadtests.compare.trial import LocustJob, TrialResult
from tests.tools.loadtests.compare.test_run import KEYS, Said

USUAL = select_scenarios(())
MIXED = select_scenarios(["mixed"])


@pytest.mark.parametrize(("minutes", "scenarios"), [(2, MIXED), (5, USUAL), (5, MIXED), (10, USUAL), (30, MIXED)])
def test_the_time_is_used_and_kept(minutes: float, scenarios: Any) -> None:
    found = divide(minutes, scenarios, 2)
    assert LEAST_REPEATS <= found.repeats <= MOST_REPEATS
    assert minutes * 60 * 0.75 <= found.seconds(2) <= minutes * 60 * 1.001


def test_repeats_go_before_durations_and_few_minutes_give_no_verdict() -> None:
    assert divide(5, MIXED, 2).repeats == LONG_REPEATS
    short = divide(1, MIXED, 2)
    assert short.repeats in (USUAL_REPEATS - 1, LEAST_REPEATS)
    assert float(short.scenarios["mixed"].arguments["duration"]) < float(MIXED["mixed"].arguments["duration"])
    assert divide(0.2, USUAL, 2).repeats == 1
    fixed = select_scenarios(["batches"])
    assert divide(60, fixed, 2).repeats == MOST_REPEATS
    assert divide(60, fixed, 2).scenarios["batches"].arguments == fixed["batches"].arguments
    busy = divide(5, USUAL, 2, slowness=2.5)
    assert busy.repeats < divide(5, USUAL, 2).repeats
    assert busy.seconds(2, 2.5) <= 300


SCENARIOS = select_scenarios(["mixed", "threads", "stat_delete_list"])


class Clock:
    """Time that passes only by what is played."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, turn: float, cell: float) -> None:
        self.now = 0.0
        self.played: list[tuple[str, str, int]] = []
        self.turn, self.cell = turn, cell
        for module in (running, time_budget):
            monkeypatch.setattr(module.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(rounds, "measured_slowness", lambda: 1.0)
        monkeypatch.setattr(running, "start_target", self.start)
        monkeypatch.setattr(running, "sync", lambda _: None)
        monkeypatch.setattr(running.Run, "_play_cell", lambda *words: self.play(*words))

    @contextmanager
    def start(self, *_: Any) -> Iterator[running.RunningTarget]:
        self.now += self.turn
        yield running.RunningTarget(direct="/nowhere")

    def play(self, run: running.Run, job: LocustJob, *_: Any) -> TrialResult:
        begun = self.now
        while self.now < begun + self.cell:
            self.now += 0.5
            run._check()
        self.played.append((job.target, job.chosen.name, job.repeat))
        return TrialResult("done", rows=1)

    def run(self, directory: Path, minutes: float, **more: Any) -> running.Run:
        plan = Plan(5, SCENARIOS, stores=("a=local", "b=local"), minutes=minutes, **more)
        run = running.start_run(directory / "run", plan, KEYS, Said(), None, 0.0)
        run.go()
        return run


@pytest.mark.parametrize("minutes", [1, 2, 3, 5, 20])
@pytest.mark.parametrize(("turn", "cell"), [(1.0, 3.0), (4.0, 9.0), (20.0, 25.0)])
def test_the_time_is_kept_and_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: float, turn: float, cell: float
) -> None:
    clock = Clock(monkeypatch, turn, cell)
    run = clock.run(tmp_path, minutes, most_repeats=1000)
    assert clock.now <= 60 * minutes * (1 + GRACE_SHARE) + 1
    counts = Counter((target, scenario) for target, scenario, _ in clock.played)
    whole = 2 * (turn + 3 * cell)
    if 3 * whole < 60 * minutes - 15:
        assert len(counts) == 6
        assert min(counts.values()) >= LEAST_REPEATS
        assert clock.now > 60 * minutes - whole - 20, "what there is, is used"
    elif 6 * (turn + cell) < 60 * minutes - cell - 20:
        assert max(counts.values()) >= LEAST_REPEATS, "rather three repeats of little than one of all"
    assert len(set(clock.played)) == len(clock.played)
    assert run.meta["state"] == "complete"
    assert run.meta["stop"]["why"] == "time"
    assert run.meta["plan"]["repeats"] == max(repeat for _, _, repeat in clock.played)


def test_a_cell_that_does_not_end_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 1.0, 5.0)
    usual = clock.play

    def stuck(run: running.Run, job: LocustJob, *_: Any) -> TrialResult:
        clock.cell = 1e6 if job.repeat == 4 else 5.0
        return usual(run, job)

    monkeypatch.setattr(running.Run, "_play_cell", stuck)
    run = clock.run(tmp_path, 3)
    assert 180 <= clock.now <= 180 * (1 + GRACE_SHARE) + 1
    assert {cell["state"] for cell in run.meta["cells"]} == {"done"}, "what was under way is not counted"
    assert {cell["repeat"] for cell in run.meta["cells"]} == {1, 2, 3}
    assert run.meta["state"] == "complete"
    resumed = running.resume(run.directory, KEYS, Said(), None, clock.now, minutes=1)
    monkeypatch.setattr(running.Run, "_play_cell", lambda *words: usual(*words))
    clock.cell, began = 5.0, clock.now
    resumed.go()
    assert {cell["repeat"] for cell in resumed.meta["cells"]} >= {4}, "more minutes for the same run"
    assert clock.now - began <= 65


def test_nothing_could_be_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 300.0, 5.0)
    run = clock.run(tmp_path, 1)
    assert (run.meta["state"], run.meta["reason"]) == ("partial", "there was no time to measure anything")
    assert clock.now < 310


def test_one_cell_is_measured_however_short_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 10.0, 20.0)
    run = clock.run(tmp_path, 0.1)
    assert len(clock.played) == 1
    assert run.meta["state"] == "complete"
    assert outlook.sentences(run.meta)[0] == "Measured for 0 min 30 s: 24 s longer than it had (0 min 6 s)."
