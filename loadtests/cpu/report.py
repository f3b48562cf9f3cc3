"""Medians over rounds with their intervals, as a table and as JSON."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from sluice_s3.app import __version__
from sluice_s3.app.interpreter import describe_interpreter
from sluice_s3.loadtests.cpu.measurement import OTHERS, Case, Measure

BOUND = 0.5
"""The share of client-bound rounds from which a cell is marked."""


@dataclass(frozen=True)
class Interval:
    """The median, least and greatest value over rounds."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Iterable[float | None]) -> Interval | None:
        """Return the interval, or None if there are no values."""
        present = [value for value in values if value is not None]
        return Interval(statistics.median(present), min(present), max(present)) if present else None

    def overlaps(self, other: Interval) -> bool:
        """Return whether two intervals share a value."""
        return self.low <= other.high and other.low <= self.high


@dataclass(frozen=True)
class Row:
    """One cell of one target over all rounds."""

    cell: Case
    target: str
    rounds: int
    rate: Interval | None
    mib_rate: Interval | None
    p50_ms: Interval | None
    p99_ms: Interval | None
    cpu_us: Interval | None
    beside_us: Interval | None
    instructions: Interval | None
    peak_bytes: Interval | None
    pss_bytes: Interval | None
    client_bound: bool
    others: float
    load_average: Interval | None
    errors: int


def rows(measures: list[Measure]) -> list[Row]:
    """Return one row for each cell and target, in the order of their first measurement."""
    groups: dict[tuple[Case, str], list[Measure]] = {}
    for cell in dict.fromkeys(measure.cell for measure in measures):
        for measure in measures:
            if measure.cell == cell:
                groups.setdefault((cell, measure.target), []).append(measure)
    return [_row(cell, target, group) for (cell, target), group in groups.items()]


def _row(case: Case, target: str, group: list[Measure]) -> Row:
    def interval(value: Callable[[Measure], float | None]) -> Interval | None:
        return Interval.of(value(measure) for measure in group)

    return Row(
        cell=case,
        target=target,
        rounds=len(group),
        rate=interval(lambda measure: measure.rate),
        mib_rate=interval(lambda measure: measure.mib_rate),
        p50_ms=interval(lambda measure: measure.latency_ms.get("p50")),
        p99_ms=interval(lambda measure: measure.latency_ms.get("p99")),
        cpu_us=interval(lambda measure: measure.cpu_us),
        beside_us=interval(lambda measure: measure.beside_us),
        instructions=interval(lambda measure: measure.instructions),
        peak_bytes=interval(lambda measure: measure.peak_bytes),
        pss_bytes=interval(lambda measure: measure.pss_bytes),
        client_bound=sum(measure.client_bound for measure in group) >= BOUND * len(group),
        others=statistics.median(measure.others for measure in group),
        load_average=interval(lambda measure: measure.load_average),
        errors=sum(sum(measure.errors.values()) for measure in group),
    )


def number(value: float) -> str:
    """Render three significant digits, with commas."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def spread(interval: Interval | None, unit: float = 1.0) -> str:
    """Render `median low-high`, each divided by `unit`; a dash for None."""
    if interval is None:
        return "-"
    values = [value / unit for value in (interval.median, interval.low, interval.high)]
    middle, low, high = (number(value) for value in values)
    return f"{middle} [dim]{low}-{high}[/dim]"


def ratio(own: Interval | None, others: list[Interval | None], best: Callable[..., Interval]) -> str:
    """Render `own` over the best other median, with ≈ if the intervals share a value."""
    present = [interval for interval in others if interval is not None]
    if own is None or not present:
        return ""
    rival = best(present, key=lambda interval: interval.median)
    if not rival.median:
        return ""
    return f"{own.median / rival.median:.2f}{'≈' if own.overlaps(rival) else ''}"


def _notes(row: Row) -> str:
    notes = ["[yellow]client-bound[/yellow]"] if row.client_bound else []
    if row.errors:
        notes.append(f"[red]{row.errors} errors[/red]")
    if row.others > OTHERS:
        load = "" if row.load_average is None else f" (load {row.load_average.median:.1f})"
        notes.append(f"others {row.others:.0%}{load}")
    return ", ".join(notes)


def table(found: list[Row]) -> Table:
    """Render a line for each cell and target.

    `x` is the line over the best other target's: least CPU, greatest rate.
    """
    result = Table(box=box.SIMPLE_HEAD, title="median min-max over rounds; x = over the best other target")
    for name in ("cell", "target"):
        result.add_column(name, no_wrap=True)
    for name in ("op/s", "x", "MiB/s", "p50 ms", "p99 ms", "CPU µs/op", "x", "kinstr/op", "x", "PSS MiB"):
        result.add_column(name, justify="right", no_wrap=True)
    beside = any(row.beside_us is not None for row in found)
    if beside:
        result.add_column("beside µs/op", justify="right", no_wrap=True)
    result.add_column("notes")
    last: Case | None = None
    for row in found:
        if last is not None and row.cell != last:
            result.add_section()
        rivals = [other for other in found if other.cell == row.cell and other.target != row.target]
        result.add_row(
            row.cell.name if row.cell != last else "",
            row.target,
            spread(row.rate),
            ratio(row.rate, [rival.rate for rival in rivals], max),
            number(row.mib_rate.median) if row.mib_rate and row.mib_rate.median else "",
            number(row.p50_ms.median) if row.p50_ms else "-",
            number(row.p99_ms.median) if row.p99_ms else "-",
            spread(row.cpu_us),
            ratio(row.cpu_us, [rival.cpu_us for rival in rivals], min),
            number(row.instructions.median / 1000) if row.instructions else "-",
            ratio(row.instructions, [rival.instructions for rival in rivals], min),
            number(row.pss_bytes.median / (1 << 20)) if row.pss_bytes else "-",
            *([spread(row.beside_us)] if beside else []),
            _notes(row),
        )
        last = row.cell
    return result


def machine() -> dict[str, Any]:
    """Describe what the figures depend on beside the command line."""
    cpuinfo = Path("/proc/cpuinfo").read_text()
    models = [line.partition(":")[2].strip() for line in cpuinfo.splitlines() if line.startswith("model name")]
    return {
        "kernel": platform.release(),
        "cpu": models[0] if models else platform.machine(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "interpreter": describe_interpreter()._asdict(),
        "load_average": os.getloadavg(),
        "sluice": __version__,
        "commit": commit_of(Path(__file__).parent),
    }


def commit_of(directory: Path) -> str:
    """Return a checkout's commit, with `+` if it has changes; empty outside a checkout."""
    command = ["git", "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def write(path: Path, head: dict[str, Any], measures: list[Measure]) -> None:
    """Write settings, every measure of every round, and the rows of the table as JSON."""
    document = {**head, "rows": [asdict(row) for row in rows(measures)], "measures": [asdict(one) for one in measures]}
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
