"""SVG elements as escaped text, and the scales of plots."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from sluice_s3.loadtests.report.units import significant, trim_zeros

WIDTH, HEIGHT = 640, 380
LEFT, RIGHT, TOP, BOTTOM = 84, 28, 34, 50
"""Margins of a plot's area, for its labels."""
COLOURS = 8
"""Colours of the style sheet.

The ninth target has the first one's, dashed.
"""


def tag(name: str, *children: str, **attributes: object) -> str:
    """Render an element.

    Attributes are escaped, children are not; `class_` is `class`, `stroke_width` is `stroke-width`.
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"'
        for key, value in attributes.items()
        if value is not None and value != ""
    )
    return f"<{name}{words}>{''.join(children)}</{name}>" if children else f"<{name}{words}/>"


def text(x: float, y: float, caption: str, **attributes: object) -> str:
    """Render words at a point."""
    return tag("text", escape(caption), x=x, y=y, **attributes)


def hover_title(caption: str) -> str:
    """Render the text that a browser shows on hover over the element around it."""
    return tag("title", escape(caption))


def colour(index: int) -> str:
    """Return the class of the n-th target."""
    return f"c{index % COLOURS}{' dashed' if index >= COLOURS else ''}"


def picture(title: str, *children: str, width: float = WIDTH, height: float = HEIGHT) -> str:
    """Render a whole plot."""
    heading = text(LEFT, 18, title, class_="heading")
    return tag(
        "svg", hover_title(title), heading, *children,
        viewBox=f"0 0 {_short(width)} {_short(height)}", role="img", xmlns="http://www.w3.org/2000/svg",
    )  # fmt: skip


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    return str(value)


@dataclass(frozen=True)
class Scale:
    """Maps numbers `low` to `high` to pixels `begin` to `end`."""

    low: float
    high: float
    begin: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a number; numbers outside are put at the edge."""
        low, high, value = (self._bent(one) for one in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return self.begin + (self.end - self.begin) * min(1.0, max(0.0, share))

    def ticks(self) -> list[float]:
        """Return about five round numbers within the scale."""
        return log_ticks(self.low, self.high) if self.log else linear_ticks(self.low, self.high)

    def _bent(self, value: float) -> float:
        return math.log10(max(value, 1e-12)) if self.log else value


def linear_ticks(low: float, high: float) -> list[float]:
    """Return steps of 1, 2 or 5."""
    if high <= low:
        return [low]
    rough = (high - low) / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(one * power for one in (1, 2, 5, 10) if one * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round((first + n) * step, 12) for n in range(int((high - first * step) / step + 1e-9) + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return powers of ten, with others between them if they are few."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    decades = math.log10(high / low)
    steps: tuple[float, ...] = (1, 2, 5) if decades <= 2 else ((1, 3) if decades <= 3 else (1,))
    if decades <= 1:
        steps = (1, 1.5, 2, 3, 4, 5, 6, 8)
    found = [step * 10.0**power for power in powers for step in steps]
    found = [one for one in found if low * 0.999 <= one <= high * 1.001]
    return found[:: max(1, math.ceil(len(found) / 7))]


def padded(values: Sequence[float], *, log: bool) -> tuple[float, float]:
    """Return bounds for an axis of these values.

    A linear axis begins at 0; another has a little room.
    """
    known = [one for one in values if one > 0] if log else list(values)
    if not known:
        return (1.0, 10.0) if log else (0.0, 1.0)
    low, high = min(known), max(known)
    if log:
        return (low / 1.15, high * 1.15) if high / low > 1.5 else (low / 1.6, high * 1.6)
    return min(0.0, low), (high * 1.06 if high > 0 else 1.0)


def axes(
    x: Scale,
    y: Scale,
    labels: tuple[str, str],
    formats: tuple[Callable[[float], str], Callable[[float], str]] = (significant, significant),
    ticks: Sequence[float] | None = None,
) -> str:
    """Render grid, ticks and names of both axes.

    `ticks` replace the x axis's own numbers.
    """
    made = []
    for value in y.ticks():
        at = y.at(value)
        made.append(tag("line", x1=x.begin, x2=x.end, y1=at, y2=at, class_="grid"))
        made.append(text(x.begin - 5, at + 4, trim_zeros(formats[1](value)), class_="tick end"))
    for value in x.ticks() if ticks is None else ticks:
        at = x.at(value)
        made.append(tag("line", x1=at, x2=at, y1=y.begin, y2=y.begin + 4, class_="axis"))
        made.append(text(at, y.begin + 19, trim_zeros(formats[0](value)), class_="tick middle"))
    made.append(tag("line", x1=x.begin, x2=x.end, y1=y.begin, y2=y.begin, class_="axis"))
    made.append(text((x.begin + x.end) / 2, y.begin + 40, labels[0], class_="label middle"))
    middle = (y.begin + y.end) / 2
    made.append(text(0, 0, labels[1], class_="label middle", transform=f"translate(14 {middle:.0f}) rotate(-90)"))
    return "".join(made)
