"""Divides the minutes of a run over repeats and durations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluice_s3.loadtests.compare.plan import SelectedScenario, with_arguments

TURN_SECONDS = 4.0
"""Estimated seconds of a target's turn beside its cells: a gateway starts, is probed and warmed up, and stops."""
USUAL_REPEATS = 5
LEAST_REPEATS = 3
"""Fewer are not judged."""
MOST_REPEATS = 15
STRETCHED = ("duration", "step-seconds")
"""Options in seconds that are longer or shorter with the time there is."""
LEAST_STRETCH, MOST_STRETCH = 0.25, 8.0
"""Durations are shortened and lengthened so far before there are fewer or more repeats."""


@dataclass(frozen=True)
class Division:
    """How often everything is measured, and for how long."""

    repeats: int
    scenarios: Mapping[str, SelectedScenario]

    def seconds(self, targets: int) -> float:
        """Return the estimated seconds of the whole run."""
        return self.repeats * targets * (TURN_SECONDS + sum(one.seconds for one in self.scenarios.values()))


def divide(minutes: float, chosen: Mapping[str, SelectedScenario], targets: int) -> Division:
    """Return repeats and durations that take about so many minutes.

    Five repeats if they fit with shorter durations, else three, else as many as fit; more than five when durations
    would be very long. The estimate is for a store that is not slow: the run itself watches the time.
    """
    budget = minutes * 60 / max(1, targets)
    for repeats in range(USUAL_REPEATS, LEAST_REPEATS - 1, -1):
        factor = _stretch(budget / repeats, chosen)
        if factor >= LEAST_STRETCH:
            break
    else:
        shortest = Division(1, _stretched(chosen, LEAST_STRETCH))
        return replace(shortest, repeats=max(1, min(LEAST_REPEATS, int(budget / shortest.seconds(1)))))
    if factor > MOST_STRETCH:
        longest = Division(1, _stretched(chosen, MOST_STRETCH))
        repeats = max(repeats, min(int(budget / longest.seconds(1)), MOST_REPEATS))
        factor = _stretch(budget / repeats, chosen)
    return Division(repeats, _stretched(chosen, 1.0 if factor == float("inf") else factor))


def _stretch(seconds: float, chosen: Mapping[str, SelectedScenario]) -> float:
    """Return the factor with which a turn takes so many seconds; infinite if nothing can be stretched and it fits."""
    usual, longer = (TURN_SECONDS + sum(one.seconds for one in found.values())
                     for found in (chosen, _stretched(chosen, 2.0)))  # fmt: skip
    if longer <= usual:
        return float("inf") if usual <= seconds else 0.0
    return 1 + (seconds - usual) / (longer - usual)


def _stretched(chosen: Mapping[str, SelectedScenario], factor: float) -> dict[str, SelectedScenario]:
    found = {}
    for name, one in chosen.items():
        longer = {
            option: f"{float(one.arguments[option]) * factor:.4g}" for option in STRETCHED if option in one.arguments
        }
        found[name] = with_arguments(one, {**one.arguments, **longer})
    return found
