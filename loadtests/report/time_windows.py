"""Work and latency by second: warp's throughput windows, and a heat map."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sluice_s3.loadtests.report.loader import Group

BANDS = 4
"""Bands of a heat map for a doubling of the latency, up to MOST_BANDS in all."""
MOST_BANDS = 18
MOST_COLUMNS = 48


@dataclass(frozen=True)
class Window:
    """One second: its beginning (since the run's), and the work done in it."""

    start: float
    objects: float
    bytes: float


@dataclass(frozen=True)
class Heat:
    """How many requests ended in each column of time and band of latency.

    Column n begins `width` * n seconds after the first request; band n begins at `floor` * `step` ** n seconds.
    """

    width: float
    floor: float
    step: float
    columns: int
    bands: int
    counts: dict[tuple[int, int], int]


def windows(groups: Sequence[Group]) -> list[Window]:
    """Return whole seconds from the first request's beginning.

    A request counts in each second by the share of its time that lies in it, as with warp. The last second, which is
    not whole, is left out unless it is the only one.
    """
    filled = [group for group in groups if group.totals]
    if not filled:
        return []
    begin = min(group.first for group in filled)
    count = max(1, math.floor(max(group.last for group in filled) - begin))
    objects, moved = [0.0] * count, [0.0] * count
    for group in filled:
        each = group.moved / len(group.totals)
        for start, total in zip(group.starts, group.totals, strict=True):
            for at, share in shares(start - begin, total, count):
                objects[at] += share
                moved[at] += share * each
    return [Window(begin + at, objects[at], moved[at]) for at in range(count)]


def shares(start: float, total: float, count: int) -> Iterable[tuple[int, float]]:
    """Yield (second, share) of a request that began `start` seconds after the first.

    Shares add up to 1, less what lies behind the last second.
    """
    first, end = int(start), start + total
    if end < first + 1 or total <= 0:
        if first < count:
            yield first, 1.0
        return
    for at in range(first, min(count, math.ceil(end))):
        yield at, (min(end, at + 1) - max(start, at)) / total


def heat(groups: Sequence[Group]) -> Heat | None:
    """Return the heat map of all rows of these groups; None if there are none."""
    filled = [group for group in groups if group.totals]
    if not filled:
        return None
    begin, end = min(group.first for group in filled), max(group.last for group in filled)
    floor = max(1e-6, min(min(group.totals) for group in filled))
    ceiling = max(max(group.totals) for group in filled)
    doublings = max(1.0, math.log2(max(ceiling, floor * 2) / floor))
    bands = min(MOST_BANDS, math.ceil(doublings * BANDS))
    step = 2 ** (doublings / bands)
    columns = max(1, min(MOST_COLUMNS, math.ceil((end - begin) / 0.25)))
    width = max(end - begin, 1e-6) / columns
    counts: dict[tuple[int, int], int] = {}
    for group in filled:
        for start, total in zip(group.starts, group.totals, strict=True):
            column = min(columns - 1, int((start + total - begin) / width))
            band = min(bands - 1, int(math.log(max(total, floor) / floor) / math.log(step) + 1e-9))
            counts[column, band] = counts.get((column, band), 0) + 1
    return Heat(width, floor, step, columns, bands, counts)
