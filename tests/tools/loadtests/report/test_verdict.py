"""Whether a store is called faster when it is, and only then: over many seeds, with the noise of shared machines."""

from __future__ import annotations

import math
import random
import statistics
from pathlib import Path

import pytest

from sluice_s3.loadtests.report import significance, verdict
from sluice_s3.loadtests.report.model import of_run
from sluice_s3.loadtests.report.significance import compare
from sluice_s3.loadtests.report.use_cases import measures
from tests.support.environment import sized
from tests.tools.loadtests.report.making import Made, row, steady, target

TRIES = sized(40, 600)


def drawn(source: random.Random, speed: float, sigma: float, repeats: int = 3) -> list[float]:
    return [speed * math.exp(source.gauss(0, sigma)) for _ in range(repeats)]


def called(speed: float, sigma: float, repeats: int = 3) -> dict[str, float]:
    """Shares of the calls of one store against another that is `speed` times as fast."""
    source = random.Random(f"{speed} {sigma} {repeats}")
    calls = [compare(drawn(source, speed, sigma, repeats), drawn(source, 1, sigma, repeats)).call for _ in range(TRIES)]
    return {call: calls.count(call) / TRIES for call in set(calls)}


@pytest.mark.parametrize("sigma", [0.01, 0.03, 0.06, 0.12])
def test_the_same_disk_twice_is_hardly_ever_called_different(sigma: float) -> None:
    calls = called(1.0, sigma)
    assert calls.get("faster", 0) + calls.get("slower", 0) <= 0.03


def test_the_same_disk_twice_is_no_difference() -> None:
    assert called(1.0, 0.03)["no difference"] >= 0.97


@pytest.mark.parametrize(("sigma", "repeats"), [(0.01, 3), (0.03, 3), (0.06, 5)])
def test_a_store_slowed_by_a_fifth_is_found(sigma: float, repeats: int) -> None:
    calls = called(0.8, sigma, repeats)
    assert calls["slower"] >= 0.9
    assert "faster" not in calls


def test_too_much_noise_is_said() -> None:
    assert called(1.0, 0.3).get("too noisy", 0) >= 0.9


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    source = random.Random(9)
    inside = 0
    for _ in range(TRIES):
        found = compare(drawn(source, 1.5, 0.1), drawn(source, 1.0, 0.1))
        assert found.low is not None
        assert found.high is not None
        inside += found.low <= 1.5 <= found.high
    assert inside / TRIES >= 0.96


def test_an_interval_is_about_as_wide_as_students() -> None:
    """t with 4 degrees of freedom at 99 % is 4.604."""
    source = random.Random(3)
    ratios = []
    for _ in range(30):
        a, b = (tuple(source.gauss(0, 1) for _ in range(3)) for _ in range(2))
        error = math.sqrt((statistics.variance(a) + statistics.variance(b)) / 3)
        ratios.append(significance.half_width(a, b, 0.99) / error)
    assert statistics.median(ratios) == pytest.approx(4.604, rel=0.15)


def test_the_same_figures_give_the_same_interval() -> None:
    significance.half_width.cache_clear()
    first = compare([1.0, 1.1, 1.2], [1.5, 1.6, 1.4])
    significance.half_width.cache_clear()
    assert compare([1.0, 1.1, 1.2], [1.5, 1.6, 1.4]) == first


def test_few_repeats_none_and_those_without_any_noise() -> None:
    assert compare([1.0, 1.0], [2.0, 2.0, 2.0]).call == "too few repeats"
    assert compare([1.0], [2.0]) == significance.Difference(0.5, None, None, "too few repeats")
    assert compare([], [1.0]).call == "not measured"
    assert compare([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]).call == "not measured"
    assert compare([2.0] * 3, [1.0] * 3).call == "faster"
    assert compare([1.0] * 3, [1.0] * 3).call == "no difference"
    assert compare([1.04] * 3, [1.0] * 3).call == "no difference"


def test_more_stores_ask_for_more() -> None:
    a, b = [1.0, 1.02, 0.98], [1.1, 1.08, 1.12]
    one, three = compare(a, b), compare(a, b, comparisons=3)
    assert (three.low or 0) < (one.low or 0)


