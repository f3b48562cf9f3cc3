"""Processes of a server that died: the launcher notes the last ones in its runtime directory."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import NamedTuple

from sluice_s3.app.private_files import open_file, replace_file

FILE = "deaths"
MAX_DEATHS = 20
"""Deaths that are kept."""


class Death(NamedTuple):
    """A process that ended unasked."""

    at: int
    """Milliseconds since the epoch."""
    process: str
    """Its role: `admin`, or `worker` and a number."""
    reason: str
    """The signal that killed it, or its exit code."""


def note_death(run_dir: Path, process: str, reason: str) -> None:
    """Note a death, now. Raises OSError."""
    deaths = [*read_deaths(run_dir), Death(time.time_ns() // 1_000_000, process, reason)]
    with os.fdopen(replace_file(run_dir / FILE), "w") as file:
        json.dump(deaths[-MAX_DEATHS:], file)


def read_deaths(run_dir: Path) -> list[Death]:
    """Return the last deaths, the oldest first. Raises OSError."""
    try:
        with os.fdopen(open_file(run_dir / FILE, os.O_RDONLY)) as file:
            return [Death(*one) for one in json.load(file)]
    except (FileNotFoundError, ValueError, TypeError):  # none yet, or it was being replaced
        return []
