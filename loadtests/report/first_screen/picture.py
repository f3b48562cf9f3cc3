"""Throughput and latency of each use and store; a colour only where the verdict called a winner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluice_s3.loadtests.report.chapters.saturation import curve
from sluice_s3.loadtests.report.context import Report
from sluice_s3.loadtests.report.document import Figures, Track, Tracks
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.plots.tracks import bar, dots
from sluice_s3.loadtests.report.saturation import limit_seconds, scales
from sluice_s3.loadtests.report.significance import LEVEL
from sluice_s3.loadtests.report.units import seconds
from sluice_s3.loadtests.report.use_figures import UseFigures, Value
from sluice_s3.loadtests.report.verdict import Judgement

MOST_BARS = 4
"""Stores with a bar each; more of them are dots on one line."""
MOST_REACH = 1.5
"""The axis of bars reaches so many times the largest value at most."""
CALLS = {
    "no difference": "no difference",
    "too noisy": "too noisy to call",
    "too few repeats": "too few repeats",
    "nothing to compare": "",
}


def picture(report: Report) -> Sequence[Tracks | Figures]:
    """Return the picture of the uses, else of the scale; none if nothing was measured."""
    if not report.figures:
        return _scale(report.model)
    many = len(report.model.stores) > MOST_BARS
    head = ["Use", "Store", "Throughput → more is better", "Latency: p50 / p99 → less is better"]
    if many:
        head = ["Use", "Take", "Throughput: right is better", "Latency, median: left is better"]
    groups = [
        (one.judgement.use.name, one.judgement.use.what, [_strip(report, one)] if many else _bars(report, one))
        for one in report.figures
    ]
    lines = f"Lines: {LEVEL:.0%} intervals over the repeats"
    coloured = "Coloured: called the best by the verdict."
    note = f"{lines}; one without an end mark goes beyond the picture. {coloured}"
    if many:
        note = f"A dot is a store, with the number of its card, on logarithmic scales. {lines}. {coloured}"
    return [Tracks(head, groups, note=note, dotted=many)]


def _scale(model: Model) -> list[Figures]:
    found = scales(model)
    return [Figures([curve(model, found, limit_seconds(model))], legend=model.targets)] if found else []


def _bars(report: Report, one: UseFigures) -> list[Track]:
    fastest, slowest = _top(one.throughput), _top(one.latency)
    lines = []
    for target in one.targets:
        index = _colour(report, one.judgement, target)
        columns = [_column(one.throughput[target], fastest, one.render_throughput(target), target, index)]
        if target in one.latency:
            columns.append(_column(one.latency[target], slowest, one.render_latency(target), target, index))
        lines.append(Track(target, columns, "" if index is None else "winner"))
    return lines


def _top(values: Mapping[str, Value]) -> float:
    """Return the end of the axis. A wide interval is cut off there, else it would leave no room for the values."""
    means = max((value.mean for value in values.values()), default=0.0)
    return min(max((value.reach for value in values.values()), default=0.0), means * MOST_REACH)


def _column(value: Value, top: float, words: str, target: str, index: int | None) -> tuple[str, str]:
    return bar(f"{target}: {words}", value.mean, value.low, value.high, top, index), words


def _strip(report: Report, one: UseFigures) -> Track:
    judgement = one.judgement
    ordered = sorted(one.targets, key=lambda target: one.throughput[target].mean)
    rates = [_dot(report, one, target, one.throughput[target], one.render_throughput(target)) for target in ordered]
    columns = [(dots(judgement.use.name, rates), _range(one, ordered))]
    known = sorted((target for target in ordered if target in one.latency), key=lambda name: one.latency[name].mean)
    if known:
        times = [_dot(report, one, target, one.latency[target], one.render_latency(target)) for target in known]
        words = f"{_median(one, known[0])} to {_median(one, known[-1])}"
        columns.append((dots(judgement.use.name, times), words))
    taken = " or ".join(judgement.winners) or CALLS.get(judgement.call, judgement.call)
    return Track(taken, columns, "winner" if judgement.winners else "")


def _dot(
    report: Report, one: UseFigures, target: str, value: Value, words: str
) -> tuple[str, float, float | None, float | None, int, bool]:
    index, called = report.model.stores.index(target), target in one.judgement.winners
    return f"{target}: {words}", value.mean, value.low, value.high, index, called


def _range(one: UseFigures, ordered: Sequence[str]) -> str:
    slowest, _, unit = one.render_throughput(ordered[0]).partition(" ")
    return f"{slowest} to {one.render_throughput(ordered[-1])}" if unit else ""


def _median(one: UseFigures, target: str) -> str:
    return seconds(one.latency[target].mean)


def _colour(report: Report, judgement: Judgement, target: str) -> int | None:
    return report.model.targets.index(target) if target in judgement.winners else None
