"""Files of a size by more and more writers."""

from __future__ import annotations

from sluice_s3.loadtests.report import stats
from sluice_s3.loadtests.report.chapters.published import THREADS, THREADS_SOURCE, cite
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Table
from sluice_s3.loadtests.report.model import Line, Model
from sluice_s3.loadtests.report.plots.lines import Axis, Series, plot
from sluice_s3.loadtests.report.units import megabytes, size

PLATEAU = 0.9
"""Share of the best combined rate from which more writers gain little."""


def chapter(report: Report, scenario: str) -> Chapter:
    """Render MB/s of each writer and of all, by size and number."""
    about = (
        "Each number of writers puts files of one size for a while; the rate is all bytes over the time from the first "
    )
    about += f"to the last. The plateau is the first number of writers with {PLATEAU:.0%} of the best combined rate."
    model = report.model
    sizes = sorted({line.size for line in model.of(scenario)})
    blocks: list[Block] = [plateaus(model, sizes), *(table(report, one) for one in sizes)]
    blocks.append(plots(model, sizes))
    if report.options.published and any(one in THREADS for one in sizes):
        blocks.append(cite(THREADS_SOURCE))
    return Chapter(scenario, "Concurrency", about, blocks)


def rate(line: Line) -> float:
    """Return the combined bytes a second, the mean of the repeats."""
    rates = [one.rate for one in line.rounds]
    return stats.mean(rates) if rates else 0.0


def plateaus(model: Model, sizes: list[int]) -> Table:
    """Render where the rate levels off, for each target and size."""
    rows: list[list[str | Cell]] = []
    for one in sizes:
        for name in model.targets:
            found = {line.users: rate(line) for line in model.of("threads", target=name, size=one)}
            best = max(found.values(), default=0.0)
            if best:
                at = min(users for users, value in found.items() if value >= PLATEAU * best)
                single = found.get(1)
                gain = f"{best / single:.1f}x" if single else ""
                rows.append([size(one), name, f"{at}", megabytes(found[at]), megabytes(best), gain])
    head = ["Size", "Target", "plateau at", "MB/s there", "best MB/s", "over one writer"]
    return Table(head, rows, "Where the plateau is", "", 2)


def table(report: Report, of_size: int) -> Table:
    """Render writers by targets: combined and of each; darker is more."""
    model = report.model
    lines = model.of("threads", size=of_size)
    users = sorted({line.users for line in lines})
    published = THREADS.get(of_size, {}) if report.options.published else {}
    best = max((rate(line) for line in lines), default=0.0) or 1.0
    names = [name for name in model.targets if any(line.target == name for line in lines)]
    rows: list[list[str | Cell]] = []
    for number in users:
        row: list[str | Cell] = [str(number)]
        for name in names:
            found = [line for line in lines if (line.target, line.users) == (name, number)]
            value = rate(found[0]) if found else 0.0
            row.append(Cell(megabytes(value), heat=value / best) if value else "")
            row.append(megabytes(value / number) if value else "")
        if published:
            row.append(Cell(f"{published[number]:g}" if number in published else "", "quiet"))
        rows.append(row)
    head = ["Writers", *(word for name in names for word in (f"{name}, all", f"{name}, each"))]
    head += ["published: EFS, all"] if published else []
    return Table(head, rows, f"MB/s with files of {size(of_size)}")


def plots(model: Model, sizes: list[int]) -> Figures:
    """Plot the combined rate over writers, for each size.

    Bars reach from the lowest to the highest repeat.
    """
    figures = []
    for one in sizes:
        series = []
        for index, name in enumerate(model.targets):
            lines = sorted(model.of("threads", target=name, size=one), key=lambda line: line.users)
            lines = [line for line in lines if line.rounds]
            points = [(line.users, rate(line) / 1e6) for line in lines]
            rates = [(line.users, [each.rate / 1e6 for each in line.rounds]) for line in lines]
            bars = [(float(users), min(found), max(found)) for users, found in rates if len(found) > 1]
            series.append(Series(name, index, points, bars))
        title = f"{size(one)}: combined MB/s by writers"
        numbers_there = sorted({px for each in series for px, _ in each.points})
        across = Axis("writers at once", log=True, format=lambda value: f"{value:g}", ticks=_thin(numbers_there))
        figures.append(
            Figure(plot(title, series, across, Axis("throughput of all (MB/s)")), f"{title}, bars over the repeats")
        )
    return Figures(figures, "Curves", "", model.targets)


def _thin(ticks: list[float]) -> list[float]:
    """Drop those that are too close to the one before on a logarithmic axis."""
    thinned: list[float] = []
    for one in ticks:
        if not thinned or one >= thinned[-1] * (ticks[-1] / ticks[0]) ** 0.06:
            thinned.append(one)
    return thinned
