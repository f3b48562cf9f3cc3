"""Curves: several series over one axis, with marks at the points if they are few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sluice_s3.loadtests.report.plots import svg
from sluice_s3.loadtests.report.plots.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Scale
from sluice_s3.loadtests.report.units import significant

MARKED = 40
"""The most points of a series with a mark at each."""


@dataclass(frozen=True)
class Series:
    """Points (x, y) of the n-th target.

    `spread` are (x, low, high) drawn as bars, `rings` points that are marked, `names` words beside each point. A
    `faint` series is a repeat beside others.
    """

    name: str
    index: int
    points: Sequence[tuple[float, float]]
    spread: Sequence[tuple[float, float, float]] = ()
    faint: bool = False
    rings: Sequence[tuple[float, float]] = ()
    names: Sequence[str] = ()


@dataclass(frozen=True)
class Rule:
    """A line across the plot at a value of y."""

    value: float
    name: str


@dataclass(frozen=True)
class Axis:
    """An axis of a plot.

    `ticks` replace the default round numbers. With `zero` it begins at 0, and has room at its end.
    """

    label: str
    log: bool = False
    format: Callable[[float], str] = significant
    ticks: Sequence[float] | None = None
    zero: bool = False


def plot(title: str, series: Sequence[Series], x: Axis, y: Axis, rules: Sequence[Rule] = ()) -> str:
    """Draw all series, and lines across."""
    xs = [point[0] for one in series for point in one.points]
    ys = [point[1] for one in series for point in one.points]
    ys += [value for one in series for bar in one.spread for value in bar[1:]]
    ys += [rule.value for rule in rules]
    low, high = (min(xs), max(xs)) if xs else (1.0, 10.0)
    if x.log and xs:
        low, high = low / 1.1, high * 1.1
    if x.zero:
        low, high = 0.0, high * 1.06
    across = Scale(low, high, LEFT, WIDTH - RIGHT, x.log)
    up = Scale(*svg.padded(ys, log=y.log), HEIGHT - BOTTOM, TOP, y.log)
    lines = [_rule(one, across, up) for one in rules]
    drawn = "".join(_draw(one, across, up, x, y) for one in sorted(series, key=lambda one: not one.faint))
    return svg.picture(title, svg.axes(across, up, (x.label, y.label), (x.format, y.format), x.ticks), *lines, drawn)


def _rule(rule: Rule, across: Scale, up: Scale) -> str:
    at = up.at(rule.value)
    line = svg.tag("line", x1=across.begin, x2=across.end, y1=at, y2=at, class_="limit")
    return line + svg.text(across.end, at - 5, rule.name, class_="tick end")


def _draw(series: Series, across: Scale, up: Scale, x: Axis, y: Axis) -> str:
    at = [(across.at(px), up.at(py)) for px, py in series.points]
    kind = f"{svg.colour(series.index)}{' faint' if series.faint else ''}"
    elements = []
    if len(at) > 1:
        elements.append(
            svg.tag("polyline", points=" ".join(f"{px:.1f},{py:.1f}" for px, py in at), class_=f"line {kind}")
        )
    for px, low, high in series.spread:
        where = across.at(px)
        elements.append(svg.tag("line", x1=where, x2=where, y1=up.at(low), y2=up.at(high), class_=f"bar {kind}"))
    if len(at) <= MARKED and not series.faint:
        for (px, py), (left, top) in zip(series.points, at, strict=True):
            words = svg.hover_title(f"{series.name}: {x.format(px)}, {y.format(py)}")
            elements.append(svg.tag("circle", words, cx=left, cy=top, r=3.4, class_=f"dot {kind}"))
    for px, py in series.rings:
        elements.append(svg.tag("circle", cx=across.at(px), cy=up.at(py), r=8, class_=f"ring {kind}"))
    for name, (left, top) in zip(series.names, at, strict=False):
        elements.append(svg.text(left, top - 9, name, class_="tick middle"))
    return svg.tag("g", svg.hover_title(series.name), *elements) if elements else ""


def nines(share: float) -> float:
    """Return the position of a share on an axis with equal room for each nine: 0.9 → 1, 0.99 → 2."""
    return -math.log10(max(1e-5, 1 - share))


def percentiles(title: str, curves: Sequence[tuple[str, int, Sequence[tuple[float, float]]]], label: str,
                format_value: Callable[[float], str]) -> str:  # fmt: skip
    """Draw latency over the share of requests that were at least so fast.

    `curves` are (name, index, [(share, value)]).
    """
    series = []
    for name, index, points in curves:
        below = [(nines(share), value) for share, value in points if share < 1]
        series.append(Series(name, index, below))
    reached = max((px for one in series for px, _ in one.points), default=1.0)
    ticks = [nines(one) for one in (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999) if nines(one) <= reached + 1e-9]
    return plot(
        title,
        series,
        Axis("percentile of the requests (%)", format=_share, ticks=ticks),
        Axis(label, log=True, format=format_value),
    )


def _share(position: float) -> str:
    return f"{(1 - 10**-position) * 100:.6g}"
