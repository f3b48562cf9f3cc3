"""What a run does: its scenarios, their options, and an estimate of time and bytes."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.mounts.workloads import FILES, TOTAL
from sluice_s3.loadtests.object_pool import parse_mix
from sluice_s3.loadtests.payload import parse_size, parse_sizes

HERE = Path(__file__).parent.parent / "scenarios"
OVERHEAD_SECONDS = 1.5
"""Seconds that Locust takes to start and to end."""
GUESSED_RATE = 200e6
"""Estimated bytes a second of a store, for scenarios that are bounded by time."""
GUESSED_REQUESTS = 10_000
"""Requests a second that are not exceeded, so that small objects need little space."""
STEP_SECONDS = 0.7
"""Seconds between two steps of `saturation`."""
STEPS, PUT_SHARE = 7, 0.15
"""Steps up to 64 clients, and the share of bytes that are written."""


class PlanError(Exception):
    """The requested run is impossible; the message says why."""


@dataclass(frozen=True)
class Scenario:
    """A Locust file with its options: `quick` ends within seconds, `full` is as published.

    `about` says in a sentence what it does and whose load that is.
    """

    name: str
    about: str
    quick: Mapping[str, str]
    full: Mapping[str, str]
    users: int = 1
    default: bool = True
    """Whether `make compare` runs it by default."""

    @property
    def file(self) -> Path:
        """The Locust file's path."""
        return HERE / f"{self.name}.py"


SCENARIOS = {
    one.name: one
    for one in (
        Scenario(
            "mixed",
            "20 clients read (45 %), stat (30 %), write (15 %) and delete (10 %) objects of 10 MiB: an application.",
            {"size": "10MiB", "objects": "20", "duration": "4", "warm-up": "0.5"},
            {"size": "10MiB", "objects": "500", "duration": "300", "warm-up": "5"},
            users=20,
        ),
        Scenario(
            "sizes",
            "One client writes and reads objects from 100 KB to 100 MB: how the time grows with the size.",
            {"sizes": "100KB,1MB,10MB,100MB", "times": "10", "most": "100MB"},
            {"sizes": "100KB,1MB,10MB,100MB,1GB,10GB", "times": "10", "most": "100GB"},
        ),
        Scenario(
            "small_files",
            "A source tree is written by one client and read by sixteen: many files of a few kilobytes.",
            {"share": "0.006", "reads": "500"},
            {"share": "1"},
        ),
        Scenario(
            "batches",
            "Ten files at a time, of 1 KB, 1 MB and 10 MB, with pauses: exports and nightly jobs.",
            {"sizes": "1KB,1MB,10MB", "batches": "2", "pause": "0.1"},
            {"sizes": "1KB,1MB,100MB", "batches": "5", "pause": "10"},
        ),
        Scenario(
            "threads",
            "Files of 500 KB by 1 to 32 writers at once: where more clients stop helping.",
            {"sizes": "500KB", "numbers": "1,2,4,8,16,32", "step-seconds": "0.6", "most": "60MB"},
            {
                "sizes": "10KB,100KB,500KB,1MB,10MB,100MB,1GB",
                "numbers": "1,2,3,4,5,6,7,8,9,10,16,32,64,128,1024",
                "step-seconds": "5",
                "most": "2GB",
            },
        ),
        Scenario(
            "stat_delete_list",
            "Looks up, deletes and lists keys in a bucket of a thousand: metadata without bytes.",
            {"counts": "1000"},
            {"counts": "1000,100000,1000000", "stats": "2000"},
        ),
        Scenario(
            "open_loop",
            "The mix at a fixed rate of arrivals: what a busy hour does to the slowest requests.",
            {"rate": "100", "duration": "4", "warm-up": "0.5"},
            {"rate": "500", "duration": "60", "warm-up": "5", "objects": "2000"},
            default=False,
        ),
        Scenario(
            "boto3_mixed",
            "The mix through boto3, with objects of 1 MiB: what an application in Python sees.",
            {"size": "1MiB", "objects": "20", "duration": "4", "warm-up": "0.5"},
            {"size": "10MiB", "objects": "200", "duration": "60", "warm-up": "5"},
            users=8,
            default=False,
        ),
        Scenario(
            "saturation",
            "The mix by 1, 2, 4 … clients, up to 64: how many are served before the slowest hundredth waits too long.",
            {"size": "64KiB", "objects": "100", "duration": "2", "settle": "0.3", "p99-ms": "50"},
            {"size": "64KiB", "objects": "2000", "duration": "20", "settle": "3", "p99-ms": "50"},
            users=64,
            default=False,
        ),
    )
}

