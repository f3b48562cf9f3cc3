"""Which scenarios are played next, on which target first, and when it is enough.

A round is a turn of each target, in random order. With minutes, a round has the scenarios whose uses are not settled
yet and for which the time will do: first three repeats of as much as possible, since fewer are not judged.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from sluice_s3.loadtests.compare.pace import Pace, measured_slowness
from sluice_s3.loadtests.compare.plan import Plan, SelectedScenario
from sluice_s3.loadtests.compare.targets import Target
from sluice_s3.loadtests.compare.time_budget import LEAST_REPEATS, MOST_REPEATS

MOST_NEEDED = 1000
"""Repeats; an estimate that reaches it is no longer one."""


@dataclass(frozen=True)
class Standing:
    """How surely a use is known: `half` is the widest interval's half, as a share; None with too few repeats.

    `settled`: no more repeats are needed. `spread` is the standard deviation of a repeat, `needed` an estimate of the
    repeats that would settle it.
    """

    use: str
    scenarios: tuple[str, ...]
    repeats: int
    settled: bool
    half: float | None = None
    spread: float | None = None
    needed: int | None = None


class Judge(Protocol):
    """Judges the cells that are done while a run goes on."""

    uses: Mapping[str, Sequence[str]]
    """The uses for which each scenario has figures."""

    def add(self, cell: Mapping[str, Any]) -> None:
        """Read the rows of a cell that ended well."""
        ...

    def standings(self) -> list[Standing]:
        """Return how surely each use is known by now."""
        ...


@dataclass(frozen=True)
class Round:
    """A turn of each target. `repeats` are the scenarios, each with the number of its repeat."""

    order: Sequence[str]
    repeats: dict[str, int]

    def as_json(self) -> dict[str, Any]:
        """Return it as `meta.json` stores it."""
        return asdict(self)


class Rounds:
    """Decides the rounds of a run. `past` are those that have begun. `why` says, at the end, why there is no other."""

    def __init__(self, plan: Plan, targets: Sequence[Target], judge: Judge | None, past: Sequence[Round]) -> None:
        self.plan = plan
        self.past = list(past)
        self.pace = Pace(measured_slowness())
        self.why = ""
        self._targets = targets
        self._judge = judge
        self._order = _orders([one.name for one in targets], plan.seed)
        for _ in self.past:
            next(self._order)

    @property
    def most(self) -> int:
        """The most rounds that there may be."""
        return self.plan.most_repeats or (MOST_REPEATS if self.plan.minutes else self.plan.repeats)

    def next(self, seconds_left: float) -> Round | None:
        """Return the next round; None if no more is needed, allowed or possible, with the reason in `why`."""
        chosen = list(self.plan.scenarios)
        if len(self.past) >= self.most:
            self.why = "repeats"
            return None
        if self.plan.minutes:
            chosen = self.open()
            if not chosen:
                self.why = "settled"
                return None
            chosen = self.affordable(chosen, seconds_left) or ([] if self.past else [self._cheapest()])
            if not chosen:
                self.why = "time"
                return None
        found = Round(next(self._order), {name: self.repeats_of(name) + 1 for name in chosen})
        self.past.append(found)
        return found

    def repeats_of(self, scenario: str) -> int:
        """Return how often a scenario has been begun."""
        return sum(scenario in one.repeats for one in self.past)

    def open(self) -> list[str]:
        """Return the scenarios that need more repeats."""
        if self._judge is None:
            return list(self.plan.scenarios)
        waiting = {name for one in self._judge.standings() if not one.settled for name in one.scenarios}
        return [name for name in self.plan.scenarios if self.repeats_of(name) < LEAST_REPEATS or name in waiting]

    def affordable(self, names: Sequence[str], seconds: float, begun: Round | None = None) -> list[str]:
        """Return those of the scenarios that can have the repeats that a verdict needs, or one more, in these seconds.

        What has the least use for its time goes first, of equals the last one. One stays as long as a single round of
        it fits. In a round that has `begun`, that one counts as to come.
        """
        left = list(names)
        while left and self._cost(left, begun) > seconds:
            if len(left) == 1:
                return left if self._cost(left, begun, rounds=1) <= seconds else []
            left.remove(max(reversed(left), key=lambda name: self._price(name, left)))
        return left

    def _cheapest(self) -> str:
        """Return the scenario that takes least: a guess alone is no reason to measure nothing."""
        return min(self.plan.scenarios, key=lambda name: self.plan.scenarios[name].seconds)

    def _cost(self, names: Sequence[str], begun: Round | None, rounds: int = LEAST_REPEATS) -> float:
        """Return the seconds until all of these have the repeats that are judged, or one more."""
        total = 0.0
        missing = {}
        for name in names:
            had = self.repeats_of(name) - (begun is not None and name in begun.repeats)
            missing[name] = min(rounds, max(1, LEAST_REPEATS - had))
        for number in range(max(missing.values())):
            chosen = [self.plan.scenarios[name] for name in names if missing[name] > number]
            total += self.pace.round({one.name: playable(one, chosen) for one in self._targets})
        return total

    def _price(self, name: str, names: Sequence[str]) -> float:
        """Return the seconds of a scenario for each use that it alone covers; infinite if it covers none alone."""
        uses = self._judge.uses if self._judge is not None else {}
        others = {use for other in names if other != name for use in uses.get(other, (other,))}
        alone = sum(use not in others for use in uses.get(name, (name,)))
        chosen = [self.plan.scenarios[name]]
        seconds = sum(self.pace.cell(one.name, chosen[0]) for one in self._targets if playable(one, chosen))
        return seconds / alone if alone else float("inf")


def playable(target: Target, chosen: Sequence[SelectedScenario]) -> list[SelectedScenario]:
    """Return the scenarios that a target can be played: boto3 needs an endpoint."""
    return [one for one in chosen if not (target.kind == "direct" and one.name == "boto3_mixed")]


def _orders(names: Sequence[str], seed: int) -> Iterator[list[str]]:
    """Yield random orders; in as many rounds as there are targets each is once the first, once the second and so on."""
    source = random.Random(seed)
    while True:
        first = source.sample(names, len(names))
        for at in source.sample(range(len(names)), len(names)):
            yield first[at:] + first[:at]


def rounds_of(meta: Mapping[str, Any]) -> list[Round]:
    """Return the rounds of a run so far; where they are not noted, each had all scenarios."""
    if "rounds" in meta:
        return [Round(**one) for one in meta["rounds"]]
    names = list(dict.fromkeys(str(cell["target"]) for cell in meta["cells"]))
    last = max((int(cell["repeat"]) for cell in meta["cells"]), default=0)
    return [Round(names, dict.fromkeys(meta["plan"]["scenarios"], repeat)) for repeat in range(1, last + 1)]
