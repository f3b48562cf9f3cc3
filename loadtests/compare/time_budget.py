"""Divides the minutes of a run over repeats and durations, and watches them."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

from sluice_s3.loadtests.compare.plan import SelectedScenario, with_arguments

TURN_SECONDS = 4.0
"""Estimated seconds of a target's turn beside its cells: a gateway starts, is probed and warmed up, and stops."""
USUAL_REPEATS = 5
LEAST_REPEATS = 3
"""Fewer are not judged."""
LONG_REPEATS = 10
"""With more time than for so many, durations become longer before there are more."""
MOST_REPEATS = 30
STRETCHED = ("duration", "step-seconds")
"""Options in seconds that are longer or shorter with the time there is."""
LEAST_STRETCH, MOST_STRETCH = 0.25, 8.0
"""Durations are shortened and lengthened so far before there are fewer or more repeats."""
REPORT_SECONDS = 4.0
"""Seconds kept for the report of a small run."""
FIRST_SECONDS = 60.0
"""The first cell of a run may end so much too late: with none there is nothing to report."""
GRACE_SHARE = 0.03
"""A cell may end so much of the whole time too late; then it is broken off."""


@dataclass(frozen=True)
class Division:
    """How often everything is probably measured, and for how long."""

    repeats: int
    scenarios: Mapping[str, SelectedScenario]

    def seconds(self, targets: int, slowness: float = 1.0) -> float:
        """Return the estimated seconds of the whole run, on a machine that takes so many times longer than alone."""
        return self.repeats * targets * turn_seconds(self.scenarios, slowness)


class Deadline:
    """The end of a run's time: `seconds` after `began` (monotonic); without seconds there is none."""

    def __init__(self, seconds: float, began: float) -> None:
        self.seconds = seconds
        self.began = began

    def took(self) -> float:
        """Return the seconds since it began."""
        return time.monotonic() - self.began

    def left(self) -> float:
        """Return the seconds left; infinite without an end."""
        return self.seconds - self.took() if self.seconds else math.inf

    def is_over(self, patience: float = 0.0) -> bool:
        """Return whether what still runs must be broken off, `patience` seconds later than usual."""
        return self.left() < -GRACE_SHARE * self.seconds - patience


def divide(minutes: float, chosen: Mapping[str, SelectedScenario], targets: int, slowness: float = 1.0) -> Division:
    """Return repeats and durations that take about so many minutes, on a machine so many times slower than alone.

    Five repeats if they fit with shorter durations, else three, else as many as fit; with more time ten repeats, then
    longer durations, then more repeats. It is an estimate: the run itself goes by what it sees.
    """
    budget = max(1.0, minutes * 60 - REPORT_SECONDS * slowness) / max(1, targets)
    for repeats in range(USUAL_REPEATS, LEAST_REPEATS - 1, -1):
        factor = _stretch(budget / repeats, chosen, slowness)
        if factor >= LEAST_STRETCH:
            break
    else:
        shortest = stretched(chosen, LEAST_STRETCH)
        fitting = int(budget / turn_seconds(shortest, slowness))
        return Division(max(1, min(LEAST_REPEATS, fitting)), shortest)
    while factor > 1 and repeats < LONG_REPEATS:
        longer = _stretch(budget / (repeats + 1), chosen, slowness)
        if longer < 1:
            break
        repeats, factor = repeats + 1, longer
    if factor > MOST_STRETCH:
        longest = turn_seconds(stretched(chosen, MOST_STRETCH), slowness)
        repeats = max(repeats, min(int(budget / longest), MOST_REPEATS))
        factor = _stretch(budget / repeats, chosen, slowness)
    return Division(repeats, stretched(chosen, 1.0 if factor == float("inf") else factor))


def fixed_seconds(one: SelectedScenario) -> float:
    """Return the estimated seconds of a cell that no option sets: a busy machine takes longer for these alone."""
    return stretched({one.name: one}, 1e-6)[one.name].seconds


def turn_seconds(chosen: Mapping[str, SelectedScenario], slowness: float = 1.0) -> float:
    """Return the estimated seconds of a target's turn."""
    fixed = TURN_SECONDS + sum(map(fixed_seconds, chosen.values()))
    return TURN_SECONDS + sum(one.seconds for one in chosen.values()) + (slowness - 1) * fixed


def _stretch(seconds: float, chosen: Mapping[str, SelectedScenario], slowness: float) -> float:
    """Return the factor with which a turn takes so many seconds; infinite if nothing can be stretched and it fits."""
    usual, longer = (turn_seconds(found, slowness) for found in (chosen, stretched(chosen, 2.0)))
    if longer <= usual:
        return float("inf") if usual <= seconds else 0.0
    return 1 + (seconds - usual) / (longer - usual)


def stretched(chosen: Mapping[str, SelectedScenario], factor: float) -> dict[str, SelectedScenario]:
    """Return the scenarios with durations so many times as long."""
    found = {}
    for name, one in chosen.items():
        longer = {
            option: f"{float(one.arguments[option]) * factor:.4g}" for option in STRETCHED if option in one.arguments
        }
        found[name] = with_arguments(one, {**one.arguments, **longer}) if longer else one
    return found
