"""`sluice bench doctor`: what a recipe for a real mount needs, as a table or JSON."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from sluice_s3.app.cli.common import fail
from sluice_s3.app.cli.probe import SIGNS
from sluice_s3.storage_drivers.errors import DriverError
from sluice_s3.storage_drivers.probing.probe import run_with_timeout
from sluice_s3.storage_drivers.probing.scratch import Progress

MISSING = 8


def examine_recipe(name: str, path: Path | None, server: str, as_json: bool) -> int:
    """Print what was found, and return the exit code."""
    from sluice_s3.loadtests.recipes import RECIPES, examine

    if name not in RECIPES:
        fail(f"there is no recipe {name!r} (there are {', '.join(RECIPES)})", 2)
    if path is not None and not path.is_dir():
        fail(f"{path} is no directory", 2)
    progress = Progress()
    try:
        found = asyncio.run(run_with_timeout(progress, lambda: list(examine(RECIPES[name], path, server, progress))))
    except (DriverError, OSError) as error:
        fail(f"the mount could not be looked at: {error}")
    if as_json:
        print(json.dumps({"recipe": name, "findings": [one._asdict() for one in found]}))
    else:
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=RECIPES[name].title, title_justify="left")
        for heading in ("needed", "found", "detail"):
            table.add_column(heading)
        for finding in found:
            table.add_row(escape(finding.what), SIGNS[finding.good], escape(finding.detail))
        Console().print(table)
    return MISSING if any(one.good is False for one in found) else 0