def run_of(directory: Path, slow: float, sigma: float, seed: int, repeats: int = 3) -> Made:
    """Two stores over all uses; `b` takes `slow` times as long, and each repeat has a mood of its own."""
    source = random.Random(seed)
    made = Made(directory, ("a", "b"), ["sizes", "stat_delete_list", "batches"])
    for name, factor in (("a", 1.0), ("b", slow)):
        for repeat in range(1, repeats + 1):
            for scenario, kinds in {
                "sizes": [("GET", 100_000, 0.004, ""), ("PUT", 100_000, 0.009, ""), ("GET", 10**7, 0.04, ""),
                          ("PUT", 10**7, 0.09, "")],
                "stat_delete_list": [("STAT", 0, 0.001, "keys-1000"), ("DELETE", 0, 0.003, "keys-1000")],
                "batches": [("PUT", 1000, 0.003, "batch-1"), ("PUT", 1000, 0.003, "batch-2")],
            }.items():  # fmt: skip
                mood = math.exp(source.gauss(0, sigma))
                rows = []
                for operation, size, seconds, stage in kinds:
                    times = [seconds * factor * mood * source.lognormvariate(0, 0.1) for _ in range(12)]
                    rows += steady(times, operation, size=size, bytes=size, stage=stage)
                made.cell(name, scenario, repeat, rows)
    return made


def test_the_verdict_of_the_same_disk_and_of_a_slower_one(tmp_path: Path) -> None:
    wrong = found = 0
    tries = sized(6, 100)
    for seed in range(tries):
        same = verdict.judge(of_run(run_of(tmp_path / f"same-{seed}", 1.0, 0.03, seed).write()))
        wrong += any(one.call in ("a", "b") for one in same.judgements)
        slow = verdict.judge(of_run(run_of(tmp_path / f"slow-{seed}", 1.25, 0.03, seed).write()))
        together = slow.judgements[-1]
        assert together.use is verdict.TOGETHER
        found += together.call == "a"
        assert not slow.noisy
    assert wrong <= math.ceil(tries / 10)
    assert found >= 0.9 * tries


def test_what_is_said(tmp_path: Path) -> None:
    found = verdict.judge(of_run(run_of(tmp_path / "r", 1.5, 0.01, 1).write()))
    first = found.judgements[0]
    assert (first.use.name, first.call) == ("Large reads", "a")
    assert verdict.sentence(first).startswith("a is faster than b by ")
    assert verdict.headline(found.judgements)[0].startswith("Take a for large reads, large writes, ")
    same = verdict.judge(of_run(run_of(tmp_path / "s", 1.0, 0.01, 1).write()))
    assert verdict.sentence(same.judgements[0]).startswith("No difference between ")
    assert verdict.headline(same.judgements)[0].startswith("No difference: large reads, ")


def test_one_repeat_is_told_and_not_judged(tmp_path: Path) -> None:
    found = verdict.judge(of_run(run_of(tmp_path / "r", 2.5, 0.01, 1, repeats=1).write()))
    assert {one.call for one in found.judgements} == {"too few repeats"}
    assert "Fewer than three repeats: a was measured faster than b by a factor of" in verdict.sentence(
        found.judgements[0]
    )
    assert found.restless is None
    assert verdict.headline(found.judgements)[0].startswith("Not called, with fewer than three repeats: ")


