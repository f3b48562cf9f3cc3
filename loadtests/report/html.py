"""The report as one HTML page that contains its styles and plots."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sluice_s3.loadtests.report.document import Chapter, Figures, Remark, Table, plain
from sluice_s3.loadtests.report.plots.svg import colour

HERE = Path(__file__).parent


def render_page(title: str, partial: str, facts: Sequence[str], chapters: Sequence[Chapter]) -> str:
    """Render a whole page. `facts` stand under the title."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=unbroken,
    )  # fmt: skip
    environment.tests["table"] = lambda block: isinstance(block, Table)
    environment.tests["figures"] = lambda block: isinstance(block, Figures)
    environment.tests["remark"] = lambda block: isinstance(block, Remark)
    environment.filters["plain"] = plain
    environment.filters["svg"] = lambda words: Markup(words)
    environment.filters["shade"] = shade
    environment.globals["colour"] = colour
    style = Markup((HERE / "page.css").read_text(encoding="utf-8"))
    page = environment.get_template("page.html")
    return page.render(title=title, partial=partial, facts=facts, chapters=chapters, style=style)


def unbroken(value: object) -> object:
    """Keep percent signs on the line of their numbers.

    Markup is returned unchanged.
    """
    return value.replace(" %", "\u00a0%") if isinstance(value, str) and not isinstance(value, Markup) else value


def shade(heat: float | None) -> str:
    """Return the style of a cell whose background shows a number from 0 to 1."""
    return "" if heat is None else f"--heat:{max(0.0, min(1.0, heat)) * 100:.0f}%"
