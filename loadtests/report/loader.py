"""Streams the rows of a run.

It retains only the times of requests, for one target and scenario at once.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from sluice_s3.loadtests.request_log import read_rows

FIRST_MESSAGES = 10
ANY_SIZE = {"small_files"}
"""Scenarios whose files are of all sizes: they are reported as one."""


class Kind(NamedTuple):
    """Rows that belong together in a cell. `size` is -1 where it varies."""

    stage: str
    operation: str
    size: int


@dataclass
class Group:
    """The successful rows of a kind in one repeat; times in seconds.

    `first` and `last` are the beginning of the first and the end of the last of them.
    """

    starts: array[float] = field(default_factory=lambda: array("d"))
    totals: array[float] = field(default_factory=lambda: array("d"))
    ttfbs: array[float] = field(default_factory=lambda: array("d"))
    lates: array[float] = field(default_factory=lambda: array("d"))
    moved: int = 0
    users: int = 0
    errors: int = 0
    first: float = float("inf")
    last: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    phased: int = 0

    @property
    def seconds(self) -> float:
        """The time from the beginning of the first to the end of the last."""
        return max(0.0, self.last - self.first)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        self.users = max(self.users, row["users"])
        if row["error"]:
            self.errors += 1
            return
        start, total = row["start"], row["total_s"]
        self.starts.append(start)
        self.totals.append(total)
        if row["ttfb_s"] is not None:
            self.ttfbs.append(row["ttfb_s"])
        if row["late_s"] is not None:
            self.lates.append(row["late_s"])
        self.moved += row["bytes"]
        self.first = min(self.first, start)
        self.last = max(self.last, start + total)
        if row["phases"]:
            self.phased += 1
            for name, value in phases_of(row["phases"]):
                self.phases[name] = self.phases.get(name, 0.0) + value


class Message(NamedTuple):
    """An error's text and its time (seconds since the run began)."""

    start: float
    text: str


@dataclass
class Reading:
    """One target's rows of one scenario.

    It holds groups by repeat and kind, and the first errors of each operation.
    """

    target: str
    scenario: str
    repeats: dict[int, dict[Kind, Group]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    messages: dict[str, list[Message]] = field(default_factory=dict)
    retries: int = 0
    """Requests that were sent again because the endpoint had closed an idle connection."""
    kinds: dict[Kind, None] = field(default_factory=dict)
    """The stages in the order of their first rows."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        size = -1 if self.scenario in ANY_SIZE else row["size"]
        kind = Kind(row["stage"], row["operation"], size)
        self.kinds.setdefault(kind)
        groups = self.repeats.setdefault(row["repeat"], {})
        if kind not in groups:
            groups[kind] = Group()
        groups[kind].add(row)
        self.retries += row["retries"]
        if row["error"]:
            self._error(row)

    def groups(self, kind: Kind) -> dict[int, Group]:
        """Return the groups by repeat."""
        return {repeat: groups[kind] for repeat, groups in sorted(self.repeats.items()) if kind in groups}

    def _error(self, row: Mapping[str, Any]) -> None:
        operation = row["operation"]
        self.errors[operation] = self.errors.get(operation, 0) + 1
        kept = self.messages.setdefault(operation, [])
        bisect.insort(kept, Message(row["start"], row["error"]))
        del kept[FIRST_MESSAGES:]


def phases_of(text: str) -> Iterator[tuple[str, float]]:
    """Parse `auth=0.031;index=0.201` into (name, milliseconds).

    Skips what is no number.
    """
    for one in text.split(";"):
        name, _, value = one.partition("=")
        try:
            yield name, float(value)
        except ValueError:
            continue


def read(directory: Path, meta: Mapping[str, Any], unread: list[str]) -> Iterator[Reading]:
    """Yield a run's rows, a target and scenario at a time, in the order of the plan.

    Cells without a file are skipped, partial ones are included. `unread` receives the names of files that cannot be
    read to their end; their rows so far are included.
    """
    for scenario in meta["plan"]["scenarios"]:
        for target in meta["targets"]:
            reading = Reading(target["name"], scenario)
            for cell in sorted(meta["cells"], key=lambda cell: int(cell["repeat"])):
                if (cell["target"], cell["scenario"]) == (target["name"], scenario) and cell["file"]:
                    problem = gather(reading, directory / cell["file"])
                    unread.extend([f"{cell['file']}: {problem}"] if problem else [])
            if reading.repeats:
                yield reading


def gather(reading: Reading, file: Path) -> str:
    """Add the rows of a file.

    Returns why it could not be read to its end, or an empty string.
    """
    try:
        for row in read_rows(file):
            reading.add(row)
    except (OSError, EOFError, ValueError, TypeError, KeyError) as error:
        return str(error) or type(error).__name__
    return ""
