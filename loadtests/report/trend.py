"""A page over runs of the same targets and scenarios: how each use went from run to run."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.report import html
from sluice_s3.loadtests.report.comparison import Pairs, compare_runs
from sluice_s3.loadtests.report.comparison_page import change_table, lead_of
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Link, Links, Page, Table
from sluice_s3.loadtests.report.history import Entry, runs_of
from sluice_s3.loadtests.report.plots.lines import Axis, Series, plot
from sluice_s3.loadtests.report.units import megabytes, significant
from sluice_s3.loadtests.report.verdict import join_names
from sluice_s3.loadtests.report.writer import put

FILE = "trend.html"
MOST_TICKS = 6


def write_trend(directory: Path, like: str = "") -> Path:
    """Write the trend of the runs that are like the newest one, or like the run of this name. Return the file.

    Raises PlanError when there are not two such runs with a report, OSError when it cannot be written.
    """
    runs = [one for one in runs_of(directory) if one.figures]
    chosen = next((one for one in runs if like in ("", one.run)), None)
    if chosen is None:
        raise PlanError(f"{directory}: there is no run{' ' + like if like else ''} whose report has a use")
    same = [one for one in runs if one.is_like(chosen)]
    if len(same) < 2:
        raise PlanError(f"{chosen.run}: no other run in {directory} has the same targets, scenarios and options")
    put(directory / FILE, html.render_page(trend_page(list(reversed(same)), len(runs))))
    return directory / FILE


def trend_page(runs: Sequence[Entry], among: int) -> Page:
    """Return the page of these runs, the oldest first; `among` so many in all."""
    last = runs[-1]
    pairs = _last_change(runs)
    facts: list[str | Cell] = [
        f"{len(runs)} of {among} runs, with the same targets and scenarios",
        f"{_day(runs[0].started)} to {_day(last.started)}",
    ]
    facts += [Cell("more than one machine", "bad")] if len({_machine(one) for one in runs}) > 1 else []
    if pairs is None:
        lead = "The last two runs cannot be compared."
    else:
        lead = f"From {pairs.a} to {pairs.b}: {lead_of(pairs)}"
    return Page(
        f"Trend: {join_names([str(name) for name in last.targets])}",
        lead,
        facts,
        first=[Figures(_plots(runs), legend=list(last.targets), note="Hover over a point for its value.")],
        chapters=_chapters(runs, pairs),
    )


def _chapters(runs: Sequence[Entry], pairs: Pairs | None) -> list[Chapter]:
    found = []
    if pairs is not None:
        blocks: list[Block] = [change_table(pairs, uses_only=True)]
        found.append(Chapter("last", "The last change", f"{pairs.b} against {pairs.a}.", blocks, ""))
    links = [
        Link(one.run, quote(f"{os.path.basename(one.path)}/report.html"))
        for one in reversed(runs)
        if (one.path / "report.html").is_file()
    ]
    return [*found, Chapter("runs", "Runs", "", [_table(runs), Links(links, "Reports")], "open")]


def _last_change(runs: Sequence[Entry]) -> Pairs | None:
    try:
        return compare_runs(runs[-2].path, runs[-1].path)
    except (PlanError, OSError):
        return None


def _plots(runs: Sequence[Entry]) -> list[Figure]:
    uses = dict.fromkeys(use for one in runs for use in one.figures)
    return [figure for use in uses if (figure := _plot(use, runs)) is not None]


def _plot(use: str, runs: Sequence[Entry]) -> Figure | None:
    """Draw the throughput of a use over the runs, one after another."""
    units = {one.figures[use]["unit"] for one in runs if use in one.figures}
    series = []
    for index, target in enumerate(runs[-1].targets):
        points, spread, names = [], [], []
        for number, one in enumerate(runs, 1):
            value = one.figures.get(use, {}).get("throughput", {}).get(target)
            if not value or not value["mean"]:
                continue
            points.append((float(number), float(value["mean"])))
            names.append(one.run)
            if value["low"] is not None and value["high"] is not None:
                spread.append((float(number), float(value["low"]), float(value["high"])))
        series += [Series(target, index, points, spread)] if points else []
    if not series or len(units) != 1:
        return None
    in_bytes = units == {"B/s"}
    label = "Throughput, MB/s" if in_bytes else "Throughput, requests/s"
    step = max(1, -(-len(runs) // MOST_TICKS))
    ticks = [float(number) for number in range(1, len(runs) + 1, step)]

    def day(number: float) -> str:
        return _day(runs[min(len(runs), max(1, round(number))) - 1].started)[5:]  # short, since it stands at an edge

    across = Axis("Runs, month and day of each", format=day, ticks=ticks)
    drawn = plot(use, series, across, Axis(label, format=megabytes if in_bytes else significant))
    return Figure(drawn, f"{use}: more is better. Lines: intervals over the repeats.")


def _table(runs: Sequence[Entry]) -> Table:
    rows: list[list[str | Cell]] = [
        [
            one.run,
            _when(one.started),
            Cell(one.state, "" if one.state == "complete" else "bad"),
            _machine(one),
            " ".join(one.headline),
            str(one.repeats),
        ]
        for one in reversed(runs)
    ]
    return Table(["Run", "began", "state", "machine", "verdict", "repeats"], rows, texts=5)


def _machine(one: Entry) -> str:
    machine = one.meta["machine"]
    return f"{machine.get('hostname', '')}: {machine['cpu']}, {machine['cores']} cores, {machine['kernel']}"


def _day(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def _when(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
