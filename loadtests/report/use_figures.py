"""How fast each store is in a use, in units: throughput and latency, with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice_s3.loadtests.report import significance, stats, units
from sluice_s3.loadtests.report.model import Model
from sluice_s3.loadtests.report.use_cases import FIXED_RATE, Measure
from sluice_s3.loadtests.report.verdict import TOGETHER, Judgement


@dataclass(frozen=True)
class Value:
    """A mean over the repeats with its interval, if there are enough of them."""

    mean: float
    low: float | None = None
    high: float | None = None

    @property
    def reach(self) -> float:
        """The largest number that is drawn."""
        return max(self.mean, self.high or 0.0)


@dataclass(frozen=True)
class UseFigures:
    """A use of all targets. `unit` of the throughput is `B/s` or `1/s`; latencies are in seconds.

    Several figures of a use (sizes, operations) are one by their geometric mean, as in the verdict.
    """

    judgement: Judgement
    unit: str
    throughput: dict[str, Value]
    latency: dict[str, Value]
    p99: dict[str, float]

    @property
    def targets(self) -> list[str]:
        """The targets with figures."""
        return list(self.throughput)

    def render_throughput(self, target: str) -> str:
        """Return `123 MB/s` or `1,230 req/s`."""
        value = self.throughput[target].mean
        return f"{units.megabytes(value)} MB/s" if self.unit == "B/s" else f"{units.significant(value)} req/s"

    def render_latency(self, target: str) -> str:
        """Return `8.10 / 23.0 ms`: median and 99th percentile."""
        if target not in self.latency:
            return ""
        return units.both_seconds(self.latency[target].mean, self.p99[target])


def use_figures(model: Model, found: Sequence[Measure], judgements: Sequence[Judgement]) -> list[UseFigures]:
    """Return the figures of each use that was judged."""
    return [
        one for judgement in judgements if judgement.use is not TOGETHER and (one := _of_use(model, found, judgement))
    ]


def _of_use(model: Model, found: Sequence[Measure], judgement: Judgement) -> UseFigures | None:
    rates: dict[str, dict[int, float]] = {}
    times: dict[str, dict[int, tuple[float, float]]] = {}
    own = [one for one in found if one.name in judgement.figures and one.target in judgement.scores]
    counted = not all(one.amount for one in own)
    for target in judgement.scores:
        mine = [one for one in own if one.target == target]
        repeats = sorted(set.intersection(*(set(one.speeds) for one in mine))) if mine else []
        if not repeats:
            continue
        rates[target] = {
            repeat: stats.geometric([one.speeds[repeat] * (1 if counted else one.amount) for one in mine])
            for repeat in repeats
        }
        times[target] = _times(mine, repeats)
        if judgement.use.name == FIXED_RATE:
            rates[target], times[target] = _open_loop(model, target, repeats)
    if not rates:
        return None
    medians = {target: {r: p50 for r, (p50, _) in by.items()} for target, by in times.items() if by}
    tails = {target: stats.geometric([p99 for _, p99 in by.values()]) for target, by in times.items() if by}
    unit = "1/s" if counted else "B/s"
    return UseFigures(judgement, unit, _values(rates, judgement.best), _values(medians, judgement.best), tails)


def _times(mine: Sequence[Measure], repeats: Sequence[int]) -> dict[int, tuple[float, float]]:
    known = [repeat for repeat in repeats if all(repeat in one.times for one in mine)]
    return {
        repeat: (
            stats.geometric([one.times[repeat][0] for one in mine]),
            stats.geometric([one.times[repeat][1] for one in mine]),
        )
        for repeat in known
    }


def _open_loop(
    model: Model, target: str, repeats: Sequence[int]
) -> tuple[dict[int, float], dict[int, tuple[float, float]]]:
    """Return what arrived and was answered, and the times of all operations together."""
    rates = {}
    for repeat in repeats:
        rounds = [one for line in model.of("open_loop", target=target) for one in line.rounds if one.repeat == repeat]
        rates[repeat] = sum(one.count / one.seconds for one in rounds if one.seconds)
    course = next((one for one in model.courses_of("open_loop", "") if one.target == target), None)
    return rates, {repeat: found for repeat, found in (course.times if course else {}).items() if repeat in repeats}


def _values(by_target: Mapping[str, Mapping[int, float]], best: str) -> dict[str, Value]:
    """Return means with intervals; the noise is that of a target and the best one, of the best one its nearest."""
    found = {}
    for target, by_repeat in by_target.items():
        own = list(by_repeat.values())
        others = [name for name in by_target if name != target]
        beside = best if best in others else (others[0] if others else "")
        mean = stats.geometric([one for one in own if one > 0]) if any(one > 0 for one in own) else 0.0
        reach = significance.interval(own, list(by_target[beside].values())) if beside else None
        found[target] = Value(mean, *(reach or (None, None)))
    return found
