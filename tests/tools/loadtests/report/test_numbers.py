"""Percentiles and the like, against values worked out by hand and against the standard library."""

from __future__ import annotations

import math
import random
import statistics

import pytest

from sluice_s3.loadtests.report import stats, units


def test_a_spread_by_hand() -> None:
    found = stats.spread([4.0, 1.0, 3.0, 2.0, 5.0])
    assert found is not None
    assert (found.count, found.mean, found.best, found.worst) == (5, 3.0, 1.0, 5.0)
    assert (found.p25, found.p50, found.p75, found.p90) == (2.0, 3.0, 4.0, pytest.approx(4.6))
    assert found.sigma == pytest.approx(math.sqrt(2.5))


def test_as_the_standard_library_has_it() -> None:
    source = random.Random(5)
    for count in (2, 3, 10, 101, 1000):
        values = [source.lognormvariate(0, 1) for _ in range(count)]
        found = stats.spread(values)
        assert found is not None
        hundredths = statistics.quantiles(values, n=100, method="inclusive")
        for share, value in ((25, found.p25), (50, found.p50), (75, found.p75), (90, found.p90), (99, found.p99)):
            assert value == pytest.approx(hundredths[share - 1])
        assert found.mean == pytest.approx(statistics.fmean(values))
        assert found.sigma == pytest.approx(statistics.stdev(values))
        assert stats.geometric(values) == pytest.approx(statistics.geometric_mean(values))


def test_one_value_and_none() -> None:
    one = stats.spread([0.5])
    assert one is not None
    assert (one.p50, one.p99, one.sigma) == (0.5, 0.5, 0.0)
    assert stats.spread([]) is None
    assert stats.curve([]) == []
    for empty in (stats.mean, stats.geometric):
        with pytest.raises(ValueError):
            empty([])
    with pytest.raises(ValueError):
        stats.percentile([], 0.5)
    with pytest.raises(ValueError):
        stats.geometric([1.0, 0.0])


def test_a_curve_ends_where_its_sample_does() -> None:
    shares = [share for share, _ in stats.curve([float(one) for one in range(100)])]
    assert shares[-1] == 1.0
    assert 0.99 in shares
    assert 0.995 not in shares
    assert stats.curve([2.0]) == [(0.0, 2.0), (0.05, 2.0), (0.1, 2.0), (0.25, 2.0), (0.5, 2.0), (1.0, 2.0)]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (0.01234, "0.0123"), (9.999, "10.0"), (12.345, "12.3"), (123.4, "123"), (1234567, "1,234,567")],
)
def test_three_digits_that_count(value: float, shown: str) -> None:
    assert units.significant(value) == shown


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        (units.seconds(0.00057), "570 µs"),
        (units.seconds(0.0345), "34.5 ms"),
        (units.seconds(70.66), "70.7 s"),
        (units.seconds(None), ""),
        (units.size(100_000), "100 KB"),
        (units.size(10 * 2**20), "10 MiB"),
        (units.size(1024), "1 KiB"),
        (units.size(1_000_000), "1 MB"),
        (units.size(10**10), "10 GB"),
        (units.size(1_024_000), "1,000 KiB"),
        (units.size(0), "0 B"),
        (units.size(512), "512 B"),
        (units.decimal(4_360_000), "4.36 MB"),
        (units.percent(0.1234), "12 %"),
        (units.percent(-0.0537, sign=True), "-5.4 %"),
        (units.trim_zeros("2.50 ms"), "2.5 ms"),
        (units.trim_zeros("50.0"), "50"),
        (units.trim_zeros("100"), "100"),
    ],
)
def test_as_people_read_them(shown: str, wanted: str) -> None:
    assert shown == wanted
