"""Whether two series of repeats differ by more than they differ among themselves: a bootstrap, seeded.

A smoothed, studentised bootstrap of the repeats' logarithms: both series' deviations from their own means are put into
one bag; as many are drawn (with a little normal noise, for three repeats have few values) as there are repeats, as if
there were no difference; how large t = difference / its standard error then gets by chance tells how large it must be
here. A plain percentile bootstrap of three repeats is wrong in one case of six, since it knows no value beyond them.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from loadtests.report.numbers import mean

LEVEL = 0.99
"""Of the intervals: a report compares a dozen things, and 95 % would call one of them wrong in every second report."""
DRAWS = 2000
SMOOTHING = 0.7
"""Standard deviation of the noise in a draw, in those of the repeats."""
LEAST = 3
"""Repeats below which nothing is said of noise."""
MATTERS = 0.05
"""A smaller difference is none to somebody who chooses a disk, however sure it is."""
NOISY = 0.30
"""Where the interval reaches farther than this to a side and nothing was found, much can hide in it."""


@dataclass(frozen=True)
class Difference:
    """Of a to b. `ratio` is a / b with its interval; `call` is `faster`, `slower`, `no difference`, `too noisy`,
    `too few repeats` or `not measured`. Without three repeats on both sides the interval is none."""

    ratio: float | None
    low: float | None
    high: float | None
    call: str

    @property
    def sure(self) -> bool:
        """Whether it is outside the noise."""
        return self.call in ("faster", "slower")

    @property
    def reach(self) -> float:
        """How far the interval reaches to the side of a slower a, as a share; 0 where there is none."""
        return (self.ratio or 0) / self.low - 1 if self.low else 0.0


UNKNOWN = Difference(None, None, None, "not measured")


def compare(a: Sequence[float], b: Sequence[float], *, comparisons: int = 1) -> Difference:
    """Speeds (more is better, all above 0) of the repeats of a and b. With several `comparisons` of the same kind the
    level is of all of them together (Bonferroni)."""
    a, b = [one for one in a if one > 0], [one for one in b if one > 0]
    if not a or not b:
        return UNKNOWN
    logs = tuple(map(math.log, a)), tuple(map(math.log, b))
    ratio = math.exp(mean(logs[0]) - mean(logs[1]))
    if min(len(a), len(b)) < LEAST:
        return Difference(ratio, None, None, "too few repeats")
    half = half_width(*logs, 1 - (1 - LEVEL) / max(1, comparisons))
    low, high = ratio * math.exp(-half), ratio * math.exp(half)
    return Difference(ratio, low, high, _call(ratio, low, high, half))


def _call(ratio: float, low: float, high: float, half: float) -> str:
    if low > 1 and ratio >= 1 + MATTERS:
        return "faster"
    if high < 1 and ratio <= 1 / (1 + MATTERS):
        return "slower"
    return "too noisy" if math.expm1(half) > NOISY else "no difference"


@functools.lru_cache(maxsize=10_000)
def half_width(a: tuple[float, ...], b: tuple[float, ...], level: float) -> float:
    """Of the interval of mean(a) - mean(b), from at least two values each. The same input gives the same answer."""
    own = _error(a, b)
    if own == 0:
        return 0.0
    bag = [one - mean(series) for series in (a, b) for one in series]
    scale = SMOOTHING * math.sqrt(math.fsum(one * one for one in bag) / len(bag))
    source = random.Random(f"{len(a)} {len(b)} {level} {[round(one / own, 6) for one in bag]}")
    found = sorted(_drawn(source, bag, scale, len(a)) for _ in range(DRAWS))
    return own * found[min(DRAWS - 1, math.ceil(level * DRAWS))]


def _drawn(source: random.Random, bag: Sequence[float], scale: float, first: int) -> float:
    """How far apart two series drawn from one bag are, in standard errors. Plain sums: this is done often."""
    gauss, last = source.gauss, len(bag) - first
    drawn = [one + gauss(0, scale) for one in source.choices(bag, k=len(bag))]
    x, y = drawn[:first], drawn[first:]
    left, right = sum(x) / first, sum(y) / last
    squares = sum([(one - left) ** 2 for one in x]) + sum([(one - right) ** 2 for one in y])
    return abs(left - right) / math.sqrt(squares / (first + last - 2) * (1 / first + 1 / last))


def _error(a: Sequence[float], b: Sequence[float]) -> float:
    """Standard error of the difference of their means, the noise taken as the same in both."""
    left = math.fsum((one - mean(series)) ** 2 for series in (a, b) for one in series)
    return math.sqrt(left / (len(a) + len(b) - 2) * (1 / len(a) + 1 / len(b)))
