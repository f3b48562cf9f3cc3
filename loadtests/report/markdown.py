"""A page as Markdown, without the plots."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sluice_s3.loadtests.report.document import Block, Cards, Cell, Figures, Links, Page, Table, Tracks, plain


def written(page: Page) -> str:
    """Render a whole document."""
    parts = [f"# {escape_text(page.title)}"]
    if page.facts:
        parts.append(escape_text(" · ".join(plain(one).text for one in page.facts)))
    if page.partial:
        parts.append(f"**Partial run: {escape_text(page.partial)}**")
    parts += [f"**{escape_text(page.lead)}**"] if page.lead else []
    parts += [escape_text(page.note)] if page.note else []
    parts += [f"**{escape_text(sentence)}**" for _, sentence in page.doubts]
    parts += [words for block in (*page.first, *page.beside) if (words := render_block(block))]
    for chapter in page.chapters:
        parts.append(f"## {escape_text(chapter.title)}")
        if chapter.about:
            parts.append(escape_text(chapter.about))
        parts += [words for block in chapter.blocks if (words := render_block(block))]
    return "\n\n".join(parts) + "\n"


def render_block(block: Block) -> str:
    """Render a block; empty for plots."""
    if isinstance(block, Figures):
        return ""
    if isinstance(block, Table):
        return render_table(block)
    if isinstance(block, Tracks):
        return render_table(table_of(block))
    if isinstance(block, Cards):
        return render_cards(block)
    if isinstance(block, Links):
        return render_links(block)
    return f"**{escape_text(block.text)}**" if block.mark in ("bad", "lead") else escape_text(block.text)


def table_of(tracks: Tracks) -> Table:
    """Return the words of a picture in lines as a table."""
    rows: list[Sequence[str | Cell]] = []
    for name, _, lines in tracks.groups:
        for line in lines:
            mark = "best" if line.mark else ""
            rows.append([name, Cell(line.name, mark), *(Cell(words, mark) for _, words in line.columns)])
    whole = [[*row, *[""] * (len(tracks.head) - len(row))] for row in rows]
    return Table(tracks.head, whole, tracks.title, "", len(tracks.head))


def render_cards(found: Cards) -> str:
    """Render each card as a line."""
    lines = []
    for card in found.cards:
        words = "; ".join(
            f"{what}: {value}" for what, value in (*card.lines, *([("verdict", card.won)] if card.won else []))
        )
        lines.append(f"- **{escape_text(card.name)}** {escape_text(words)}")
    return "\n".join(lines)


def render_links(found: Links) -> str:
    """Render a list of links."""
    title = [f"### {escape_text(found.title)}"] if found.title else []
    lines = [f"- [{escape_text(one.text)}]({one.href}) {escape_text(one.note)}".rstrip() for one in found.links]
    return "\n\n".join([*title, "\n".join(lines)]) if lines else ""


def render_table(found: Table) -> str:
    """Render a table with its title above and its note below. The best is bold."""
    if not found.rows:
        return ""
    parts = [f"### {escape_text(found.title)}"] if found.title else []
    rule = ["---"] * found.texts + ["---:"] * (len(found.head) - found.texts)
    lines = [
        _row(found.head),
        "|" + "|".join(rule) + "|",
        *(_row([_cell(one) for one in row], raw=True) for row in found.rows),
    ]
    parts.append("\n".join(lines))
    if found.note:
        parts.append(escape_text(found.note))
    return "\n\n".join(parts)


def _row(cells: Sequence[str], *, raw: bool = False) -> str:
    return "| " + " | ".join(one if raw else escape_text(one) for one in cells) + " |"


def _cell(cell: str | Cell) -> str:
    one = plain(cell)
    words = escape_text(one.text)
    return f"**{words}**" if one.mark == "best" and words else words


def escape_text(text: str) -> str:
    """Escape text for Markdown, and for HTML inside of it, on one line."""
    flat = " ".join(text.split())
    return re.sub(r"([\\`*_|\[\]#])", r"\\\1", flat).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
