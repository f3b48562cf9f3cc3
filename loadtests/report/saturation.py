"""How far a store scales: its knee, and how many clients it serves before they wait too long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sluice_s3.loadtests.report import stats
from sluice_s3.loadtests.report.model import SATURATION, Model, Step
from sluice_s3.loadtests.report.units import seconds, significant, trim_zeros
from sluice_s3.loadtests.report.use_cases import BAD_SHARE

KNEE = 0.9
"""Share of the best throughput from which more clients gain little."""
P99_MS = 50.0
"""The limit of the 99th percentile where a run does not name one."""


@dataclass(frozen=True)
class Point:
    """A number of clients: requests and bytes a second and percentiles in seconds, the medians of the repeats.

    `low` and `high` are the lowest and highest 99th percentile of a repeat, `failed` the share of requests that failed.
    All but the last are 0 where every request failed.
    """

    users: int
    rate: float
    moved_rate: float
    p50: float
    p99: float
    low: float
    high: float
    failed: float = 0.0


@dataclass(frozen=True)
class Scale:
    """How a target scales.

    `knee` is the least number of clients with KNEE of the best throughput. `within` is the last one before the 99th
    percentile passes the limit or requests fail (None: the first step does), `beyond` the one that does (None: none).
    """

    target: str
    points: list[Point]
    knee: Point
    within: Point | None
    beyond: Point | None

    @property
    def answer(self) -> str:
        """Return `16`, `128 or more`, `fewer than 1`."""
        if self.within is None:
            return f"fewer than {self.points[0].users}"
        return f"{self.within.users}" if self.beyond else f"{self.within.users} or more"

    @property
    def served(self) -> str:
        """Return the answer with its noun: `1 client`, `fewer than 1 client`, `16 or more clients`."""
        return f"{self.answer} client{'' if self.answer.endswith(('than 1', ' 1')) or self.answer == '1' else 's'}"


def scales(model: Model) -> list[Scale]:
    """Return how each target scales, in the order of the run."""
    limit = limit_seconds(model)
    found = []
    for name in model.targets:
        points = [point_of(step) for step in model.steps if step.target == name]
        if any(one.rate for one in points):
            found.append(scale_of(name, points, limit))
    return found


def point_of(step: Step) -> Point:
    """Return a step over its repeats."""

    def median(values: Iterable[float]) -> float:
        return stats.percentile(sorted(values), 0.5)

    rounds, tails = step.rounds, [one.p99 for one in step.rounds]
    if not rounds:
        return Point(step.users, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    failed = step.errors / (step.errors + sum(one.count for one in rounds))
    return Point(
        step.users, median(one.rate for one in rounds), median(one.moved_rate for one in rounds),
        median(one.p50 for one in rounds), median(tails), min(tails), max(tails), failed,
    )  # fmt: skip


def scale_of(target: str, points: Sequence[Point], limit: float) -> Scale:
    """Find the knee and the limit, in points of which one has a good request at least."""
    best = max(one.rate for one in points)
    knee = next(one for one in points if one.rate >= KNEE * best)
    within = None
    for one in points:
        if one.p99 > limit or one.failed > BAD_SHARE:
            return Scale(target, list(points), knee, within, one)
        within = one
    return Scale(target, list(points), knee, within, None)


def limit_seconds(model: Model) -> float:
    """Return the limit of the 99th percentile that the run names, in seconds."""
    asked = model.meta["plan"]["scenarios"].get(SATURATION) or {"arguments": {}}
    try:
        return float(asked["arguments"]["p99-ms"]) / 1000
    except (KeyError, ValueError):
        return P99_MS / 1000


def render_limit(model: Model) -> str:
    """Return the limit in words, as `50 ms`."""
    return trim_zeros(seconds(limit_seconds(model)))


def one_sentence_of_scale(model: Model) -> str:
    """Return what the stores carry, in one sentence; empty without the scenario."""
    found = [one for one in scales(model) if one.target in model.stores]
    if not found:
        return ""
    parts = [f"{one.target} serves {one.served}" for one in found]
    best = max(found, key=lambda one: one.knee.rate)
    top = max(point.rate for point in best.points)
    return (
        f"{'; '.join(parts)} with 99 % of requests within {render_limit(model)}; "
        f"the most was {significant(top)} requests/s, by {best.target}."
    )
