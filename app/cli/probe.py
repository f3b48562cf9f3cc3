"""`sluice probe`: the capabilities of the mount under a directory."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import fail
from sluice_s3.storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from sluice_s3.storage_drivers.probing.probe import Probe

SIGNS = {True: "[green]yes[/]", False: "[red]no[/]", None: "[yellow]?[/]"}


def probe_command(
    path: Annotated[Path, typer.Argument(help="A directory on the mount; nothing in it is touched.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Test a mount in a temporary directory under PATH.

    Exit codes: 0 a store with full durability can be here, 1 the probe could not run, 8 such a store would refuse to
    start.
    """
    from sluice_s3.storage_drivers.base import Durability
    from sluice_s3.storage_drivers.probing.probe import measure, refusal_reason, run_with_timeout
    from sluice_s3.storage_drivers.probing.scratch import Progress

    progress = Progress()
    try:
        found = asyncio.run(run_with_timeout(progress, lambda: measure(path, progress)))
    except DriverError as error:
        fail(f"the probe could not run ({progress.doing}): {error}")
    if as_json:
        print(json.dumps(found.to_json()))
    else:
        _print(found, path)
    if refusal_reason(found, Durability.FULL):
        raise typer.Exit(8)


def _print(probe: Probe, path: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from sluice_s3.storage_drivers.base import Durability
    from sluice_s3.storage_drivers.probing.probe import refusal_reason

    console = Console()
    trials = Table(
        title=f"{path}: {probe.mount.kind} {probe.mount.source} at {probe.mount.point}", title_justify="left"
    )
    for heading in ("asked of the mount", "works", "seen"):
        trials.add_column(heading)
    for trial in probe.trials:
        trials.add_row(trial.ability.value, SIGNS[trial.works], trial.detail)
    console.print(trials)
    times = Table(title="milliseconds a call", title_justify="left")
    times.add_column("call")
    for heading in ("calls", "median", "worst"):
        times.add_column(heading, justify="right")
    for call, calls, median, worst in probe.latencies:
        times.add_row(call, str(calls), f"{median * 1000:.3f}", f"{worst * 1000:.3f}")
    console.print(times)
    for durability in Durability:
        refused = refusal_reason(probe, durability)
        console.print(
            f"durability {durability.value}: " + (f"a store refuses to start: {refused}" if refused else "yes")
        )
    for warning in probe.warnings:
        console.print(f"mounted with {warning}", style="yellow")
    console.print(f"driver meant for this mount: {probe.mount.driver}")
