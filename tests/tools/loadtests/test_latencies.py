"""Times of many requests as a histogram, and what a closed loop hides."""

from __future__ import annotations

import random

import pytest

from sluice_s3.loadtests.latencies import Latencies


def of(times: list[float]) -> Latencies:
    found = Latencies()
    for time in times:
        found.add(time)
    return found


def test_percentiles_are_exact_to_half_a_percent() -> None:
    draw = random.Random(1)
    times = [draw.lognormvariate(-6, 2) for _ in range(5000)]
    found = of(times)
    times.sort()
    for share in (0.01, 0.5, 0.9, 0.99, 1.0):
        assert found.percentile(share) == pytest.approx(times[max(0, round(share * 5000) - 1)], rel=0.006)
    assert Latencies().percentile(0.99) == 0.0


def test_histograms_of_several_processes_are_one() -> None:
    first, second, whole = of([0.001] * 98), of([1.0, 2.0]), of([0.001] * 98 + [1.0, 2.0])
    sent = Latencies([(int(band), int(count)) for band, count in second.pairs()])
    first.merge(sent)
    assert (first.count, sorted(first.pairs())) == (100, sorted(whole.pairs()))


def test_a_stall_counts_for_all_that_were_due_in_it() -> None:
    """One of a thousand operations of 1 ms takes a second: at one in 2 ms, 499 others were held up by it."""
    found = of([0.001] * 999 + [1.0])
    assert found.percentile(0.99) == pytest.approx(0.001, rel=0.01)
    even = found.without_omission(0.002)
    assert even.count == pytest.approx(1000 + 499, abs=3)
    assert even.percentile(0.99) == pytest.approx(0.97, rel=0.02)
    assert found.count == 1000


def test_nothing_is_added_where_nothing_was_held_up() -> None:
    assert of([0.001] * 10).without_omission(0.002).count == 10
    assert of([0.001] * 10).without_omission(0.0).count == 10
