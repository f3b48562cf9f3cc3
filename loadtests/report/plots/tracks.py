"""Bars and dots of one line each, which a page stretches to the width that it has."""

from __future__ import annotations

from collections.abc import Sequence

from sluice_s3.loadtests.report.plots import svg

LENGTH, HEIGHT = 1000, 14
"""Units along and across of a bar. It is stretched along only."""
ROOM = 1.25
"""A line of dots reaches so many times the largest value, and as far below the smallest."""
EDGE = 2.5
"""Percent that a line of dots leaves free at both ends."""


def bar(words: str, value: float, low: float | None, high: float | None, top: float, index: int | None) -> str:
    """Draw a value from 0 with its interval, which is cut off at `top`.

    `index` is the colour of the target, None for no colour.
    """
    across = svg.Scale(0, top or 1.0, 0, LENGTH)
    kind = "block" if index is None else f"block {svg.colour(index)}"
    drawn = [svg.tag("rect", x=0, y=2, width=across.at(value), height=HEIGHT - 4, class_=kind)]
    if low is not None and high is not None:
        middle = HEIGHT / 2
        drawn.append(svg.tag("line", x1=across.at(low), x2=across.at(high), y1=middle, y2=middle, class_="reach"))
        drawn += [
            svg.tag("line", x1=across.at(one), x2=across.at(one), y1=middle - 3, y2=middle + 3, class_="reach")
            for one in (low, high)
            if one <= (top or 1.0)
        ]
    return _line(words, *drawn)


def dots(words: str, values: Sequence[tuple[str, float, float | None, float | None, int, bool]]) -> str:
    """Draw many values on one logarithmic line, each as a dot with the number of its target. Intervals are cut off.

    A value is (words, value, low, high, index of the target, whether it has a colour). Places are in percent, so that
    the numbers are not stretched with the line.
    """
    known = [value for _, value, _, _, _, _ in values if value > 0]
    low, high = (min(known) / ROOM, max(known) * ROOM) if known else (1.0, 10.0)
    across = svg.Scale(low, high, EDGE, 100 - EDGE, log=True)
    drawn = [svg.tag("line", x1="0%", x2="100%", y1="50%", y2="50%", class_="rail")]
    for _, _, least, most, _, _ in values:
        if least and most:
            ends = {"x1": _percent(across.at(least)), "x2": _percent(across.at(most))}
            drawn.append(svg.tag("line", **ends, y1="50%", y2="50%", class_="spread"))
    for name, value, _, _, index, coloured in sorted(values, key=lambda one: one[5]):
        parts = [svg.hover_title(name)]
        at = _percent(across.at(value))
        kind = f"spot {svg.colour(index)}" if coloured else "spot"
        parts.append(svg.tag("circle", cx=at, cy="50%", r=8, class_=kind))
        parts.append(svg.tag("text", str(index + 1), x=at, y="50%", dy="3.5", class_="middle"))
        drawn.append(svg.tag("g", *parts))
    return svg.tag(
        "svg", svg.hover_title(words), *drawn,
        width="100%", height="18", role="img", class_="dots", xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def _percent(place: float) -> str:
    return f"{place:.1f}%"


def _line(words: str, *drawn: str) -> str:
    return svg.tag(
        "svg", svg.hover_title(words), *drawn,
        viewBox=f"0 0 {LENGTH} {HEIGHT}", preserveAspectRatio="none", role="img", xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip
