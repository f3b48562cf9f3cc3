"""The uses of a store, and the figures of its speed for each.

A figure has one speed for each repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sluice_s3.loadtests.object_pool import MIX, parse_mix
from sluice_s3.loadtests.report import stats, units
from sluice_s3.loadtests.report.model import Line, Model, Round

LARGE = 1_000_000
"""An object is large from this many bytes on."""
BATCH_FILES = 10
"""Files of a batch."""
BAD_SHARE = 0.01
"""With a larger share of errors, a figure is not compared: a request that fails at once is fast."""


@dataclass(frozen=True)
class Measure:
    """One figure of a target: a speed (more is better) by repeat.

    `failed` is the share of requests that failed. `unit` is `s` where the speed is one over that time, else `B/s` or
    `1/s`. `amount` are the bytes of what `speeds` counts: 0 where requests are counted, 1 where bytes are. `times` are
    median and 99th percentile of the requests in seconds, by repeat.
    """

    target: str
    use: str
    name: str
    scenario: str
    speeds: dict[int, float]
    failed: float
    unit: str = "s"
    amount: int = 0
    times: dict[int, tuple[float, float]] = field(default_factory=dict)

    def render(self) -> str:
        """Return the mean of the repeats, in readable units."""
        if not self.speeds:
            return ""
        speed = stats.geometric(list(self.speeds.values()))
        if self.unit == "s":
            return units.seconds(1 / speed)
        return f"{units.megabytes(speed)} MB/s" if self.unit == "B/s" else f"{units.significant(speed)}/s"


@dataclass(frozen=True)
class Use:
    """A use of a store. `what` lists its figures."""

    name: str
    what: str


METADATA, CONCURRENCY, MIXED, FIXED_RATE = "Metadata", "Many writers", "Mixed load", "Fixed rate"
USES = (
    Use("Large reads", "GET of objects of 1 MB and more: median time"),
    Use("Large writes", "PUT of objects of 1 MB and more: median time, and time of a batch"),
    Use("Small-file reads", "GET below 1 MB: median time; warm reads of a source tree: MB/s"),
    Use("Small-file writes", "PUT below 1 MB: median time, time of a batch; a source tree: MB/s"),
    Use(CONCURRENCY, "combined MB/s of two writers and more"),
    Use(METADATA, "STAT, DELETE and LIST by one client: median time"),
    Use(MIXED, "the mix by many clients: requests a second"),
    Use(FIXED_RATE, "the mix at a fixed rate of arrivals: 99th percentile of the time from due to done"),
)
USES_OF = {
    "mixed": ("Mixed load",),
    "boto3_mixed": ("Mixed load",),
    "sizes": ("Large reads", "Large writes", "Small-file reads", "Small-file writes"),
    "small_files": ("Small-file reads", "Small-file writes"),
    "batches": ("Large writes", "Small-file writes"),
    "threads": ("Many writers",),
    "stat_delete_list": ("Metadata",),
    "open_loop": ("Fixed rate",),
}
"""The uses for which a scenario has figures."""


def measures(model: Model) -> list[Measure]:
    """Return the measures of all targets."""
    found = [one for line in model.lines for one in _of_line(line)]
    for scenario in ("mixed", "boto3_mixed"):
        asked = model.meta["plan"]["scenarios"].get(scenario)
        mix = parse_mix(asked["arguments"].get("mix", "")) if asked else {}
        for target in model.targets:
            lines = model.of(scenario, target=target)
            course = next((one for one in model.courses_of(scenario, "") if one.target == target), None)
            found += [mix_of(target, scenario, lines, mix, course.times if course else {})] if lines else []
    found += _batches(model)
    return [one for one in found if one.speeds or one.failed]


def _of_line(line: Line) -> Iterator[Measure]:
    large = line.size >= LARGE
    if line.scenario == "sizes":
        use = {"GET": ("Large reads", "Small-file reads"), "PUT": ("Large writes", "Small-file writes")}
        yield _measure(line, use[line.operation][0 if large else 1], lambda one: 1 / one.p50)
    elif line.scenario == "small_files" and line.stage != "read-cold":
        use_of = "Small-file writes" if line.stage == "write" else "Small-file reads"
        yield _measure(line, use_of, lambda one: one.rate, "B/s")
    elif line.scenario == "threads" and line.users > 1:
        yield _measure(line, CONCURRENCY, lambda one: one.rate, "B/s")
    elif line.scenario == "stat_delete_list":
        yield _measure(line, METADATA, lambda one: 1 / one.p50)
    elif line.scenario == "open_loop":
        yield _measure(line, FIXED_RATE, lambda one: 1 / one.p99)


def _measure(line: Line, use: str, speed: Callable[[Round], float], unit: str = "s") -> Measure:
    good = line.total.count if line.total else 0
    size = units.size(line.size) if line.size > 0 and line.operation != "LIST" else ""
    name = " ".join(one for one in (line.scenario, line.stage, line.operation, size) if one)
    speeds = {one.repeat: speed(one) for one in line.rounds if one.seconds > 0 and one.p50 > 0}
    times = {one.repeat: (one.p50, one.p99) for one in line.rounds if one.repeat in speeds}
    amount = 1 if unit == "B/s" else max(0, line.size) if line.moved else 0
    failed = line.errors / max(1, line.errors + good)
    return Measure(line.target, use, name, line.scenario, speeds, failed, unit, amount, times)


def mix_of(
    target: str,
    scenario: str,
    lines: list[Line],
    mix: Mapping[str, float] = MIX,
    times: Mapping[int, tuple[float, float]] | None = None,
) -> Measure:
    """Return requests a second that all clients together achieve for the intended mix.

    It is clients / (sum of each operation's share times its mean time). So it does not matter that one repeat happened
    to draw more PUTs than another.
    """
    good = sum(line.total.count for line in lines if line.total)
    errors = sum(line.errors for line in lines)
    users = max(line.users for line in lines)
    speeds = {}
    for repeat in sorted({one.repeat for line in lines for one in line.rounds}):
        means = {
            line.operation: one.mean for line in lines for one in line.rounds if one.repeat == repeat and one.mean > 0
        }
        shares = {operation: share for operation, share in mix.items() if operation in means}
        if any(shares.values()):
            each = sum(share * means[operation] for operation, share in shares.items()) / sum(shares.values())
            speeds[repeat] = users / each
    known = {repeat: found for repeat, found in (times or {}).items() if repeat in speeds}
    return Measure(target, MIXED, scenario, scenario, speeds, errors / max(1, errors + good), "1/s", 0, known)


def batch_times(model: Model, target: str, size: int) -> dict[int, list[float]]:
    """Return seconds of each batch of a size, by repeat."""
    found: dict[int, list[float]] = {}
    for line in model.of("batches", target=target, size=size):
        for one in line.rounds:
            found.setdefault(one.repeat, []).append(one.busy)
    return found


def _batches(model: Model) -> Iterator[Measure]:
    kinds = dict.fromkeys((line.target, line.size) for line in model.of("batches"))
    for target, size in kinds:
        lines = model.of("batches", target=target, size=size)
        good = sum(line.total.count for line in lines if line.total)
        errors = sum(line.errors for line in lines)
        times = batch_times(model, target, size)
        speeds = {repeat: 1 / stats.mean(seconds) for repeat, seconds in times.items() if sum(seconds) > 0}
        use = "Large writes" if size >= LARGE else "Small-file writes"
        rounds = [one for line in lines for one in line.rounds if one.p50 > 0]
        files = {repeat: [one for one in rounds if one.repeat == repeat] for repeat in speeds}
        latency = {
            repeat: (stats.geometric([one.p50 for one in own]), max(one.p99 for one in own))
            for repeat, own in files.items()
            if own
        }
        name, failed = f"batches {units.size(size)}", errors / max(1, errors + good)
        yield Measure(target, use, name, "batches", speeds, failed, "s", BATCH_FILES * max(0, size), latency)
