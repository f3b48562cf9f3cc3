"""Runs the launcher with one of the apps of this folder: python -m tests.unit.server.serve '{"data": …}' APP ADMIN."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path

from sluice_s3.app.server.processes.launcher import run
from sluice_s3.app.settings import Settings


def note(settings: Settings) -> None:
    """Leaves a line for each call."""
    with (settings.data / "calls").open("a") as file:
        file.write("called\n")


def main() -> int:
    logging.basicConfig(level=logging.INFO)
    options, app, admin = sys.argv[1:4]
    settings = Settings(**{**json.loads(options), "data": Path(json.loads(options)["data"])})
    return run(settings, app=app, admin=admin or None, before_workers=note, after_death=note)


if __name__ == "__main__":
    sys.exit(main())