LOCUST_ONLY = tuple(
    Scenario(name, about, {}, {}, default=False)
    for name, about in (
        ("steps", "The mix by more clients from step to step, with Locust alone."),
        ("spike", "The mix by few clients, then suddenly by many, then by few again, with Locust alone."),
    )
)
"""Scenarios that do not compare stores."""


@dataclass(frozen=True)
class SelectedScenario:
    """A scenario with the options of a run. `seconds` and `bytes` are estimates of one cell."""

    name: str
    users: int
    arguments: Mapping[str, str]
    seconds: float
    bytes: int

    @property
    def arguments_list(self) -> list[str]:
        """The options as arguments of Locust's command line."""
        return [word for name, value in self.arguments.items() for word in (f"--{name}", value)]


@dataclass(frozen=True)
class Plan:
    """All that a resumed run must know, except keys."""

    repeats: int
    scenarios: Mapping[str, SelectedScenario]
    processes: int = 1
    durability: str = "full"
    workers: int = 1
    stores: Sequence[str] = ()
    endpoints: Sequence[str] = ()
    direct: bool = False
    direct_unsynced: bool = False
    directory: str = ""
    """Where temporary stores are created; empty: the system's default."""
    region: str = "us-east-1"
    full: bool = False
    minutes: float = 0.0
    """Minutes that the run may take in all; 0: as long as its repeats take."""
    most_repeats: int = 0
    """With minutes: no more repeats than these; 0: as many as there can be."""
    seed: int = 0
    """Of the random order of targets."""
    cold: bool = False
    """Whether the page cache is emptied while it runs."""
    note: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as `meta.json` stores it."""
        return asdict(self)

    @staticmethod
    def of_json(found: Mapping[str, Any]) -> Plan:
        """Read a plan from `meta.json`. Raises PlanError if it is invalid."""
        try:
            scenarios = {name: SelectedScenario(**one) for name, one in found["scenarios"].items()}
            return Plan(**{**found, "scenarios": scenarios})
        except (KeyError, TypeError, AttributeError) as error:
            raise PlanError(f"the run's plan cannot be read: {error}") from error


def select_scenarios(
    names: Iterable[str],
    *,
    full: bool = False,
    users: int | None = None,
    duration: float | None = None,
    sizes: str | None = None,
    settings: Iterable[str] = (),
) -> dict[str, SelectedScenario]:
    """Return the scenarios of these names (none: the default ones) with their options.

    `users`, `duration` (seconds) and `sizes` apply to scenarios that have such options; `settings` are
    `SCENARIO.OPTION=VALUE`. Raises PlanError.
    """
    scenario_names = list(dict.fromkeys(names)) or [one.name for one in SCENARIOS.values() if one.default]
    for name in scenario_names:
        if name not in SCENARIOS:
            raise PlanError(f"there is no scenario {name!r} (there are {', '.join(SCENARIOS)})")
    arguments_by_scenario = _settings(settings, scenario_names)
    chosen = {}
    for name in scenario_names:
        scenario = SCENARIOS[name]
        arguments = dict(scenario.full if full else scenario.quick)
        if duration is not None and "duration" in arguments:
            arguments["duration"] = f"{duration:g}"
        if sizes is not None and "sizes" in arguments:
            arguments["sizes"] = sizes
        arguments |= arguments_by_scenario.get(name, {})
        count = users if users is not None and scenario.users > 1 else scenario.users
        chosen[name] = with_arguments(SelectedScenario(name, count, {}, 0.0, 0), arguments)
    return chosen


def with_arguments(chosen: SelectedScenario, arguments: Mapping[str, str]) -> SelectedScenario:
    """Return the scenario with these options, and estimates for them. Raises PlanError."""
    try:
        needed, seconds = _bytes(chosen.name, arguments), _seconds(chosen.name, arguments, chosen.users)
    except (ValueError, OverflowError) as error:  # the latter of what is infinite
        raise PlanError(f"{chosen.name}: {error}") from error
    return replace(chosen, arguments=arguments, seconds=seconds, bytes=needed)


def _settings(settings: Iterable[str], scenario_names: Sequence[str]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for text in settings:
        match = re.fullmatch(r"([a-z0-9_]+)\.([a-z0-9-]+)=(.+)", text)
        if match is None:
            raise PlanError(f"{text!r} is not SCENARIO.OPTION=VALUE")
        if match[1] not in scenario_names:
            raise PlanError(f"{text!r}: {match[1]} is no scenario of this run")
        found.setdefault(match[1], {})[match[2]] = match[3]
    return found


def _bytes(name: str, options: Mapping[str, str]) -> int:
    """Return the approximate number of bytes that one cell writes.

    Raises ValueError for invalid options.
    """
    if name == "sizes":
        most = parse_size(options["most"])
        return sum(max(2 * size, min(most, size * int(options["times"]))) for size in parse_sizes(options["sizes"]))
    if name == "small_files":
        return int(float(options["share"]) * TOTAL)
    if name == "batches":
        return 10 * int(options["batches"]) * sum(parse_sizes(options["sizes"]))
    if name == "threads":
        return len(options["numbers"].split(",")) * len(parse_sizes(options["sizes"])) * parse_size(options["most"])
    if name == "stat_delete_list":
        return 1000 * max(int(one) for one in options["counts"].split(","))
    parse_mix(options.get("mix", ""))
    if name == "saturation":
        size = parse_size(options["size"])
        written = STEPS * float(options["duration"]) * PUT_SHARE * _guess_rate(size)
        return int(options.get("objects", "200")) * size + int(written)
    size, seconds = parse_size(options.get("size", "4KiB")), float(options["duration"]) + float(options["warm-up"])
    written = _guess_rate(size) * seconds if name != "open_loop" else 0.15 * float(options["rate"]) * seconds * size
    return int(options.get("objects", "200")) * size + int(written)


def _guess_rate(size: int) -> float:
    """Return the bytes a second that objects of `size` bytes are written with, at most."""
    return min(GUESSED_RATE, GUESSED_REQUESTS * size)


def _seconds(name: str, options: Mapping[str, str], users: int) -> float:
    """Return the approximate seconds of one cell, for the progress bar."""
    if name == "saturation":
        steps = 1 + math.ceil(math.log2(max(1, users)))
        step = float(options["duration"]) + float(options["settle"]) + STEP_SECONDS
        return OVERHEAD_SECONDS + steps * step
    if name == "threads":
        cells = len(options["numbers"].split(",")) * len(options["sizes"].split(","))
        return OVERHEAD_SECONDS + cells * float(options["step-seconds"])
    if name == "small_files":
        return OVERHEAD_SECONDS + float(options["share"]) * FILES * 0.008
    if name == "stat_delete_list":
        return OVERHEAD_SECONDS + max(int(one) for one in options["counts"].split(",")) / 500
    if "duration" in options:
        prepared = int(options.get("objects", "200")) * parse_size(options.get("size", "4KiB")) / GUESSED_RATE
        return OVERHEAD_SECONDS + prepared + float(options["duration"]) + float(options["warm-up"])
    pauses = float(options.get("pause", "0")) * int(options.get("batches", "0")) * len(options["sizes"].split(","))
    return OVERHEAD_SECONDS + pauses + 2 * _bytes(name, options) / GUESSED_RATE
