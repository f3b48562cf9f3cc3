"""All numbers of a report: read from a run's directory, and written as report.json."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.compare import run_metadata as meta_file
from sluice_s3.loadtests.report import stats
from sluice_s3.loadtests.report.loader import FIRST_MESSAGES, Group, Kind, Message, Reading, read
from sluice_s3.loadtests.report.stats import Spread
from sluice_s3.loadtests.report.time_windows import Heat, Window, heat, windows
from sluice_s3.loadtests.report.usage import FULL, Usage, usages

MIXES = ("mixed", "boto3_mixed", "open_loop")
"""Scenarios of a single part that is long enough for figures by the second."""
SATURATION = "saturation"
"""The scenario that doubles its clients."""


@dataclass(frozen=True)
class Round:
    """A kind of request in one repeat.

    Times are in seconds. `begin` is the first request's since the run's, `seconds` from there to the end of the last,
    `busy` the sum of all requests' times.
    """

    repeat: int
    begin: float
    count: int
    errors: int
    moved: int
    seconds: float
    busy: float
    mean: float
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        """Bytes a second."""
        return self.moved / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Line:
    """A kind of request of one target, over all repeats.

    Times are in seconds, and of successful requests only. `errors` counts the failed ones. `size` is -1 where it
    varies; `late` (open_loop) is from due to sent; `phases` are mean milliseconds of the requests that reported phases.
    """

    target: str
    scenario: str
    stage: str
    operation: str
    size: int
    users: int
    errors: int
    moved: int
    total: Spread | None
    ttfb: Spread | None
    late: Spread | None
    curve: list[tuple[float, float]]
    phases: dict[str, float]
    rounds: list[Round]

    @property
    def kind(self) -> Kind:
        """The kind of request, without the target."""
        return Kind(self.stage, self.operation, self.size)


@dataclass(frozen=True)
class Course:
    """One operation (or all: "") of one target, second by second and by repeat.

    It includes the heat map of the first repeat.
    """

    target: str
    scenario: str
    operation: str
    windows: dict[int, list[Window]]
    heat: Heat | None
    times: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Median and 99th percentile of all its requests in seconds, by repeat."""


@dataclass(frozen=True)
class Pace:
    """All requests of a step in one repeat: a second, bytes a second, median and 99th percentile in seconds."""

    repeat: int
    count: int
    rate: float
    moved_rate: float
    p50: float
    p99: float


@dataclass(frozen=True)
class Step:
    """A number of clients of one target in the scenario `saturation`."""

    target: str
    stage: str
    users: int
    errors: int
    rounds: list[Pace]


@dataclass(frozen=True)
class Errors:
    """The number of errors, and their first messages."""

    target: str
    scenario: str
    operation: str
    count: int
    first: list[Message]


@dataclass(frozen=True)
class Retries:
    """How many requests were sent again on a new connection."""

    target: str
    scenario: str
    count: int


@dataclass(frozen=True)
class Model:
    """A run. `unread` are files that could not be read, with the reasons."""

    meta: Mapping[str, Any]
    lines: list[Line] = field(default_factory=list)
    courses: list[Course] = field(default_factory=list)
    errors: list[Errors] = field(default_factory=list)
    retries: list[Retries] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    parquet: bool = False
    """Whether the rows are also in a Parquet file."""

    @property
    def targets(self) -> list[str]:
        """The names in the order of the run."""
        return [one["name"] for one in self.meta["targets"]]

    @property
    def stores(self) -> list[str]:
        """The targets to choose between: those behind S3, else plain files."""
        behind = [one["name"] for one in self.meta["targets"] if one["kind"] != "direct"]
        return behind or self.targets

    @property
    def partial(self) -> str:
        """Why the run is partial, or an empty string."""
        if self.meta["state"] == "complete":
            return "; ".join(self.unread)
        reason = self.meta["reason"] or (
            "it was not ended" if self.meta["state"] == "running" else "no reason is known"
        )
        return "; ".join([reason, *self.unread])

    def of(self, scenario: str, **wanted: object) -> list[Line]:
        """Return the lines of a scenario with these attributes."""
        return [
            line
            for line in self.lines
            if line.scenario == scenario and all(getattr(line, name) == value for name, value in wanted.items())
        ]

    def courses_of(self, scenario: str, operation: str) -> list[Course]:
        """Return the courses of all targets; an empty operation is all of them together."""
        return [one for one in self.courses if (one.scenario, one.operation) == (scenario, operation)]

    def scenarios(self) -> list[str]:
        """Return the scenarios with rows, in the order of the plan."""
        return list(dict.fromkeys(line.scenario for line in self.lines))

    def limited(self, target: str, scenario: str) -> bool:
        """Return whether the generator was at its limit there."""
        return any(
            one.share > FULL
            for one in self.usages
            if (one.target, one.scenario, one.who) == (target, scenario, "generator")
        )


def of_run(directory: Path) -> Model:
    """Read a run. Raises PlanError if there is none.

    The model names files of rows that cannot be read.
    """
    model = Model(meta_file.read(directory))
    spans: dict[tuple[str, str, int], tuple[float, float]] = {}
    for reading in read(directory, model.meta, model.unread):
        model.lines.extend(line_of(reading, kind) for kind in reading.kinds)
        model.courses.extend(courses_of(reading))
        model.steps.extend(steps_of(reading))
        model.errors.extend(errors_of(reading))
        if reading.retries:
            model.retries.append(Retries(reading.target, reading.scenario, reading.retries))
        for repeat, groups in reading.repeats.items():
            filled = [group for group in groups.values() if group.totals]
            if filled:
                begin, end = min(one.first for one in filled), max(one.last for one in filled)
                spans[reading.target, reading.scenario, repeat] = (begin, end)
    model.usages.extend(usages(directory / "resources.csv", spans))
    return model


def line_of(reading: Reading, kind: Kind) -> Line:
    """Return a kind of request over all repeats."""
    groups = reading.groups(kind)
    totals = sorted(chain.from_iterable(group.totals for group in groups.values()))
    ttfbs = chain.from_iterable(group.ttfbs for group in groups.values())
    lates = chain.from_iterable(group.lates for group in groups.values())
    return Line(
        reading.target,
        reading.scenario,
        *(kind.stage, kind.operation, kind.size),
        max(group.users for group in groups.values()),
        sum(group.errors for group in groups.values()),
        sum(group.moved for group in groups.values()),
        stats.spread(totals),
        stats.spread(ttfbs),
        stats.spread(lates),
        stats.curve(totals),
        phases_of(groups.values()),
        [round_of(repeat, group) for repeat, group in groups.items() if group.totals],
    )


def round_of(repeat: int, group: Group) -> Round:
    """Return one repeat of a kind that has successful rows."""
    ascending = sorted(group.totals)
    middle, late = stats.percentile(ascending, 0.5), stats.percentile(ascending, 0.99)
    return Round(
        repeat, group.first, len(ascending), group.errors, group.moved, group.seconds, sum(ascending),
        stats.mean(ascending), middle, late,
    )  # fmt: skip


def phases_of(groups: Iterable[Group]) -> dict[str, float]:
    """Return mean milliseconds of each phase of the requests that reported phases.

    A phase that a request did not name counts as 0.
    """
    sums: dict[str, float] = {}
    phased = 0
    for group in groups:
        phased += group.phased
        for name, value in group.phases.items():
            sums[name] = sums.get(name, 0.0) + value
    return {name: value / phased for name, value in sums.items()}


def courses_of(reading: Reading) -> list[Course]:
    """Return the courses of a mix: all together, then each operation."""
    if reading.scenario not in MIXES:
        return []
    found = []
    for operation in ("", *dict.fromkeys(kind.operation for kind in reading.kinds)):
        by_repeat = {
            repeat: [group for kind, group in groups.items() if operation in ("", kind.operation)]
            for repeat, groups in sorted(reading.repeats.items())
        }
        seconds = {repeat: windows(groups) for repeat, groups in by_repeat.items()}
        first = next(iter(by_repeat.values()))
        times = {repeat: percentiles for repeat, groups in by_repeat.items() if (percentiles := times_of(groups))}
        found.append(Course(reading.target, reading.scenario, operation, seconds, heat(first), times))
    return found


def times_of(groups: Iterable[Group]) -> tuple[float, float] | None:
    """Return median and 99th percentile of all requests of these groups in seconds; None without any."""
    ascending = sorted(chain.from_iterable(group.totals for group in groups))
    return (stats.percentile(ascending, 0.5), stats.percentile(ascending, 0.99)) if ascending else None


def steps_of(reading: Reading) -> list[Step]:
    """Return the steps of the scenario `saturation`, by the number of clients."""
    if reading.scenario != SATURATION:
        return []
    by_stage: dict[str, dict[int, list[Group]]] = {}
    for repeat, groups in sorted(reading.repeats.items()):
        for kind, group in groups.items():
            by_stage.setdefault(kind.stage, {}).setdefault(repeat, []).append(group)
    steps = []
    for stage, by_repeat in by_stage.items():
        users = max(group.users for groups in by_repeat.values() for group in groups)
        errors = sum(group.errors for groups in by_repeat.values() for group in groups)
        rounds = [one for repeat, groups in by_repeat.items() if (one := pace_of(repeat, groups)) is not None]
        steps.append(Step(reading.target, stage, users, errors, rounds))
    return sorted(steps, key=lambda one: one.users)


def pace_of(repeat: int, groups: Sequence[Group]) -> Pace | None:
    """Return how fast all requests of a step were; None without a good one."""
    times = times_of(groups)
    filled = [group for group in groups if group.totals]
    if times is None:
        return None
    seconds = max(group.last for group in filled) - min(group.first for group in filled)
    count = sum(len(group.totals) for group in filled)
    moved = sum(group.moved for group in filled)
    return Pace(repeat, count, count / seconds if seconds else 0.0, moved / seconds if seconds else 0.0, *times)


def errors_of(reading: Reading) -> list[Errors]:
    """Return the errors of the operations that had some."""
    return [
        Errors(reading.target, reading.scenario, operation, count, reading.messages[operation][:FIRST_MESSAGES])
        for operation, count in reading.errors.items()
    ]
