"""The report as Markdown, without the plots."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figures, Table, plain


def written(title: str, partial: str, chapters: Sequence[Chapter]) -> str:
    """Render a whole document."""
    parts = [f"# {escape_text(title)}"]
    if partial:
        parts.append(f"**Partial run: {escape_text(partial)}**")
    for chapter in chapters:
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
    return f"**{escape_text(block.text)}**" if block.mark in ("bad", "lead") else escape_text(block.text)


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
