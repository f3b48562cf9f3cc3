"""The load of a run: which requests, how large, and how many a second each store carried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice_s3.loadtests.report import stats
from sluice_s3.loadtests.report.model import Line, Model

PREFERRED = ("mixed", "boto3_mixed", "open_loop", "saturation")
"""Scenarios that are like an application's load, the best first."""


@dataclass(frozen=True)
class Load:
    """A mix of requests: the share of each operation, and bytes of an average request that are read and written.

    `rates` are requests a second that each target carried, the mean of its repeats.
    """

    scenario: str
    shares: Mapping[str, float]
    read: float
    written: float
    rates: Mapping[str, float]

    @property
    def moved(self) -> float:
        """Bytes of an average request."""
        return self.read + self.written


def load_of(model: Model) -> Load | None:
    """Return the load of the scenario that is most like an application's; None without a good request."""
    played = model.scenarios()
    for scenario in [*(one for one in PREFERRED if one in played), *played]:
        lines = [line for line in model.of(scenario) if line.rounds]
        count = sum(one.count for line in lines for one in line.rounds)
        if count:
            shares = {
                operation: sum(one.count for line in lines if line.operation == operation for one in line.rounds)
                / count
                for operation in dict.fromkeys(line.operation for line in lines)
            }
            read = sum(line.moved for line in lines if line.operation == "GET") / count
            written = sum(line.moved for line in lines if line.operation == "PUT") / count
            rates = {name: rate for name in model.targets if (rate := rate_of(model, scenario, name))}
            return Load(scenario, shares, read, written, rates)
    return None


def rate_of(model: Model, scenario: str, target: str) -> float:
    """Return requests a second; of `saturation` the most of a step."""
    steps = [step for step in model.steps if step.target == target]
    if scenario == "saturation" and steps:
        return max((stats.mean([one.rate for one in step.rounds]) for step in steps if step.rounds), default=0.0)
    rates = _by_repeat(model.of(scenario, target=target))
    return stats.mean(rates) if rates else 0.0


def _by_repeat(lines: Sequence[Line]) -> list[float]:
    rates = []
    for repeat in sorted({one.repeat for line in lines for one in line.rounds}):
        own = [one for line in lines for one in line.rounds if one.repeat == repeat]
        seconds = max(one.begin + one.seconds for one in own) - min(one.begin for one in own)
        rates += [sum(one.count for one in own) / seconds] if seconds else []
    return rates
