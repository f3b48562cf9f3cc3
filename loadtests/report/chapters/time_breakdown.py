"""Where the time went: the gateway's phases, and the cost of processes and devices."""

from __future__ import annotations

from sluice_s3.loadtests.report.document import Block, Cell, Chapter, Figure, Figures, Remark, Table
from sluice_s3.loadtests.report.model import MIXES, Line, Model
from sluice_s3.loadtests.report.plots.blocks import stacked
from sluice_s3.loadtests.report.stats import mean
from sluice_s3.loadtests.report.units import decimal, percent, significant, size
from sluice_s3.loadtests.report.usage import FULL, Usage

REST = "rest"
"""The time outside all phases: the network, the client, waiting for the gateway, and sending the body."""
PHASES = ("auth", "index", "open", "write", "sync", "commit")
"""Phases in the order of a request; others follow."""
MOST_ROWS = 14


def found(model: Model) -> list[Chapter]:
    """Return the chapters that have figures."""
    return [one for one in (phases(model), usage(model)) if one is not None]


def parts_of(line: Line) -> list[tuple[str, float]]:
    """Return milliseconds of each phase of the mean request, and the rest of its time."""
    if line.total is None:
        return []
    reported = sorted(line.phases.items(), key=lambda one: PHASES.index(one[0]) if one[0] in PHASES else len(PHASES))
    rest = line.total.mean * 1000 - sum(value for _, value in reported)
    return [*reported, (REST, max(0.0, rest))]


def phases(model: Model) -> Chapter | None:
    """Render stacked bars for each scenario and operation, and a table of the same."""
    lines = [line for line in model.lines if line.phases and line.total]
    if not lines:
        return None
    reported = dict.fromkeys(name for line in lines for name in line.phases)
    names = [*(name for name in PHASES if name in reported), *(name for name in reported if name not in PHASES), REST]
    figures, rows = [], []
    for scenario, operation in dict.fromkeys((line.scenario, line.operation) for line in lines):
        own = [line for line in lines if (line.scenario, line.operation) == (scenario, operation)]
        bars = [(label(line, own), parts_of(line)) for line in own]
        title = f"{scenario}: {operation}"
        for start in range(0, len(bars), MOST_ROWS):
            picture = stacked(title, bars[start : start + MOST_ROWS], names, milliseconds)
            figures.append(Figure(picture, f"{title}: mean time by phase"))
        rows += [row(line, own, names) for line in own]
    head = ["Scenario", "Operation", "Target", *names, "sum"]
    about = "Mean milliseconds of a request by phase, as reported in Server-Timing. The rest is the network, the "
    about += (
        "client, waiting, and the sending of bodies. Phases of a PUT that shares a sync with others contain the wait."
    )
    table = Table(head, rows, "Phases", "Milliseconds.", 3)
    return Chapter("phases", "Where the time went", about, [Figures(figures, "", "", names), table])


def label(line: Line, lines: list[Line]) -> str:
    """Return the target, with what distinguishes it from the others of its plot."""
    words = [line.target]
    if len({one.size for one in lines}) > 1:
        words.append(size(line.size))
    if len({one.stage for one in lines}) > 1:
        words.append(line.stage)
    return " ".join(words)


def milliseconds(value: float) -> str:
    """Render milliseconds with the unit."""
    return f"{significant(value)} ms"


def row(line: Line, lines: list[Line], names: list[str]) -> list[str | Cell]:
    """Return a row of the phases table."""
    known = dict(parts_of(line))
    cells = [significant(known[name]) if name in known else "" for name in names]
    return [line.scenario, line.operation, label(line, lines), *cells, significant(sum(known.values()))]


def usage(model: Model) -> Chapter | None:
    """Render CPU, memory and bytes of each actor."""
    if not model.usages:
        return None
    rows = [usage_row(model, one) for one in model.usages]
    head = ["Scenario", "Target", "Who", "cores, mean", "cores, most", "CPU a request", "memory, most"]
    head += ["read", "written", "busy"]
    limited = [one for one in model.usages if one.who == "generator" and one.share > FULL]
    about = (
        "Sampled about once a second while requests were made. Of a device: all that anybody read and wrote. "
        "CPU a request: of the mixes, in which nothing else was done. A generator that is busy for more than "
        f"{FULL:.0%} of the time may limit what was measured."
    )
    blocks: list[Block] = [Table(head, rows, "", "Over all repeats.", 3)]
    if limited:
        shares = mean([one.share for one in limited])
        words = f"{len(limited)} of these may be limited by the generator, busy for {percent(shares)} of the time."
        blocks.insert(0, Remark(words, "bad"))
    return Chapter("usage", "Resources", about, blocks)


def usage_row(model: Model, usage: Usage) -> list[str | Cell]:
    """Return a row of the usage table."""
    has_cpu = usage.who != "device"
    cpu_per_request = ""
    if has_cpu and usage.span and usage.scenario in MIXES:
        lines = model.of(usage.scenario, target=usage.target)
        requests = sum(line.total.count for line in lines if line.total)
        cpu_per_request = f"{significant(usage.cores * usage.span / requests * 1e6)} µs" if requests else ""
    busy: str | Cell = ""
    if usage.who == "generator":
        busy = Cell(percent(usage.share), "bad" if usage.share > FULL else "")
    cores = [significant(usage.cores, 2), significant(usage.peak_cpu, 2)] if has_cpu else ["", ""]
    sizes = [decimal(usage.peak_rss) if usage.peak_rss else ""]
    sizes += [decimal(moved) if moved is not None else "" for moved in (usage.read, usage.written)]
    return [usage.scenario, usage.target, usage.who, *cores, cpu_per_request, *sizes, busy]
