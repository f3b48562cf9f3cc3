"""`meta.json` of a run: plan, machine, versions, and progress."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sluice_s3.app import __version__
from sluice_s3.loadtests.compare.plan import Plan, PlanError

FORMAT = 1


def new(name: str, plan: Plan) -> dict[str, Any]:
    """Return the metadata of a run that begins now."""
    return {
        "format": FORMAT,
        "run": name,
        "state": "running",
        "reason": "",
        "started": time.time(),
        "ended": None,
        "command": sys.argv,
        "versions": {"sluice": __version__, "python": platform.python_version(), **_versions("locust", "gevent")},
        "machine": machine(),
        "plan": plan.as_json(),
        "targets": [],
        "cells": [],
    }


def machine() -> dict[str, Any]:
    """Describe the machine of the run."""
    cpu = ""
    for line in _text("/proc/cpuinfo").splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    return {
        "kernel": platform.release(),
        "system": platform.platform(),
        "cpu": cpu,
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "hostname": platform.node(),
    }


def write(directory: Path, meta: dict[str, Any]) -> None:
    """Write the metadata atomically."""
    making = directory / "meta.json.making"
    making.write_text(json.dumps(meta, indent=1, default=str))
    making.replace(directory / "meta.json")


def read(directory: Path) -> dict[str, Any]:
    """Read the metadata of an earlier run. Raises PlanError."""
    try:
        found = json.loads((directory / "meta.json").read_text())
    except FileNotFoundError:
        raise PlanError(f"{directory} is no run: there is no meta.json") from None
    except (OSError, ValueError) as error:
        raise PlanError(f"{directory}/meta.json: {error}") from error
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise PlanError(f"{directory}/meta.json is not of format {FORMAT}")
    return found


def _versions(*names: str) -> dict[str, str]:
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
