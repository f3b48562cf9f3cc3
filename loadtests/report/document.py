"""The parts of a page: a first screen, then chapters of tables, figures and remarks.

HTML and Markdown are two ways to write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    `mark` is `best`, `bad`, `quiet`, `wide` (a sentence) or empty; `heat` (0 to 1) colours it; `title`
    appears on hover.
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


@dataclass(frozen=True)
class Track:
    """One line of a picture: a name, and for each column a bar or dots (SVG) with its value in words.

    `mark` is `winner` or empty; `note` stands below the name in small letters.
    """

    name: str
    columns: Sequence[tuple[str, str]]
    mark: str = ""
    note: str = ""


@dataclass(frozen=True)
class Tracks:
    """A picture in lines, which keeps its size of letters on a phone.

    `groups` are (name, what it is, lines). `head` names the columns, with units and which way is better. `dotted` says
    that a line has all targets as dots.
    """

    head: Sequence[str]
    groups: Sequence[tuple[str, str, Sequence[Track]]]
    title: str = ""
    note: str = ""
    dotted: bool = False


@dataclass(frozen=True)
class Card:
    """What a store is, in a few lines.

    `index` is the number of its colour, and one less than that of its dot; `lines` are (what, words).
    """

    name: str
    index: int
    lines: Sequence[tuple[str, str]]
    won: str = ""


@dataclass(frozen=True)
class Cards:
    """Several cards, side by side if there is room."""

    cards: Sequence[Card]


@dataclass(frozen=True)
class Link:
    """A link: to a file beside the page, or with `https:` to a source."""

    text: str
    href: str
    note: str = ""


@dataclass(frozen=True)
class Links:
    """A list of links."""

    links: Sequence[Link]
    title: str = ""


Block = Table | Figures | Remark | Tracks | Cards | Links


@dataclass(frozen=True)
class Chapter:
    """A chapter; links use its `name`.

    `fold` is `closed` or `open` for a section that the reader opens and closes, empty for one that is always there.
    """

    name: str
    title: str
    about: str = ""
    blocks: list[Block] = field(default_factory=list)
    fold: str = "closed"


@dataclass(frozen=True)
class Page:
    """A whole page: what the first screen shows, then chapters.

    `facts` are short words under the title (a `bad` one is a reason to doubt), `lead` the sentence that matters most,
    `note` the user's own. `doubts` are (short, whole sentence). `first` is the picture, `beside` stands next to it.
    """

    title: str
    lead: str = ""
    facts: Sequence[str | Cell] = ()
    note: str = ""
    partial: str = ""
    doubts: Sequence[tuple[str, str]] = ()
    first: Sequence[Block] = ()
    beside: Sequence[Block] = ()
    chapters: Sequence[Chapter] = ()


def plain(cell: str | Cell) -> Cell:
    """Return a cell with text."""
    return cell if isinstance(cell, Cell) else Cell(cell)


def best_of(
    values: Sequence[float | None], texts: Sequence[str], names: Sequence[str], winners: Sequence[str], *, more: bool
) -> list[Cell]:
    """Return cells of the targets `names`; the best one is marked if the verdict called its target (`winners`)."""
    known = [one for one in values if one is not None]
    best = (max(known) if more else min(known)) if len(known) > 1 else None
    return [
        Cell(text, "best" if value is not None and value == best and name in winners else "")
        for value, text, name in zip(values, texts, names, strict=True)
    ]
