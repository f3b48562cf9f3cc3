"""Runs made of numbers, without a gateway: what a test wants to be in results/NAME is written there."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.compare import resources
from sluice_s3.loadtests.compare.plan import select_scenarios
from sluice_s3.loadtests.request_log import COLUMNS

STARTED = 1_700_000_000.0


def row(operation: str = "GET", **values: Any) -> dict[str, Any]:
    """A good request of 1000 bytes that took 10 ms, 2 of them to the first byte."""
    found = {
        "run": "r", "target": "a", "scenario": "mixed", "repeat": 1, "stage": "", "operation": operation, "size": 1000,
        "users": 1, "start": 0.0, "late_s": None, "ttfb_s": 0.002, "total_s": 0.01, "bytes": 1000, "status": 200,
        "error": "", "phases": "", "retries": 0,
    }  # fmt: skip
    return found | values


class Made:
    """A run in a directory. Cells are added, then `write` makes its meta.json."""

    def __init__(
        self, directory: Path, targets: Iterable[str] = ("a", "b"), scenarios: Iterable[str] = ("mixed",)
    ) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        plan = {name: vars(one) for name, one in select_scenarios(scenarios).items()}
        self.meta: dict[str, Any] = {
            "format": 1, "run": directory.name, "state": "complete", "reason": "", "started": STARTED,
            "ended": STARTED + 100, "command": ["sluice", "bench"], "versions": {"sluice": "1", "python": "3"},
            "machine": {"kernel": "k", "cpu": "c", "cores": 2, "memory_bytes": 1 << 30, "hostname": "h"},
            "plan": {"repeats": 3, "scenarios": plan, "processes": 1, "durability": "full", "workers": 1},
            "targets": [target(name) for name in targets], "cells": [],
        }  # fmt: skip

    def cell(self, name: str, scenario: str, repeat: int, rows: Iterable[Mapping[str, Any]], **more: Any) -> Made:
        """Its rows as they stand, but for target, scenario and repeat."""
        state = more.get("state", "done")
        file = Path("rows") / name / f"{scenario}-{repeat}{'' if state == 'done' else '.partial'}.csv.gz"
        (self.directory / file).parent.mkdir(parents=True, exist_ok=True)
        count = 0
        with gzip.open(self.directory / file, "wt", encoding="utf-8", newline="") as made:
            lines = csv.DictWriter(made, COLUMNS)
            lines.writeheader()
            for one in rows:
                lines.writerow({**one, "target": name, "scenario": scenario, "repeat": repeat})
                count += 1
        found = {
            "target": name, "scenario": scenario, "repeat": repeat, "state": "done", "file": str(file), "reason": "",
            "started": STARTED, "ended": STARTED + 5, "rows": count, "errors": 0, "load1": [0.5, 1.0], "notes": {},
        }  # fmt: skip
        self.meta["cells"].append(found | more)
        return self

    def write(self, **more: Any) -> Path:
        """meta.json. Returns the directory."""
        (self.directory / "meta.json").write_text(json.dumps(self.meta | more))
        return self.directory

    def resources(self, *samples: Mapping[str, Any]) -> None:
        """resources.csv of these."""
        usual = {"scenario": "mixed", "repeat": 1, "interval_s": 1.0, "rss_bytes": 1000, "processes": 1}
        with (self.directory / "resources.csv").open("w", newline="") as made:
            lines = csv.DictWriter(made, resources.COLUMNS)
            lines.writeheader()
            for one in samples:
                lines.writerow(usual | one)


def target(name: str, kind: str = "gateway") -> dict[str, Any]:
    """As meta.json tells one."""
    return {
        "name": name, "kind": kind, "url": "", "path": "", "profile": "", "personality": "", "store": "local",
        "driver": "local", "synced": None, "settings": {}, "error": "", "probe": None, "mount": None,
    }  # fmt: skip


def steady(times: Iterable[float], operation: str = "GET", **values: Any) -> list[dict[str, Any]]:
    """Requests one after the other that took these seconds."""
    found, at = [], 1.0
    for one in times:
        found.append(row(operation, start=round(at, 6), total_s=round(one, 6), **values))
        at += one
    return found
