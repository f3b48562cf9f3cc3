"""STAT, DELETE and LIST as a bucket grows."""

from __future__ import annotations

from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Table, best_of
from sluice_s3.loadtests.report.model import Line, Model
from sluice_s3.loadtests.report.plots.lines import Axis, Series, percentiles, plot
from sluice_s3.loadtests.report.units import seconds

OPERATIONS = ("STAT", "DELETE", "LIST")


def chapter(report: Report, scenario: str) -> Chapter:
    """Render times by operation and number of keys."""
    about = "One client, in a bucket of so many keys; LIST is one page of up to 1,000."
    model = report.model
    counts = sorted({keys_of(line) for line in model.of(scenario)})
    blocks: list[Block] = [table(report, counts), plots(model, counts)]
    return Chapter(scenario, "Listing & metadata", about, blocks)


def keys_of(line: Line) -> int:
    """Return the number of keys of a stage `keys-1000`."""
    number = line.stage.rpartition("-")[2]
    return int(number) if number.isdigit() else 0


def table(report: Report, counts: list[int]) -> Table:
    """Render operation, keys and target with mean, deviation and percentiles."""
    model, winners = report.model, report.winners("stat_delete_list")
    rows: list[list[str | Cell]] = []
    for operation in OPERATIONS:
        for count in counts:
            lines = [line for line in model.of("stat_delete_list", operation=operation) if keys_of(line) == count]
            lines = [line for line in lines if line.total is not None]
            medians = [line.total.p50 if line.total else None for line in lines]
            names = [line.target for line in lines]
            cells = best_of(medians, [seconds(one) for one in medians], names, winners, more=False)
            for line, cell in zip(lines, cells, strict=True):
                one = line.total
                assert one is not None
                shown = [seconds(value) for value in (one.p90, one.p99, one.worst, one.mean, one.sigma)]
                errors: str | Cell = Cell(f"{line.errors:,}", "bad") if line.errors else "0"
                rows.append([operation, f"{count:,}", line.target, cell, *shown, f"{one.count:,}", errors])
    head = ["Operation", "keys", "Target", "50 %", "90 %", "99 %", "slowest", "average", "StdDev", "requests", "errors"]
    return Table(head, rows, "Times", "", 3)


def plots(model: Model, counts: list[int]) -> Figures:
    """Plot medians over keys if there are several numbers of keys, else percentiles."""
    figures = []
    for operation in OPERATIONS:
        lines = model.of("stat_delete_list", operation=operation)
        index = {name: number for number, name in enumerate(model.targets)}
        if len(counts) == 1:
            title = f"{operation}: latency by percentile"
            curves = [(line.target, index[line.target], line.curve) for line in lines if line.curve]
            figures.append(Figure(percentiles(title, curves, "latency", seconds), title))
            continue
        series = []
        for name, number in index.items():
            known = [(keys_of(line), line.total) for line in lines if line.target == name]
            series.append(Series(name, number, [(float(count), one.p50) for count, one in known if one is not None]))
        title = f"{operation}: median by keys"
        across = Axis("keys in the bucket", log=True, format=lambda value: f"{value:,.0f}")
        figures.append(Figure(plot(title, series, across, Axis("median latency", log=True, format=seconds)), title))
    return Figures(figures, "Curves", "", model.targets)
