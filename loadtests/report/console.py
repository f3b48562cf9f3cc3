"""Prints the comparison of two runs, and lists of runs, on a terminal."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from sluice_s3.loadtests.report import significance
from sluice_s3.loadtests.report.comparison import Pairs
from sluice_s3.loadtests.report.history import Entry
from sluice_s3.loadtests.report.significance import Difference
from sluice_s3.loadtests.report.units import percent

STYLES = {"faster": "green", "slower": "red"}


def show(found: Pairs, console: Console | None = None) -> None:
    """Print the comparison."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(file=console.file, width=140)
    table = Table(title=Text(f"A = {found.a}, B = {found.b}"), title_justify="left")
    for name in ("Target", "Figure"):
        table.add_column(name)
    for name in ("A", "B", "B against A"):
        table.add_column(name, justify="right")
    table.add_column("B is")
    before = ""
    for one in found.pairs:
        if one.target != before and before:
            table.add_section()
        style = "" if one.figure else "bold"
        name = f"  {one.figure}" if one.figure else one.use
        call = Text(one.over.call, style=STYLES.get(one.over.call, "dim"))
        table.add_row(
            Text(one.target if one.target != before else ""), Text(name, style=style), one.a, one.b,
            Text(difference(one.over), style=style), call,
        )  # fmt: skip
        before = one.target
    console.print(table)
    for remark in found.remarks:
        console.print(remark, markup=False, highlight=False, soft_wrap=True)
    words = f"Speed of B against A, with {significance.LEVEL:.0%} bootstrap intervals over the repeats; less than "
    console.print(f"{words}{significance.MATTERS:.0%} is no difference.", markup=False, highlight=False, soft_wrap=True)


def show_runs(runs: Sequence[Entry], console: Console | None = None) -> None:
    """Print the runs of a directory."""
    console = console or Console()
    if not console.is_terminal:
        console = Console(file=console.file, width=140)
    if not runs:
        console.print("there are no runs")
        return
    table = Table()
    for name in ("Run", "Began", "Targets", "Verdict"):
        table.add_column(name, overflow="fold")
    for one in runs:
        began = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.started))
        words = " ".join(one.headline) or "no report"
        state = "" if one.state == "complete" else f"{one.state}: "
        table.add_row(Text(one.run), began, Text(", ".join(one.targets)), Text(f"{state}{words}"))
    console.print(table)


def difference(found: Difference) -> str:
    """Render `+12 % (-3.0 to +29 %)`: more is faster."""
    if found.ratio is None:
        return ""
    text = percent(found.ratio - 1, sign=True)
    if found.low is None or found.high is None:
        return text
    return f"{text} ({percent(found.low - 1, sign=True).removesuffix(' %')} to {percent(found.high - 1, sign=True)})"
