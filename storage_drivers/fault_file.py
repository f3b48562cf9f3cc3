"""The fault of a store for tests: a file in its directory, which only the driver `faulty` reads.

A test sets it from its own process, and every worker of the gateway sees it at its next write.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import NamedTuple

NAME = "fault.json"
ERRORS = {"disk full": errno.ENOSPC, "read-only": errno.EROFS}
"""Faults that fail every write, each with the error of the mount."""
DELAYS = ("slow fsync",)
"""Faults that hold every write up."""
FAULTS = (*ERRORS, *DELAYS)


class Fault(NamedTuple):
    """What happens to every write."""

    code: int
    """The errno; 0: it succeeds."""
    seconds: float
    """How long it takes before it is acknowledged."""


def set_fault(root: Path, name: str, seconds: float) -> None:
    """Set the fault of the store at `root`; the last one counts.

    `seconds` is how long each sync takes, and used by "slow fsync" only. Raises ValueError, OSError.
    """
    if name not in FAULTS:
        raise ValueError(f"there is no fault {name!r}: choose one of {', '.join(FAULTS)}")
    if not 0 <= seconds < 3600:
        raise ValueError("seconds must be from 0 to 3600")
    fault = Fault(ERRORS.get(name, 0), seconds if name in DELAYS else 0.0)
    new = root / f"{NAME}.{os.getpid()}"
    new.write_text(json.dumps(fault))
    new.replace(root / NAME)


def clear_fault(root: Path) -> None:
    """Let the store at `root` work again. Raises OSError."""
    (root / NAME).unlink(missing_ok=True)


def read_fault(root: Path) -> Fault | None:
    """Return the fault of the store at `root`, None while it works."""
    try:
        with open(root / NAME) as file:
            return Fault(*json.load(file))
    except FileNotFoundError:
        return None
