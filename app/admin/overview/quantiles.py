"""Quantiles from histograms with fixed buckets: no better than a bucket is wide."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple


class Quantile(NamedTuple):
    """A quantile in seconds, and the bucket in which it lies."""

    estimate: float
    """As if the values were spread evenly over the bucket."""
    low: float
    high: float | None
    """None: it is over the last bound."""


def find_quantile(bounds: Sequence[float], counts: Sequence[float], share: float) -> Quantile | None:
    """Return the value below which `share` of the counted ones lie; None when there are none.

    `counts` has one more element than `bounds`: what is over the last one.
    """
    total = sum(counts)
    if total <= 0:
        return None
    wanted = share * total
    for number, reached in enumerate(accumulate(counts)):
        if reached >= wanted and counts[number] > 0:
            low = bounds[number - 1] if number else 0.0
            if number == len(bounds):
                return Quantile(low, low, None)
            part = (wanted - (reached - counts[number])) / counts[number]
            return Quantile(low + (bounds[number] - low) * part, low, bounds[number])
    return None
