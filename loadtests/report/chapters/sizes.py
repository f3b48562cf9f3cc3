"""Objects of several sizes, written and read by one client.

This is the published table of EBS, EFS and S3.
"""

from __future__ import annotations

from sluice_s3.loadtests.report.chapters.published import SIZES, SIZES_SOURCE, cite
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Table, best_of
from sluice_s3.loadtests.report.model import Line, Model
from sluice_s3.loadtests.report.plots.lines import Axis, Series, plot
from sluice_s3.loadtests.report.units import seconds, significant, size

WORDS = {"PUT": "Write", "GET": "Read"}


def chapter(report: Report, scenario: str) -> Chapter:
    """Render mean ± deviation and median for each size and target, and speed over size."""
    about = "One client, one object after another. Times of whole requests; reads follow the writes, so they come "
    about += "from caches where a store has some."
    model = report.model
    blocks: list[Block] = [table(report, operation) for operation in WORDS if model.of(scenario, operation=operation)]
    blocks.append(plots(model))
    if report.options.published:
        blocks += [*(published(operation) for operation in WORDS), cite(SIZES_SOURCE)]
    return Chapter(scenario, "Sizes", about, blocks)


def table(report: Report, operation: str) -> Table:
    """Render sizes by targets."""
    model = report.model
    lines = model.of("sizes", operation=operation)
    rows: list[list[str | Cell]] = []
    for one in sorted({line.size for line in lines}):
        by_target = {line.target: line for line in lines if line.size == one}
        found = [by_target.get(name) for name in model.targets]
        means = [line.total.mean if line and line.total else None for line in found]
        winners = report.winners(f"sizes {operation} {size(one)}")
        cells = best_of(means, [render_cell(line) for line in found], model.targets, winners, more=False)
        rows.append([size(one), *cells])
    note = "Mean (± standard deviation, p50: median) of all repeats."
    return Table(["File size", *model.targets], rows, f"{WORDS[operation]} operations", note)


def published(operation: str) -> Table:
    """Render the published measurement."""
    stores = SIZES[operation]
    rows: list[list[str | Cell]] = []
    for one in next(iter(stores.values())):
        known = [found[one] for found in stores.values()]
        rows.append(
            [size(one), *(f"{seconds(it.mean)} (±{seconds(it.sigma)}, p50: {seconds(it.p50)})" for it in known)]
        )
    note = "Another machine; written without fsync."
    return Table(["File size", *stores], rows, f"{WORDS[operation]} operations, as published", note)


def render_cell(line: Line | None) -> str:
    """Return a cell in the form of the published table."""
    if line is None or line.total is None:
        return f"{line.errors:,} errors" if line is not None and line.errors else ""
    one = line.total
    failed = f", {line.errors:,} errors" if line.errors else ""
    return f"{seconds(one.mean)} (±{seconds(one.sigma)}, p50: {seconds(one.p50)}{failed})"


def plots(model: Model) -> Figures:
    """Plot speed and time over size."""
    figures = []
    for operation, word in WORDS.items():
        speeds, times = [], []
        for index, name in enumerate(model.targets):
            found = [(line.size, line.total) for line in model.of("sizes", operation=operation, target=name)]
            known = [(one, total) for one, total in found if total is not None and one > 0]
            speeds.append(Series(name, index, [(one, one / total.p50 / 1e6) for one, total in known]))
            bars = [(float(one), total.p25, total.p75) for one, total in known]
            times.append(Series(name, index, [(one, total.p50) for one, total in known], bars))
        across = Axis("size of the object", log=True, format=size)
        figures.append(Figure(
            plot(f"{word}: time by size", times, across, Axis("time", log=True, format=seconds)),
            f"{word}: median time by size, bars from the 25th to the 75th percentile",
        ))  # fmt: skip
        figures.append(Figure(
            plot(f"{word}: MB/s by size", speeds, across, Axis("throughput (MB/s)", log=True, format=significant)),
            f"{word}: MB/s by size, from the median time",
        ))  # fmt: skip
    return Figures(figures, "Curves", "", model.targets)
