"""A run that ends when its intervals are narrow: what it settles, and that looking finds no differences by itself."""

from __future__ import annotations

import functools
import math
import random
from pathlib import Path

import pytest

from sluice_s3.loadtests.compare import outlook
from sluice_s3.loadtests.compare.plan import SCENARIOS
from sluice_s3.loadtests.compare.rounds import MOST_NEEDED, Standing
from sluice_s3.loadtests.compare.time_budget import LEAST_REPEATS, MOST_REPEATS
from sluice_s3.loadtests.report import significance, verdict
from sluice_s3.loadtests.report.interim import Interim, half_of, is_settled
from sluice_s3.loadtests.report.model import of_run
from sluice_s3.loadtests.report.significance import LOOKING
from sluice_s3.loadtests.report.use_cases import USES_OF, measures
from sluice_s3.loadtests.report.verdict import Score
from tests.support.environment import sized
from tests.tools.loadtests.report.making import Made, steady
from tests.tools.loadtests.report.test_pages import whole_run

TRIES = sized(400, 4000)
NOISE = (0.02, 0.04, 0.06, 0.12, 0.3)
"""Standard deviations of a repeat."""


@functools.cache
def student(level: float, freedom: int) -> float:
    """The quantile of Student's t, two-sided, by the integral of its density."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    at, area, step = 0.0, 0.0, 0.002
    while area < level / 2:
        at += step
        area += step * scale * (1 + (at - step / 2) ** 2 / freedom) ** (-(freedom + 1) / 2)
    return at


def students_half_width(a: tuple[float, ...], b: tuple[float, ...], level: float) -> float:
    """What `half_width` finds by a bootstrap (another test compares them), a thousand times as fast."""
    return student(round(level, 9), len(a) + len(b) - 2) * significance._error(a, b)


def played(source: random.Random, speed: float, noise: float, looks: int = LOOKING) -> tuple[str, int]:
    """What is called in the end between two stores, and after how many repeats: the loop, without the load."""
    a, b = (dict.fromkeys((), 1.0) for _ in "ab")
    for repeat in range(1, MOST_REPEATS + 1):
        a[repeat], b[repeat] = speed * math.exp(source.gauss(0, noise)), math.exp(source.gauss(0, noise))
        if repeat >= LEAST_REPEATS and is_settled(*half_of(Score("a", a, 0.0), Score("b", b, 0.0), 1)):
            break
    return significance.compare(list(a.values()), list(b.values()), comparisons=looks).call, len(a)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "half_width", students_half_width)


@pytest.mark.usefixtures("quick")
def test_the_same_disk_twice_is_called_different_in_one_case_of_a_hundred_at_most() -> None:
    source = random.Random(20)
    calls = [played(source, 1.0, noise)[0] for noise in NOISE for _ in range(TRIES)]
    wrong = sum(call in ("faster", "slower") for call in calls) / len(calls)
    assert wrong <= 0.01


@pytest.mark.usefixtures("quick")
def test_a_run_that_ends_as_soon_as_it_finds_a_difference_would_find_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the test above can fail."""
    for name, value in (("LOOKING", 1), ("CLEAR", 1.0)):
        monkeypatch.setattr(f"sluice_s3.loadtests.report.interim.{name}", value)
    source = random.Random(20)
    calls = [played(source, 1.0, noise, 1)[0] for noise in (0.04, 0.06, 0.12) for _ in range(TRIES // 2)]
    assert sum(call in ("faster", "slower") for call in calls) / len(calls) > 0.02


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("noise", "most"), [(0.01, 3.5), (0.03, 5.0), (0.06, 9.0)])
def test_a_store_slowed_by_a_fifth_is_found_and_the_quieter_the_sooner(noise: float, most: float) -> None:
    source = random.Random(21)
    found = [played(source, 0.8, noise) for _ in range(TRIES)]
    assert sum(call == "slower" for call, _ in found) >= 0.99 * TRIES
    assert sum(repeats for _, repeats in found) / TRIES <= most


@pytest.mark.usefixtures("quick")
def test_a_quiet_machine_is_done_sooner_and_a_noisy_one_never() -> None:
    source = random.Random(22)
    quiet, noisy = ([played(source, 1.0, noise)[1] for _ in range(50)] for noise in (0.01, 0.3))
    assert max(quiet) <= 5
    assert min(noisy) == MOST_REPEATS


def test_the_scenarios_of_a_use(tmp_path: Path) -> None:
    """Those that the loop goes by are those that have figures."""
    found = measures(of_run(whole_run(tmp_path / "r").write()))
    for name in {one.scenario for one in found}:
        assert {one.use for one in found if one.scenario == name} <= set(USES_OF[name])
    assert set(USES_OF) <= set(SCENARIOS)


def looked(directory: Path, a: list[float], b: list[float]) -> tuple[Standing, Made]:
    made = Made(directory)
    judge = Interim(directory, made.meta)
    for repeat, pair in enumerate(zip(a, b, strict=True), 1):
        for name, seconds in zip("ab", pair, strict=True):
            made.cell(name, "mixed", repeat, steady([seconds] * 20))
            judge.add(made.meta["cells"][-1])
    (found,) = judge.standings()
    return found, made


def test_what_is_known_after_some_repeats(tmp_path: Path) -> None:
    few, _ = looked(tmp_path / "few", [0.01] * 2, [0.01] * 2)
    assert (few.use, few.scenarios, few.repeats, few.settled, few.half) == ("Mixed load", ("mixed",), 2, False, None)
    same, _ = looked(tmp_path / "same", [0.01, 0.0101, 0.01, 0.0101], [0.0101, 0.01, 0.0101, 0.01])
    assert same.settled
    far, _ = looked(tmp_path / "far", [0.01, 0.011, 0.0105], [0.02, 0.022, 0.021])
    assert far.settled, "twice as fast, however wide the interval is"
    noisy, made = looked(tmp_path / "noisy", [0.01, 0.013, 0.011], [0.011, 0.01, 0.0135])
    assert not noisy.settled
    assert noisy.half is not None
    assert noisy.spread is not None
    assert noisy.needed is not None
    assert noisy.half > noisy.spread > 0.05
    assert noisy.needed > 10
    made.meta["plan"]["minutes"] = 5
    (judged,) = verdict.judge(of_run(made.write())).judgements
    half = (judged.over[next(iter(judged.over))].ratio or 0) / (judged.over[next(iter(judged.over))].low or 1) - 1
    assert half == pytest.approx(noisy.half), "the report goes by the interval that the run went by"


def test_failed_requests_and_a_single_store_end_it_too(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", ("a",))
    judge = Interim(made.directory, made.meta)
    for repeat in range(1, 5):
        made.cell("a", "mixed", repeat, steady([0.01 + repeat * 1e-5] * 9))
        judge.add(made.meta["cells"][-1])
    (alone,) = judge.standings()
    assert alone.settled
    failing = Made(tmp_path / "s", ("a", "b"))
    judge = Interim(failing.directory, failing.meta)
    for repeat in (1, 2, 3):
        for name in "ab":
            rows = [*steady([0.01] * 9), *(one | {"error": "SlowDown: x"} for one in steady([0.01] * 9))]
            failing.cell(name, "mixed", repeat, rows)
            judge.add(failing.meta["cells"][-1])
    (failed,) = judge.standings()
    assert failed.settled, "more repeats would not change that"


def test_a_figure_with_few_repeats_does_not_spoil_its_use(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", ("a", "b"), ["sizes", "batches"])
    for repeat in (1, 2, 3, 4):
        for name in "ab":
            made.cell(name, "sizes", repeat, steady([0.01] * 3, "PUT", size=1000))
            if repeat == 1:
                made.cell(name, "batches", repeat, steady([0.01] * 3, "PUT", size=1000, stage="batch-1"))
    (found,) = verdict.judge(of_run(made.write())).judgements
    assert found.figures == ["sizes PUT 1 KB"]
    assert found.call == "no difference"


def test_why_it_ended_is_said(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", scenarios=["mixed", "sizes"])
    for repeat in (1, 2, 3):
        made.cell("a", "mixed", repeat, steady([0.01])).cell("b", "mixed", repeat, steady([0.01]))
    made.cell("a", "sizes", 1, steady([0.01]))
    made.meta["plan"]["minutes"] = 5.0
    noisy = vars(Standing("Mixed load", ("mixed",), 3, False, 0.5, 0.09, 20))
    wild = vars(Standing("Large writes", ("sizes",), 3, False, 6.91, 0.34, MOST_NEEDED))
    none = vars(Standing("Large reads", ("sizes",), 1, False))
    stop = {"why": "time", "took_s": 312.0, "limit_s": 300.0, "others": 1.3, "standings": [noisy, wild, none]}
    made.meta |= {"stop": stop, "clock_steps": [0.5]}
    assert outlook.sentences(made.meta) == [
        "Measured for 5 min 12 s: 12 s longer than it had (5 min 0 s).",
        "There was no time for 3 repeats of sizes (1).",
        "Mixed load is not settled after 3 repeats: known to ±50%, as a repeat varies by 9%. About 17 more would "
        "settle it.",
        "Large writes is not settled after 3 repeats: known to a factor of 7.9, as a repeat varies by 34%. Even 1000 "
        "would not settle it.",
        "Large reads: 1 of 3 repeats, so there is no verdict.",
        "Why: other processes took 1.3 of 2 cores while it measured.",
        "The clock was stepped while it ran, by +0.50 s: times may be wrong.",
    ]
    stop |= {"why": "settled", "took_s": 100.0, "others": 0.0, "standings": [vars(Standing("x", (), 3, True))]}
    made.meta |= {"clock_steps": []}
    said = outlook.sentences(made.meta)
    assert said[:2] == ["Measured for 1 min 40 s of 5 min 0 s.", "It ended there: every use is known well enough."]
    assert outlook.sentences({"cells": []}) == [], "an older run"
