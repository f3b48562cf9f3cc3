"""What load tests may measure: the stores, and what the operator listed; never what a browser names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sluice_s3.app.admin.load_tests.supervisor import SCRATCH
from sluice_s3.app.settings import Settings

DRIVERS = ("local", "efs", "fuse")
"""Drivers that a load test can start a gateway with."""


@dataclass(frozen=True)
class Target:
    """A target. `directory` is where a run makes its scratch directory; None for endpoints and what has none.

    `reserve` are bytes that must stay free there.
    """

    name: str
    kind: Literal["store", "path", "endpoint"]
    directory: Path | None = None
    driver: str = ""
    url: str = ""
    reserve: int = 0

    @property
    def problem(self) -> str:
        """Why it can never be measured; empty if it can."""
        if self.kind == "store" and (self.directory is None or self.driver not in DRIVERS):
            return f"the driver {self.driver} has no directory that could be measured"
        return ""

    def scratch(self, run: str) -> Path | None:
        """Return the directory of a run on it, the only one there that the run writes to."""
        return None if self.directory is None else self.directory / f"{SCRATCH}{run}"

    def argument(self, directory: Path | None) -> tuple[str, str]:
        """Return the option of `sluice bench` for it, with its data below `directory`."""
        if self.kind == "endpoint":
            return "--endpoint", f"{self.name}={self.url}"
        return "--store", f"{self.name}={directory}{f':{self.driver}' if self.driver else ''}"


def targets_of(settings: Settings) -> dict[str, Target]:
    """Return all targets by name."""
    found = [
        Target(name, "store", store.directory and store.directory.absolute(), store.driver, reserve=store.min_free)
        for name, store in settings.named_stores.items()
    ]
    found += [
        Target(name, "path", Path(where)) if where.startswith("/") else Target(name, "endpoint", url=where)
        for name, where in settings.named_bench_targets.items()
    ]
    return {target.name: target for target in found}


def arguments(targets: Iterable[Target], directories: Mapping[str, Path | None]) -> list[str]:
    """Return the options of `sluice bench` for targets with their directories by name."""
    return [word for target in targets for word in target.argument(directories.get(target.name))]
