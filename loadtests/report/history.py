"""The runs below a directory of results, from the newest to the oldest."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.compare import run_metadata as meta_file
from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.report.comparison import unlike_options

MOST_RUNS = 1000
"""The newest runs that are read."""
MOST_REPORT_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True)
class Entry:
    """A run. `started` is in seconds since 1970; `figures` are those of its report, by use; empty without one."""

    path: Path
    run: str
    started: float
    state: str
    targets: Sequence[str]
    scenarios: Sequence[str]
    repeats: int
    headline: Sequence[str] = ()
    figures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    meta: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return what programs read of it, without its figures."""
        return {
            "run": self.run, "path": str(self.path), "started": self.started, "state": self.state,
            "targets": list(self.targets), "scenarios": list(self.scenarios), "repeats": self.repeats,
            "headline": list(self.headline),
        }  # fmt: skip

    def is_like(self, other: Entry) -> bool:
        """Return whether both measured the same targets with the same scenarios, so that a trend means something."""
        return (
            sorted(self.targets) == sorted(other.targets)
            and sorted(self.scenarios) == sorted(other.scenarios)
            and not any(unlike_options(self.meta, other.meta, name) for name in self.scenarios)
        )


def runs_of(directory: Path) -> list[Entry]:
    """Return the runs below a directory, the newest first; what is no run, or cannot be read, is left out.

    Raises PlanError when there is no such directory.
    """
    try:
        names = os.listdir(directory)
    except OSError as error:
        raise PlanError(f"{directory}: {error.strerror}") from error
    found = [entry for name in names if (entry := _entry(directory / name)) is not None]
    return sorted(found, key=lambda one: (-one.started, one.run))[:MOST_RUNS]


def _entry(directory: Path) -> Entry | None:
    if not (directory / "meta.json").is_file():
        return None
    try:
        meta = meta_file.read(directory)
        report = _report(directory / "report.json")
        plan = meta["plan"]
        return Entry(
            directory, str(meta["run"]), float(meta["started"]), str(meta["state"]),
            [str(one["name"]) for one in meta["targets"]], list(plan["scenarios"]), int(plan["repeats"]),
            [str(line) for line in report.get("verdict", {}).get("headline", [])],
            {str(one["use"]): one for one in report.get("figures", [])}, meta,
        )  # fmt: skip
    except (PlanError, KeyError, TypeError, ValueError, AttributeError):
        return None


def _report(file: Path) -> dict[str, Any]:
    """Return a run's report as JSON, without what is large in it; empty where there is none."""
    try:
        if file.stat().st_size > MOST_REPORT_BYTES:
            return {}
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: found[name] for name in ("verdict", "figures") if name in found} if isinstance(found, dict) else {}
