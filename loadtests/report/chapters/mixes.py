"""The mixes of operations, in the form of warp's report."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from sluice_s3.loadtests.report.chapters.published import MIXED, MIXED_SOURCE, cite
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Table, best_of
from sluice_s3.loadtests.report.model import Course, Line, Model
from sluice_s3.loadtests.report.plots.blocks import heat_map
from sluice_s3.loadtests.report.plots.lines import Axis, Series, percentiles, plot
from sluice_s3.loadtests.report.stats import Spread
from sluice_s3.loadtests.report.time_windows import Window
from sluice_s3.loadtests.report.units import mebibytes, seconds, significant, size

ORDER = ("GET", "STAT", "PUT", "DELETE")
TITLES = {
    "mixed": ("Mixed load", "warp's mix of operations on large objects"),
    "boto3_mixed": ("Mixed load by boto3", "the same mix, with what an application's client takes"),
    "open_loop": ("Fixed rate of arrivals", "the mix at a fixed rate: times count from when an operation was due"),
}
HEATED = ("GET", "PUT")
HEAT_REQUESTS = 1000
"""With fewer requests, a heat map shows chance."""


def chapter(report: Report, scenario: str) -> Chapter:
    """Render a mix: operations, first bytes, seconds, errors, and plots."""
    title, about = TITLES[scenario]
    model = report.model
    asked = model.meta["plan"]["scenarios"][scenario]
    words = ", ".join(f"{name} {value}" for name, value in asked["arguments"].items())
    blocks: list[Block] = [requests(model, scenario, report.winners(scenario))]
    blocks += first_bytes(model, scenario) + late(model, scenario) + [by_second(model, scenario)]
    blocks += plots(model, scenario)
    if scenario == "mixed" and report.options.published:
        blocks += [published(), cite(MIXED_SOURCE)]
    return Chapter(scenario, title, f"{about}. {asked['users']} clients; {words}.", blocks)


def operations(model: Model, scenario: str) -> list[str]:
    """Return the operations that have rows, in warp's order."""
    there = {line.operation for line in model.of(scenario)}
    return [one for one in ORDER if one in there]


def requests(model: Model, scenario: str, winners: Sequence[str]) -> Table:
    """Render rates and times of whole requests."""
    rows: list[list[str | Cell]] = []
    for operation in operations(model, scenario):
        lines = model.of(scenario, operation=operation)
        rates = [rate_of(line) for line in lines]
        names = [line.target for line in lines]
        shown = [significant(rate[0]) for rate in rates]
        cells = best_of([rate[0] for rate in rates], shown, names, winners, more=True)
        for line, (_, moved), cell in zip(lines, rates, cells, strict=True):
            name = f"{operation} {size(line.size)}" if line.size > 0 else operation
            errors = Cell(f"{line.errors:,}", "bad") if line.errors else "0"
            count = f"{line.total.count if line.total else 0:,}"
            rows.append(
                [name, line.target, count, errors, cell, mebibytes(moved) if moved else "", *_times(line.total)]
            )
    rows += [total(model.of(scenario, target=name)) for name in model.targets if model.of(scenario, target=name)]
    head = ["Operation", "Target", "requests", "errors", "obj/s", "MiB/s"]
    head += ["average", "50 %", "90 %", "99 %", "fastest", "slowest", "StdDev"]
    return Table(
        head, rows, "Requests", "Good requests of all repeats; rates over the time from the first to the last.", 2
    )


def total(lines: Sequence[Line]) -> list[str | Cell]:
    """Render the sum of a target's operations."""
    took = 0.0
    for repeat in {one.repeat for line in lines for one in line.rounds}:
        own = [one for line in lines for one in line.rounds if one.repeat == repeat]
        took += max(one.begin + one.seconds for one in own) - min(one.begin for one in own)
    count = sum(one.count for line in lines for one in line.rounds)
    errors = sum(line.errors for line in lines)
    moved = sum(line.moved for line in lines)
    rates = [significant(count / took), mebibytes(moved / took)] if took else ["", ""]
    failed = Cell(f"{errors:,}", "bad") if errors else "0"
    return ["Total", lines[0].target, f"{count:,}", failed, *rates, *[""] * 7]


def rate_of(line: Line) -> tuple[float, float]:
    """Return objects and bytes a second over all repeats."""
    took = sum(one.seconds for one in line.rounds)
    return (sum(one.count for one in line.rounds) / took, line.moved / took) if took else (0.0, 0.0)


def _times(spread: Spread | None) -> list[str]:
    if spread is None:
        return [""] * 7
    shown = (spread.mean, spread.p50, spread.p90, spread.p99, spread.best, spread.worst, spread.sigma)
    return [seconds(one) for one in shown]


