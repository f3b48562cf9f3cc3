"""Compares what two runs both measured, and whether differences exceed the noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.report import significance
from sluice_s3.loadtests.report.model import Model, of_run
from sluice_s3.loadtests.report.significance import Difference
from sluice_s3.loadtests.report.use_cases import BAD_SHARE, USES, Measure, measures
from sluice_s3.loadtests.report.verdict import looks_of, scored

A, B = "A", "B"
MAY_DIFFER = {
    *("duration", "warm-up", "times", "most", "step-seconds", "reads", "stats", "lists", "deletes", "batches"),
    *("sizes", "numbers", "counts"),
}
"""Options that make a scenario longer, or add parts with names of their own."""


@dataclass(frozen=True)
class Pair:
    """A use (`figure` empty) or one figure of a target.

    `over` is B against A; `a` and `b` are for display.
    """

    target: str
    use: str
    figure: str
    a: str
    b: str
    over: Difference


@dataclass(frozen=True)
class Pairs:
    """The pairs of two runs. `remarks` say what was left out and what else differs."""

    a: str
    b: str
    pairs: list[Pair]
    remarks: list[str]


def compare_runs(a: Path, b: Path) -> Pairs:
    """Compare targets and scenarios of the same names.

    Raises PlanError when a directory holds no run, or when the runs have no use in common.
    """
    first, second = of_run(a), of_run(b)
    unlike = {name: why for name in first.scenarios() if (why := unlike_options(first.meta, second.meta, name))}
    found = ([one for one in measures(model) if one.scenario not in unlike] for model in (first, second))
    mine, theirs = ({(one.target, one.name): one for one in series} for series in found)
    common = [name for name in mine if name in theirs and mine[name].speeds and theirs[name].speeds]
    remarks = [*_remarks(first, second), *unlike.values()]
    if not common:
        reasons = "".join(f"; {why}" for why in remarks)
        raise PlanError(f"{a} and {b} have no use of a target in common{reasons}")
    targets = list(dict.fromkeys(target for target, _ in common))
    pairs: list[Pair] = []
    looks = looks_of(first.meta, second.meta)
    for target in targets:
        own = [name for name in common if name[0] == target]
        pairs += _compare_target(target, [mine[name] for name in own], [theirs[name] for name in own], looks)
    return Pairs(str(first.meta["run"]), str(second.meta["run"]), pairs, remarks)


def _compare_target(target: str, first: Sequence[Measure], second: Sequence[Measure], looks: int) -> Iterator[Pair]:
    """Return each use, followed by its figures."""
    labelled = [*(replace(one, target=A) for one in first), *(replace(one, target=B) for one in second)]
    for use in USES:
        figures, scores = scored(use, labelled, (A, B))
        if len(scores) < 2:
            continue
        over = _difference(
            [scores[label].speeds for label in (A, B)], max(one.failed for one in scores.values()), looks
        )
        yield Pair(target, use.name, "", "", "", over)
        for before, after in zip(first, second, strict=True):
            if before.name in figures and before.use == use.name:
                over = _difference([before.speeds, after.speeds], max(before.failed, after.failed), looks)
                yield Pair(target, use.name, before.name, before.render(), after.render(), over)


def _difference(speeds: Sequence[Mapping[int, float]], failed: float, looks: int) -> Difference:
    if failed > BAD_SHARE:
        return replace(significance.UNKNOWN, call="too many errors")
    return significance.compare(list(speeds[1].values()), list(speeds[0].values()), comparisons=looks)


def unlike_options(a: Mapping[str, Any], b: Mapping[str, Any], scenario: str) -> str:
    """Return why a scenario differs between two plans, or an empty string."""
    plans = [meta["plan"]["scenarios"].get(scenario) for meta in (a, b)]
    if plans[1] is None:
        return ""
    known = [{"users": one["users"], **one["arguments"]} for one in plans]
    names = [name for name in {**known[0], **known[1]} if name not in MAY_DIFFER]
    other = [f"{name} {known[0].get(name)} and {known[1].get(name)}" for name in names
             if known[0].get(name) != known[1].get(name)]  # fmt: skip
    return f"{scenario} is not compared: it was played with {', '.join(other)}" if other else ""


def _remarks(first: Model, second: Model) -> list[str]:
    """Return what else differs."""
    found = []
    for label, model in ((A, first), (B, second)):
        if model.partial:
            found.append(f"{label} is a partial run: {model.partial}")
    for name in ("cpu", "cores", "kernel"):
        before, after = (model.meta["machine"].get(name) for model in (first, second))
        if before != after:
            found.append(f"another machine: {name} {before} and {after}")
    for name in ("durability", "workers", "processes"):
        before, after = (model.meta["plan"].get(name) for model in (first, second))
        if before != after:
            found.append(f"{name}: {before} and {after}")
    return found
