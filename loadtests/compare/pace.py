"""How long turns and cells take on this machine: the plan's estimates, corrected by what was seen."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping, Sequence

from sluice_s3.loadtests.compare.plan import SelectedScenario
from sluice_s3.loadtests.compare.time_budget import TURN_SECONDS, fixed_seconds

WORK_SECONDS, MOST_SECONDS = 0.1, 1.5
TRUSTED_SECONDS = 10.0
"""What was measured before the run counts as much as so many estimated seconds that were seen."""


@functools.cache
def measured_slowness() -> float:
    """Return how many times longer this process's work takes than alone: it works for a moment and looks."""
    began, used = time.monotonic(), time.process_time()
    while time.process_time() - used < WORK_SECONDS and time.monotonic() - began < MOST_SECONDS:
        sum(range(1000))
    return max(1.0, (time.monotonic() - began) / max(1e-3, time.process_time() - used))


class Pace:
    """Estimates seconds. `slowness` is the guess before anything was seen."""

    def __init__(self, slowness: float = 1.0) -> None:
        self._estimated, self._took = TRUSTED_SECONDS, TRUSTED_SECONDS * slowness
        self._turns: dict[str, list[float]] = {}
        self._cells: dict[tuple[str, str], list[float]] = {}

    @property
    def slowness(self) -> float:
        """How many times longer than estimated everything took so far, timed parts left out."""
        return self._took / self._estimated

    def add_turn(self, target: str, seconds: float) -> None:
        """Note what a turn took beside its cells."""
        self._turns.setdefault(target, []).append(seconds)
        self._add(TURN_SECONDS, seconds)

    def add_cell(self, target: str, chosen: SelectedScenario, seconds: float) -> None:
        """Note what a cell took, with all that belongs to it."""
        self._cells.setdefault((target, chosen.name), []).append(seconds)
        fixed = fixed_seconds(chosen)
        self._add(fixed, max(0.0, seconds - (chosen.seconds - fixed)))

    def _add(self, estimated: float, took: float) -> None:
        self._estimated += estimated
        self._took += took

    def turn(self, target: str) -> float:
        """Return what a turn of this target will take beside its cells."""
        return _expected(self._turns.get(target, ())) or TURN_SECONDS * self.slowness

    def cell(self, target: str, chosen: SelectedScenario) -> float:
        """Return what a cell will take. A target without one is taken to be as slow as the slowest of the others."""
        seen = self._cells.get((target, chosen.name))
        if seen:
            return _expected(seen)
        others = [_expected(took) for (_, name), took in self._cells.items() if name == chosen.name]
        fixed = fixed_seconds(chosen)
        return max(others, default=chosen.seconds - fixed + fixed * self.slowness)

    def round(self, targets: Mapping[str, Sequence[SelectedScenario]]) -> float:
        """Return what a turn of each target with these scenarios will take."""
        turns = (self.turn(name) + sum(self.cell(name, one) for one in chosen) for name, chosen in targets.items())
        return sum(turns)


def _expected(seen: Sequence[float]) -> float:
    """Return the mean, or the last one where things get slower; 0 without any."""
    return max(sum(seen) / len(seen), seen[-1]) if seen else 0.0