def first_bytes(model: Model, scenario: str) -> list[Block]:
    """Render times to the first byte of GET's answers."""
    rows: list[list[str | Cell]] = []
    for line in model.of(scenario, operation="GET"):
        one = line.ttfb
        if one is not None:
            shown = (one.mean, one.best, one.p25, one.p50, one.p75, one.p90, one.p99, one.worst, one.sigma)
            rows.append([line.target, *(seconds(value) for value in shown)])
    head = ["Target", "average", "best", "25th", "median", "75th", "90th", "99th", "worst", "StdDev"]
    return (
        [Table(head, rows, "GET: time to first byte", "Of plain files: until the first read returned.")] if rows else []
    )


def late(model: Model, scenario: str) -> list[Block]:
    """Render how long operations waited for the generator or a free client (open_loop)."""
    rows: list[list[str | Cell]] = [
        [line.operation, line.target, *(seconds(one) for one in (line.late.p50, line.late.p99, line.late.worst))]
        for line in model.of(scenario)
        if line.late is not None
    ]
    note = "From when an operation was due to when it was sent; it is in the times above."
    return [Table(["Operation", "Target", "50 %", "99 %", "worst"], rows, "Sent late", note, 2)] if rows else []


def by_second(model: Model, scenario: str) -> Table:
    """Render the throughput in whole seconds, as warp splits it."""
    rows: list[list[str | Cell]] = []
    for operation in (*operations(model, scenario), ""):
        for course in model.courses_of(scenario, operation):
            found = sorted(_all(course), key=lambda one: (one.bytes, one.objects))
            if not found:
                continue
            shown = (found[-1], found[len(found) // 2], found[0])
            rows.append(
                [operation or "Total", course.target, f"{len(found)} x 1 s", *(_window(model, one) for one in shown)]
            )
    head = ["Operation", "Target", "split into", "fastest", "median", "slowest"]
    return Table(
        head,
        rows,
        "Throughput by the second",
        "With the time (UTC) when that second began; requests count in each by their share in it.",
        3,
    )


def _all(course: Course) -> Iterable[Window]:
    return (one for found in course.windows.values() for one in found)


def _window(model: Model, window: Window) -> Cell:
    when = time.strftime("%H:%M:%S", time.gmtime(model.meta["started"] + window.start))
    moved = f"{mebibytes(window.bytes)} MiB/s, " if window.bytes else ""
    return Cell(f"{moved}{significant(window.objects)} obj/s ({when})")


def plots(model: Model, scenario: str) -> list[Block]:
    """Plot percentiles, the course over time, and heat maps."""
    index = {name: number for number, name in enumerate(model.targets)}
    curves = []
    for operation in operations(model, scenario):
        lines = [(line.target, index[line.target], line.curve) for line in model.of(scenario, operation=operation)]
        picture = percentiles(f"{operation}: latency by percentile", lines, "latency", seconds)
        curves.append(Figure(picture, f"{operation}: latency by percentile, {', '.join(name for name, _, _ in lines)}"))
    courses = [Figure(_over_time(model, scenario, index), "Operations a second, each repeat, over its seconds")]
    heats = [
        Figure(
            heat_map(f"{operation}, {one.target}", one.heat),
            f"{operation} on {one.target}: requests by time and latency",
        )
        for operation in HEATED
        for one in model.courses_of(scenario, operation)
        if one.heat is not None and sum(one.heat.counts.values()) >= HEAT_REQUESTS
    ]
    found: list[Block] = [Figures([*curves, *courses], "Latency and throughput", "", model.targets)]
    note = "First repeat. Along: when a request ended; up: its time; the stronger the colour, the more (logarithmic)."
    return [*found, Figures(heats, "Heat maps of latency", note)] if heats else found


def _over_time(model: Model, scenario: str, index: dict[str, int]) -> str:
    series = []
    for course in model.courses_of(scenario, ""):
        for repeat, found in course.windows.items():
            if found:
                points = [(one.start - found[0].start + 0.5, one.objects) for one in found]
                series.append(
                    Series(f"{course.target}, repeat {repeat}", index[course.target], points, faint=repeat > 1)
                )
    return plot("Throughput over time", series, Axis("time (s)"), Axis("throughput (requests/s)"))


def published() -> Table:
    """Render the published measurement."""
    rows: list[list[str | Cell]] = [
        [operation, name, significant(rate), *(seconds(one) for one in times)]
        for operation, found in MIXED.items()
        for name, rate, *times in found
    ]
    head = ["Operation", "Server and store", "obj/s", "average", "50 %", "90 %", "99 %"]
    return Table(head, rows, "As published", "10 MiB, 20 clients, five minutes, another machine.", 2)