def test_who_fails_at_once_is_not_the_fastest(tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    for repeat in (1, 2, 3):
        made.cell("a", "mixed", repeat, steady([0.01] * 50))
        failed = [row(start=5.0, total_s=0.0001, error="NoSuchKey: it is gone") for _ in range(25)]
        made.cell("b", "mixed", repeat, [*steady([0.001] * 25), *failed])
    (mixed,) = verdict.judge(of_run(made.write())).judgements
    assert mixed.best == "a"
    assert "b: 50 % of its requests failed" in verdict.sentence(mixed)


def test_the_mix_is_told_by_its_meant_shares(tmp_path: Path) -> None:
    """20 clients; 45 % of 10 ms, 30 % of 2 ms, 15 % of 40 ms, 10 % of 4 ms: 11.5 ms each."""
    rows = [
        row(operation, start=0.0, total_s=seconds, users=20)
        for operation, seconds, count in (("GET", 0.01, 5), ("STAT", 0.002, 9), ("PUT", 0.04, 1), ("DELETE", 0.004, 3))
        for _ in range(count)
    ]
    (found,) = measures(of_run(Made(tmp_path / "r", ("a",)).cell("a", "mixed", 1, rows).write()))
    assert found.speeds[1] == pytest.approx(20 / 0.0115)
    assert found.render() == "1,739/s"
    other = Made(tmp_path / "r2", ("a",)).cell("a", "mixed", 1, rows)
    other.meta["plan"]["scenarios"]["mixed"]["arguments"]["mix"] = "GET=1,PUT=3"
    (found,) = measures(of_run(other.write()))
    assert found.speeds[1] == pytest.approx(20 / (0.25 * 0.01 + 0.75 * 0.04))


def test_plain_files_are_what_the_gateway_is_set_against(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", ("a",))
    made.meta["targets"].append(target("a-direct", "direct"))
    for repeat in (1, 2, 3):
        made.cell("a", "mixed", repeat, steady([0.02, 0.021, 0.0205]))
        made.cell("a-direct", "mixed", repeat, steady([0.01, 0.0105, 0.01025]))
    found = verdict.judge(of_run(made.write()))
    assert [list(one.scores) for one in found.judgements] == [["a"]]
    (cost,) = found.costs
    assert cost.over["Mixed load"].ratio == pytest.approx(0.5)
    assert verdict.sentence(found.judgements[0]) == "Only one store was measured."


def test_a_store_that_lacks_a_figure_is_compared_by_the_others(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", ("a", "b"), ["sizes"])
    for repeat in (1, 2, 3):
        both = steady([0.01] * 3, size=10**6)
        made.cell("a", "sizes", repeat, [*both, *steady([9.0] * 3, size=10**7)])
        made.cell("b", "sizes", repeat, both)
    (found,) = verdict.judge(of_run(made.write())).judgements
    assert found.figures == ["sizes GET 1 MB"]
    assert found.call == "no difference"


def test_a_generator_at_its_end_is_told(tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    for repeat in (1, 2, 3):
        made.cell("a", "mixed", repeat, steady([0.5] * 4))
        made.cell("b", "mixed", repeat, steady([0.5] * 4))
    made.resources({"time": 2.0, "target": "b", "who": "generator", "cpu": 0.97})
    (mixed,) = verdict.judge(of_run(made.write())).judgements
    assert mixed.limited == ["b"]
    assert verdict.sentence(mixed).endswith("The generator was the bottleneck with b.")


def test_a_restless_run_is_called_noisy(tmp_path: Path) -> None:
    found = verdict.judge(of_run(run_of(tmp_path / "r", 1.0, 0.4, 3).write()))
    assert found.noisy
    quiet = verdict.judge(of_run(run_of(tmp_path / "s", 1.0, 0.02, 3).write()))
    assert quiet.restless is not None
    assert quiet.restless < 0.06


def test_two_that_are_told_from_a_third_but_not_from_each_other(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", ("a", "slow", "b"))
    for repeat in (1, 2, 3):
        for name, seconds in (("a", 0.01), ("slow", 0.0125), ("b", 0.0099)):
            made.cell(name, "mixed", repeat, steady([seconds * (1 + 0.005 * repeat)] * 9))
    found = verdict.judge(of_run(made.write()))
    (mixed,) = found.judgements
    assert (mixed.best, mixed.winners, mixed.call) == ("b", ["a", "b"], "a or b")
    assert verdict.headline(found.judgements) == ["Take a or b for mixed load."]
    assert "b is faster than slow by 26 %" in verdict.sentence(mixed)
    assert "No difference between b and a" in verdict.sentence(mixed)


def test_nobody_wins_where_one_is_too_noisy_and_the_other_the_same() -> None:
    scores = {name: verdict.Score(name, {1: 1.0}, 0.0) for name in "abc"}
    over = {
        "b": significance.Difference(1.01, 0.9, 1.1, "no difference"),
        "c": significance.Difference(1.2, 0.6, 2.4, "too noisy"),
    }
    one = verdict.Judgement(verdict.TOGETHER, [], scores, "a", over, [])
    assert (one.winners, one.call) == ([], "too noisy")


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (1.23, 1.12, 1.35, " by 23 % (12 to 35 %)"),
        (1.1, 0.8, 1.5, " by 10 % (-20 to 50 %)"),
        (3.5, 2.9, 4.2, " by a factor of 3.5 (2.9 to 4.2 times as fast)"),
        (1.36, 0.014, 137.0, " by 36 % (0.014 to 137 times as fast)"),
        (1.36, 0.0002, 9000.0, " by 36 % (the interval is wider than 1/1,000 to 1,000 times)"),
        (1.5, None, None, " by 50 %"),
    ],
)
def test_margins_in_words(ratio: float, low: float | None, high: float | None, said: str) -> None:
    assert verdict.margin(significance.Difference(ratio, low, high, "faster")) == said
