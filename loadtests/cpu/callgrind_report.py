"""Counted instructions as a table and as JSON, and earlier ones from JSON."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from sluice_s3.loadtests.cpu import report
from sluice_s3.loadtests.cpu.callgrind import SETTINGS
from sluice_s3.loadtests.cpu.callgrind_costs import Plan, Side
from sluice_s3.loadtests.cpu.report import Interval

FORMAT = 1


def read_side(path: Path) -> Side:
    """Read what an earlier run counted for its first side. Raises ValueError."""
    try:
        document = json.loads(path.read_text())
        side = Side(**document["sides"][0])
        if document["format"] != FORMAT or not all(side.costs.values()):
            raise ValueError(f"format {document['format']}")
    except (OSError, KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"{path} is no result of this command: {error}") from error
    side.name = path.stem
    return side


def describe_python(python: dict[str, Any]) -> str:
    """Describe an interpreter and how it was built, in one line."""
    words = [f"Python {python['version']} ({python['executable']}, {python['compiler']})"]
    words.append("profile-guided" if python["optimised"] else "not optimised by a profile (no --enable-optimizations)")
    words.append("LTO" if python["lto"] else "no LTO")
    return ", ".join([*words, python["flags"]])


def _load() -> str:
    return " ".join(f"{value:.2f}" for value in os.getloadavg())


class Result:
    """What a run found, with the load of the machine before and after it."""

    def __init__(self, sides: list[Side], plan: Plan, rounds: int) -> None:
        self.sides = sides
        self._plan = plan
        self._rounds = rounds
        self._begun = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._load_before = _load()

    def lines(self) -> list[str]:
        """Return what the figures depend on, in lines."""
        found = [f"load average {self._load_before} before, {_load()} after"]
        for side in self.sides:
            idle = report.spread(Interval.of(side.idle))
            found.append(
                f"{side.name}: {side.source} at {side.commit or 'no commit'}, {describe_python(side.python)}; "
                f"idle {idle} thousand a second, subtracted"
            )
        return found

    def table(self) -> Table:
        """Render a line for each operation; with two sides, the first over the second."""
        made = Table(box=box.SIMPLE_HEAD, title="thousand instructions an operation: median min-max over rounds")
        made.add_column("operation", no_wrap=True)
        for side in self.sides:
            made.add_column(side.name, justify="right", no_wrap=True)
        if len(self.sides) > 1:
            made.add_column("ratio", justify="right", no_wrap=True)
        for name in self._plan.operations:
            own, *others = (Interval.of(side.costs.get(name, ())) for side in self.sides)
            cells = [_render(interval) for interval in (own, *others)]
            made.add_row(name, *cells, *([_ratio(own, others[0])] if others else []))
        return made

    def write(self, path: Path) -> None:
        """Write every figure of every round, and what they depend on, as JSON."""
        document = {
            "format": FORMAT,
            "begun": self._begun,
            "machine": report.machine(),
            "load_average": {"before": self._load_before, "after": _load()},
            "settings": {
                **asdict(self._plan),
                "rounds": self._rounds,
                "environment": {
                    name: value
                    for name, value in sorted({**SETTINGS, **os.environ}.items())
                    if name.startswith("SLUICE_") and "SECRET" not in name and "TOKEN" not in name
                },
            },
            "unit": "thousand instructions an operation",
            "sides": [asdict(side) for side in self.sides],
        }
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _render(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return f"{interval.median:,.1f} [dim]{interval.low:,.1f}-{interval.high:,.1f}[/dim]"


def _ratio(own: Interval | None, other: Interval | None) -> str:
    if own is None or other is None or not other.median:
        return ""
    return f"{own.median / other.median:.3f}{'≈' if own.overlaps(other) else ''}"
