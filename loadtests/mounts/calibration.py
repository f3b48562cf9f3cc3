"""The published experiments on our own mounts, to check the profiles against their figures."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from sluice_s3.loadtests.mounts.experiments import Experiment, experiments
from sluice_s3.loadtests.mounts.mount import mounted
from sluice_s3.loadtests.mounts.profiles import profile_named

NEAR = 0.2
FLOORS = 3.0


@dataclass(frozen=True)
class Outcome:
    """One measured figure.

    `floor` is the same on a mount without added costs.
    """

    profile: str
    experiment: Experiment
    measured: float
    floor: float

    @property
    def ratio(self) -> float:
        """Measured over published."""
        figure = self.experiment.figure
        return self.measured / figure if figure else 0.0

    @property
    def floors(self) -> float:
        """The published figure in multiples of the floor."""
        one = self.experiment
        figure = one.figure or one.most or one.least
        return self.floor / figure if one.unit == "MB/s" else figure / self.floor

    @property
    def verdict(self) -> str:
        """`near`, `off`, or `floor` where the mount itself is too slow to judge."""
        one = self.experiment
        if self.floors < FLOORS:
            return "floor"
        if one.figure:
            return "near" if abs(self.ratio - 1) <= NEAR else "off"
        above = not one.least or self.measured >= one.least * (1 - NEAR)
        return "near" if above and self.measured <= one.most * (1 + NEAR) else "off"


def calibrate(profiles: Iterable[str], only: str = "", directory: Path | None = None) -> Iterator[Outcome]:
    """Measure every figure of the profiles whose text contains `only`.

    Backing directories are created in `directory`. Raises MountFailed, and KeyError for a profile without figures.
    """
    for profile in profiles:
        personality = profile_named(profile).personality
        for experiment in experiments(profile):
            if only not in experiment.what:
                continue
            floor = _measure(experiment, "none", personality, directory)
            measured = _measure(experiment, profile, personality, directory)
            yield Outcome(profile, experiment, measured, floor)


def _measure(experiment: Experiment, profile: str, personality: str, directory: Path | None) -> float:
    with tempfile.TemporaryDirectory(prefix="sluice-calibrate-", dir=directory) as made:
        backing, where = Path(made) / "backing", Path(made) / "mount"
        backing.mkdir()
        where.mkdir()
        with mounted(backing, where, profile=profile, personality=personality) as mount:
            return experiment.measure(mount)


def table(outcomes: Iterable[Outcome]) -> Table:
    """Render the table that is printed."""
    made = Table("profile", "experiment", "unit", "scaled", box=None)
    for name in ("published", "measured", "ratio", "floor", "floors"):
        made.add_column(name, justify="right")
    made.add_column("")
    for one in outcomes:
        what = one.experiment
        bounds = f"{what.least:g} to {what.most:g}" if what.least else f"< {what.most:g}"
        made.add_row(
            *(one.profile, what.what, what.unit, what.scaled, f"{what.figure:g}" if what.figure else bounds),
            *(f"{one.measured:.4g}", f"{one.ratio:.2f}" if what.figure else "", f"{one.floor:.4g}"),
            *(f"{one.floors:.1f}", one.verdict),
        )
    return made
