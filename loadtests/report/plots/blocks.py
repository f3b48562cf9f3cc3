"""Heat maps, and bars with parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sluice_s3.loadtests.report.plots import svg
from sluice_s3.loadtests.report.plots.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale
from sluice_s3.loadtests.report.time_windows import Heat
from sluice_s3.loadtests.report.units import seconds, significant

ROW = 28
NAMES = 190
LEVELS = 8
"""Shades of a heat map in the style sheet."""
PARTS = 8
"""Colours of a bar's parts."""


def heat_map(title: str, found: Heat) -> str:
    """Draw how many requests ended when, and how slow: the darker, the more."""
    across = Scale(0, found.width * found.columns, LEFT, WIDTH - RIGHT)
    up = Scale(found.floor, found.floor * found.step**found.bands, HEIGHT - BOTTOM, TOP, log=True)
    most = max(found.counts.values())
    made = []
    for (column, band), count in sorted(found.counts.items()):
        low, high = found.floor * found.step**band, found.floor * found.step ** (band + 1)
        words = svg.hover_title(
            f"{count:,} requests of {seconds(low)} to {seconds(high)} in {significant(found.width)} s"
        )
        left, top = across.at(column * found.width), up.at(high)
        shade = 1 + int((LEVELS - 1) * math.log(count) / math.log(most)) if most > 1 else LEVELS
        made.append(
            svg.tag(
                "rect", words, x=left, y=top, width=across.at((column + 1) * found.width) - left,
                height=up.at(low) - top, class_=f"h{shade}",
            )
        )  # fmt: skip
    return svg.picture(title, svg.axes(across, up, ("time (s)", "latency"), (significant, seconds)), *made)


def stacked(
    title: str,
    rows: Sequence[tuple[str, Sequence[tuple[str, float]]]],
    names: Sequence[str],
    format_value: Callable[[float], str],
) -> str:
    """Draw a bar for each row, with (part, value) in the colours of `names`."""
    top, width = TOP + 4, WIDTH - RIGHT - 78
    high = max((sum(value for _, value in parts) for _, parts in rows), default=0.0) or 1.0
    across = Scale(0, high, NAMES, width)
    made = []
    for number, (name, parts) in enumerate(rows):
        y, at = top + number * ROW, 0.0
        made.append(svg.text(NAMES - 6, y + 16, _cut(name), class_="tick end"))
        for part, value in parts:
            left, right = across.at(at), across.at(at + value)
            at += value
            words = svg.hover_title(f"{name}, {part}: {format_value(value)}")
            kind = f"p{names.index(part) % PARTS}"
            made.append(svg.tag("rect", words, x=left, y=y, width=max(0.0, right - left), height=ROW - 6, class_=kind))
        made.append(svg.text(across.at(at) + 5, y + 16, format_value(at), class_="tick"))
    return svg.picture(title, *made, height=top + ROW * len(rows) + 4)


def intervals(title: str, rows: Sequence[tuple[str, int, float, float | None, float | None, str]], label: str) -> str:
    """Draw ratios with their intervals on an axis of factors, 1 in its middle.

    A row is (name, target's number, ratio, low, high, words to show).
    """
    known = [one for _, _, *three, _ in rows for one in three if isinstance(one, float)]
    reach = max([1.15, *(max(one, 1 / one) for one in known if one > 0)]) * 1.05
    bottom = TOP + ROW * len(rows) + 6
    across = Scale(1 / reach, reach, NAMES + 20, WIDTH - RIGHT, log=True)
    made = [svg.tag("line", x1=across.at(1), x2=across.at(1), y1=TOP, y2=bottom, class_="axis")]
    for value in across.ticks():
        made.append(svg.tag("line", x1=across.at(value), x2=across.at(value), y1=TOP, y2=bottom, class_="grid"))
        made.append(svg.text(across.at(value), bottom + 18, f"{value:g}x", class_="tick middle"))
    for number, (name, index, ratio, low, high, words) in enumerate(rows):
        y = TOP + ROW * number + ROW / 2
        made.append(svg.text(NAMES + 12, y + 4, _cut(name), class_="tick end"))
        parts = [svg.hover_title(words)]
        if low and high:
            parts.append(
                svg.tag("line", x1=across.at(low), x2=across.at(high), y1=y, y2=y, class_=f"bar {svg.colour(index)}")
            )
        parts.append(svg.tag("circle", cx=across.at(ratio), cy=y, r=5, class_=f"dot {svg.colour(index)}"))
        made.append(svg.tag("g", *parts))
    made.append(svg.text((NAMES + WIDTH) / 2, bottom + 38, label, class_="label middle"))
    return svg.picture(title, *made, height=bottom + 46)


def _cut(name: str) -> str:
    return name if len(name) <= 26 else f"{name[:25]}…"
