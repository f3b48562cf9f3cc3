"""The parts of a report: chapters of tables, figures and remarks.

HTML and Markdown are two ways to write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    `mark` is `best`, `bad`, `quiet` or empty; `heat` (0 to 1) colours it; `title` appears on hover.
    """

    text: str
    mark: str = ""
    heat: float | None = None
    title: str = ""


@dataclass(frozen=True)
class Table:
    """A table whose first `texts` columns are words, the others numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    title: str = ""
    note: str = ""
    texts: int = 1


@dataclass(frozen=True)
class Figure:
    """An SVG element, complete and escaped, that is clear with its caption alone."""

    svg: str
    caption: str


@dataclass(frozen=True)
class Figures:
    """Several figures, side by side if there is room.

    `legend` names the targets in the order of their colours.
    """

    figures: Sequence[Figure]
    title: str = ""
    note: str = ""
    legend: Sequence[str] = ()


@dataclass(frozen=True)
class Remark:
    """A paragraph.

    `mark` is `bad` for reasons to doubt, `lead` for what is read first, or empty.
    """

    text: str
    mark: str = ""


Block = Table | Figures | Remark


@dataclass(frozen=True)
class Chapter:
    """A chapter; links use its `name`."""

    name: str
    title: str
    about: str
    blocks: list[Block] = field(default_factory=list)


def plain(cell: str | Cell) -> Cell:
    """Return a cell with text."""
    return cell if isinstance(cell, Cell) else Cell(cell)


def best_of(values: Sequence[float | None], texts: Sequence[str], *, more: bool) -> list[Cell]:
    """Return cells with the best one marked, if there are several."""
    known = [one for one in values if one is not None]
    best = (max(known) if more else min(known)) if len(known) > 1 else None
    return [
        Cell(text, "best" if value is not None and value == best else "")
        for value, text in zip(values, texts, strict=True)
    ]
