"""Throughput against the 99th percentile as clients double."""

from __future__ import annotations

from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Table
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.plots.lines import Axis, Rule, Series, plot
from sluice_s3.loadtests.report.saturation import KNEE, Scale, limit_seconds, render_limit, scales
from sluice_s3.loadtests.report.units import megabytes, percent, seconds, significant


def chapter(report: Report, scenario: str) -> Chapter:
    """Render the curves with their knees, and how many clients each store serves."""
    model = report.model
    found, limit = scales(model), limit_seconds(model)
    about = (
        "The same mix by more and more clients. A knee (ring) is the least number of clients with "
        f"{KNEE:.0%} of the best throughput: more only wait longer. Medians of the repeats."
    )
    blocks: list[Block] = [answers(model, found, limit), plots(model, found, limit), steps(model, found, limit)]
    return Chapter(scenario, "Saturation: how far it scales", about, blocks, "open")


def answers(model: Model, found: list[Scale], limit: float) -> Table:
    """Render one row a store."""
    rows: list[list[str | Cell]] = []
    for one in found:
        top = max(one.points, key=lambda point: point.rate)
        rows.append(
            [one.target, one.answer, _beyond(one, limit), str(one.knee.users), significant(one.knee.rate),
             seconds(one.knee.p99), f"{significant(top.rate)} at {top.users}"]
        )  # fmt: skip
    words = render_limit(model)
    head = ["Store", f"clients with p99 within {words}", "p99 beyond", "knee at", "requests/s there", "p99 there"]
    note = f"Beyond: the first number of clients that wait longer than {words} (saturation.p99-ms) or fail."
    return Table([*head, "most requests/s"], rows, f"How many clients until p99 > {words}", note)


def _beyond(one: Scale, limit: float) -> str:
    if one.beyond is None:
        return "not reached"
    if one.beyond.p99 > limit:
        return f"{seconds(one.beyond.p99)} at {one.beyond.users}"
    return f"{percent(one.beyond.failed)} failed at {one.beyond.users}"


def plots(model: Model, found: list[Scale], limit: float) -> Figures:
    """Plot p99 against throughput, and throughput against clients."""
    rates = []
    for one in found:
        index = model.targets.index(one.target)
        by_users = [(float(point.users), point.rate) for point in one.points if point.rate]
        rates.append(Series(one.target, index, by_users, rings=[(float(one.knee.users), one.knee.rate)]))
    users = Axis("clients", log=True, format=lambda value: f"{value:g}", ticks=_users(found))
    title = "Throughput by clients"
    figure = Figure(plot(title, rates, users, Axis("throughput (requests/s)")), title)
    return Figures([curve(model, found, limit), figure], "Curves", "", model.targets)


def curve(model: Model, found: list[Scale], limit: float) -> Figure:
    """Plot the 99th percentile against throughput, with the knees and the limit."""
    tails = []
    for one in found:
        good = [point for point in one.points if point.rate]
        by_rate, names = [(point.rate, point.p99) for point in good], [f"{point.users}" for point in good]
        rings = [(one.knee.rate, one.knee.p99)]
        tails.append(Series(one.target, model.targets.index(one.target), by_rate, rings=rings, names=names))
    across = Axis("throughput (requests/s); numbers: clients", zero=True)
    up = Axis("99th percentile of the latency", log=True, format=seconds)
    title = "Latency against throughput"
    return Figure(plot(title, tails, across, up, [Rule(limit, render_limit(model))]), f"{title}, ring: the knee")


def _users(found: list[Scale]) -> list[float]:
    return sorted({float(point.users) for one in found for point in one.points})


def steps(model: Model, found: list[Scale], limit: float) -> Table:
    """Render every step."""
    errors = {(step.target, step.users): step.errors for step in model.steps}
    rows: list[list[str | Cell]] = []
    for one in found:
        for point in one.points:
            failed = errors.get((one.target, point.users), 0)
            tail = Cell(seconds(point.p99), "bad" if point.p99 > limit else "")
            spread = f"{seconds(point.low)} to {seconds(point.high)}"
            share = percent(point.rate / max(other.rate for other in one.points))
            rows.append(
                [one.target, str(point.users), significant(point.rate), share, megabytes(point.moved_rate),
                 seconds(point.p50), tail, spread, Cell(f"{failed:,}", "bad") if failed else "0"]
            )  # fmt: skip
    head = ["Store", "clients", "requests/s", "of its best", "MB/s", "p50", "p99", "p99 of the repeats", "errors"]
    return Table(head, rows, "Steps")
