"""A page as one HTML file that contains its styles and plots and loads nothing."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sluice_s3.loadtests.report.document import Cards, Figures, Links, Page, Remark, Table, Tracks, plain
from sluice_s3.loadtests.report.plots.svg import colour

HERE = Path(__file__).parent
KINDS = {"table": Table, "figures": Figures, "remark": Remark, "tracks": Tracks, "cards": Cards, "links": Links}
"""Blocks by their name in the template."""


def render_page(page: Page) -> str:
    """Render a whole page."""
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=unbroken,
    )  # fmt: skip
    names = {kind: name for name, kind in KINDS.items()}
    environment.filters["kind"] = lambda block: names[type(block)]
    environment.filters["plain"] = plain
    environment.filters["svg"] = lambda words: Markup(words)
    environment.filters["shade"] = shade
    environment.globals["colour"] = colour
    return environment.get_template("page.html").render(page=page, style=Markup(styles()))


def styles() -> str:
    """Return the style sheet: the console's colours, type and space, then what a page adds."""
    tokens = files("sluice_s3.app").joinpath("console", "style", "tokens.css").read_text(encoding="utf-8")
    return tokens + (HERE / "page.css").read_text(encoding="utf-8")


def unbroken(value: object) -> object:
    """Keep percent signs on the line of their numbers.

    Markup is returned unchanged.
    """
    return value.replace(" %", "\u00a0%") if isinstance(value, str) and not isinstance(value, Markup) else value


def shade(heat: float | None) -> str:
    """Return the style of a cell whose background shows a number from 0 to 1."""
    return "" if heat is None else f"--heat:{max(0.0, min(1.0, heat)) * 100:.0f}%"
