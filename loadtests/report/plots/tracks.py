"""Bars and dots of one line each, which a page stretches to the width that it has."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sluice_s3.loadtests.report.plots import svg

LENGTH, HEIGHT = 1000, 14
"""Units along and across of one line. It is stretched along only."""


def bar(words: str, value: float, low: float | None, high: float | None, top: float, index: int | None) -> str:
    """Draw a value from 0 with its interval. `index` is the colour of the target, None for no colour."""
    across = svg.Scale(0, top or 1.0, 0, LENGTH)
    kind = "block" if index is None else f"block {svg.colour(index)}"
    drawn = [svg.tag("rect", x=0, y=2, width=across.at(value), height=HEIGHT - 4, class_=kind)]
    if low is not None and high is not None:
        middle = HEIGHT / 2
        drawn.append(svg.tag("line", x1=across.at(low), x2=across.at(high), y1=middle, y2=middle, class_="reach"))
        drawn += [
            svg.tag("line", x1=across.at(one), x2=across.at(one), y1=middle - 3, y2=middle + 3, class_="reach")
            for one in (low, high)
        ]
    return _line(words, *drawn)


def dots(words: str, values: Sequence[tuple[str, float, float | None, float | None, int | None]]) -> str:
    """Draw many values on one logarithmic line: (words, value, low, high, colour of the target or None)."""
    known = [one for _, *three, _ in values for one in three if one]
    low, high = (min(known) / 1.05, max(known) * 1.05) if known else (1.0, 10.0)
    across = svg.Scale(low, high, 0, LENGTH, log=math.isfinite(high / low))
    middle = HEIGHT / 2
    drawn = [svg.tag("line", x1=0, x2=LENGTH, y1=middle, y2=middle, class_="rail")]
    for name, value, least, most, index in sorted(values, key=lambda one: one[4] is not None):
        parts = [svg.hover_title(name)]
        if least and most:
            parts.append(
                svg.tag("line", x1=across.at(least), x2=across.at(most), y1=middle, y2=middle, class_="spread")
            )
        at = across.at(value)
        kind = "spot" if index is None else f"spot {svg.colour(index)}"
        parts.append(svg.tag("line", x1=at, x2=at, y1=middle, y2=middle, class_=kind))
        drawn.append(svg.tag("g", *parts))
    return _line(words, *drawn)


def _line(words: str, *drawn: str) -> str:
    return svg.tag(
        "svg", svg.hover_title(words), *drawn,
        viewBox=f"0 0 {LENGTH} {HEIGHT}", preserveAspectRatio="none", role="img", xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip
