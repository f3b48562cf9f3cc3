"""Means, percentiles and the like, of seconds or of anything else.

Nothing here reads files.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

CURVE = (0.0, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.9995, 0.9999)
"""Shares of the requests at which a latency curve has its points."""


@dataclass(frozen=True)
class Spread:
    """Statistics of a sample, in its unit.

    `sigma` is the sample's standard deviation, 0 for a single value.
    """

    count: int
    mean: float
    sigma: float
    best: float
    p25: float
    p50: float
    p75: float
    p90: float
    p99: float
    worst: float


def percentile(ascending: Sequence[float], share: float) -> float:
    """Return the value below which `share` (0 to 1) of a sorted sample lies.

    It is linear between neighbours, the same as `statistics.quantiles(method="inclusive")`. Raises ValueError for an
    empty sample.
    """
    if not ascending:
        raise ValueError("no values")
    at = share * (len(ascending) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ascending) - 1)
    return ascending[low] + (ascending[high] - ascending[low]) * (at - low)


def mean(values: Sequence[float]) -> float:
    """Return the mean. Raises ValueError for an empty sample."""
    if not values:
        raise ValueError("no values")
    return math.fsum(values) / len(values)


def sigma(values: Sequence[float]) -> float:
    """Return a sample's standard deviation (divisor n - 1); 0 below two values."""
    if len(values) < 2:
        return 0.0
    middle = mean(values)
    return math.sqrt(math.fsum((one - middle) ** 2 for one in values) / (len(values) - 1))


def spread(values: Iterable[float]) -> Spread | None:
    """Return the statistics of any sample; None for an empty one."""
    ascending = sorted(values)
    if not ascending:
        return None
    p25, p50, p75, p90, p99 = (percentile(ascending, share) for share in (0.25, 0.5, 0.75, 0.9, 0.99))
    return Spread(
        len(ascending), mean(ascending), sigma(ascending), ascending[0], p25, p50, p75, p90, p99, ascending[-1]
    )


def curve(values: Iterable[float]) -> list[tuple[float, float]]:
    """Return (share, value) at the shares of CURVE that the sample is large enough for.

    The last is its largest value at share 1.
    """
    ascending = sorted(values)
    if not ascending:
        return []
    known = [share for share in CURVE if share <= 0.5 or (1 - share) * len(ascending) >= 1]
    return [(share, percentile(ascending, share)) for share in known] + [(1.0, ascending[-1])]


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values.

    Raises ValueError for an empty sample, or one that is not positive.
    """
    if not values or min(values) <= 0:
        raise ValueError("no positive values")
    return math.exp(math.fsum(math.log(one) for one in values) / len(values))
