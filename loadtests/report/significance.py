"""Whether two series of repeats differ by more than their own noise: a seeded bootstrap.

It is a smoothed, studentised bootstrap of the repeats' logarithms. Both series' deviations from their own means go into
one bag. Each draw takes as many as there are repeats, as if there were no difference, with a little normal noise, since
three repeats have few values. How large t = difference / its standard error gets by chance says how large it must be
here. A plain percentile bootstrap of three repeats is wrong in one case of six, since it knows no value beyond them.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from sluice_s3.loadtests.report.stats import mean

LEVEL = 0.99
"""The level of the intervals.

A report compares a dozen things, and 95 % would call one of them wrong in every second report.
"""
LOOKING = 2
"""A run that ends when its intervals are narrow looks at each many times: each comparison then counts as two.

With that the same disk twice is called different in 1 % of the comparisons, as without looking.
"""
DRAWS = 2000
SMOOTHING = 0.7
"""Standard deviation of the noise in a draw, in standard deviations of the repeats."""
MIN_REPEATS = 3
"""With fewer repeats, nothing is said about noise."""
MATTERS = 0.05
"""A smaller difference does not matter for the choice of a disk, however sure it is."""
NOISY = 0.30
"""The interval's reach beyond which an undecided comparison is too noisy.

A large difference could hide in it.
"""


@dataclass(frozen=True)
class Difference:
    """The difference of a to b.

    `ratio` is a / b with its interval; `call` is `faster`, `slower`, `no difference`, `too noisy`, `too few repeats` or
    `not measured`. Without three repeats on both sides there is no interval.
    """

    ratio: float | None
    low: float | None
    high: float | None
    call: str

    @property
    def sure(self) -> bool:
        """Whether the difference is outside the noise."""
        return self.call in ("faster", "slower")

    @property
    def reach(self) -> float:
        """How far the interval reaches to the side of a slower a, as a share.

        It is 0 without an interval.
        """
        return (self.ratio or 0) / self.low - 1 if self.low else 0.0


UNKNOWN = Difference(None, None, None, "not measured")


def compare(a: Sequence[float], b: Sequence[float], *, comparisons: int = 1) -> Difference:
    """Compare positive speeds (more is better) of the repeats of a and b.

    With several `comparisons` of the same kind the level is of all of them together (Bonferroni).
    """
    a, b = [one for one in a if one > 0], [one for one in b if one > 0]
    if not a or not b:
        return UNKNOWN
    logs = tuple(map(math.log, a)), tuple(map(math.log, b))
    ratio = math.exp(mean(logs[0]) - mean(logs[1]))
    if min(len(a), len(b)) < MIN_REPEATS:
        return Difference(ratio, None, None, "too few repeats")
    half = half_width(*logs, 1 - (1 - LEVEL) / max(1, comparisons))
    low, high = ratio * math.exp(-half), ratio * math.exp(half)
    return Difference(ratio, low, high, _call(ratio, low, high, half))


def interval(values: Sequence[float], other: Sequence[float], *, comparisons: int = 1) -> tuple[float, float] | None:
    """Return the interval of the mean of `values` (positive), with the noise that `compare` finds beside `other`.

    It is that interval's part of one series: half of one difference's width, by the numbers of repeats. None with
    fewer than three repeats on a side.
    """
    own, beside = [one for one in values if one > 0], [one for one in other if one > 0]
    if min(len(own), len(beside)) < MIN_REPEATS:
        return None
    logs = tuple(map(math.log, own)), tuple(map(math.log, beside))
    share = math.sqrt((1 / len(own)) / (1 / len(own) + 1 / len(beside)))
    half = half_width(*logs, 1 - (1 - LEVEL) / max(1, comparisons)) * share
    middle = mean(logs[0])
    return math.exp(middle - half), math.exp(middle + half)


def _call(ratio: float, low: float, high: float, half: float) -> str:
    if low > 1 and ratio >= 1 + MATTERS:
        return "faster"
    if high < 1 and ratio <= 1 / (1 + MATTERS):
        return "slower"
    return "too noisy" if math.expm1(half) > NOISY else "no difference"


@functools.lru_cache(maxsize=10_000)
def half_width(a: tuple[float, ...], b: tuple[float, ...], level: float) -> float:
    """Return half the width of the interval of mean(a) - mean(b).

    Each needs at least two values. The same input gives the same answer.
    """
    own = _error(a, b)
    if own == 0:
        return 0.0
    bag = [one - mean(series) for series in (a, b) for one in series]
    scale = SMOOTHING * math.sqrt(math.fsum(one * one for one in bag) / len(bag))
    source = random.Random(f"{len(a)} {len(b)} {level} {[round(one / own, 6) for one in bag]}")
    found = sorted(_drawn(source, bag, scale, len(a)) for _ in range(DRAWS))
    return own * found[min(DRAWS - 1, math.ceil(level * DRAWS))]


def _drawn(source: random.Random, bag: Sequence[float], scale: float, first: int) -> float:
    """Return how far apart two series drawn from one bag are, in standard errors.

    It uses plain sums, since it runs often.
    """
    gauss, last = source.gauss, len(bag) - first
    drawn = [one + gauss(0, scale) for one in source.choices(bag, k=len(bag))]
    x, y = drawn[:first], drawn[first:]
    left, right = sum(x) / first, sum(y) / last
    squares = sum([(one - left) ** 2 for one in x]) + sum([(one - right) ** 2 for one in y])
    return abs(left - right) / math.sqrt(squares / (first + last - 2) * (1 / first + 1 / last))


def _error(a: Sequence[float], b: Sequence[float]) -> float:
    """Return the standard error of the difference of their means.

    It takes the noise as the same in both.
    """
    left = math.fsum((one - mean(series)) ** 2 for series in (a, b) for one in series)
    return math.sqrt(left / (len(a) + len(b) - 2) * (1 / len(a) + 1 / len(b)))
