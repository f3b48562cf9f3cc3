"""The command: `python -m sluice_s3.loadtests.mounts mount`."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sluice_s3.loadtests.mounts import control as control_socket
from sluice_s3.loadtests.mounts import fuse_server
from sluice_s3.loadtests.mounts.faults import Fault
from sluice_s3.loadtests.mounts.profiles import PROFILES, profile_named
from sluice_s3.loadtests.mounts.quirks import PERSONALITIES

cli = typer.Typer(add_completion=False, help="Mounts to test on.")
console = Console(stderr=True)


@cli.callback()
def main() -> None:
    """Mounts to test on: a directory shown by FUSE with costs, oddities and faults of your choice."""


@cli.command()
def mount(
    backing: Annotated[Path, typer.Argument(help="Directory that holds the files.")],
    where: Annotated[Path, typer.Argument(help="Empty directory at which they appear.")],
    profile: Annotated[str, typer.Option(help=", ".join(PROFILES))] = "none",
    personality: Annotated[str, typer.Option(help=f"{', '.join(PERSONALITIES)}; the profile's if not given.")] = "",
    ms: Annotated[list[str] | None, typer.Option(help="KIND=MILLISECONDS in the profile's place; repeat.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="JSON of a fault's fields; repeat.")] = None,
    tracked: Annotated[bool, typer.Option(help="Keep what a crash takes back.")] = False,
    big_writes: Annotated[bool, typer.Option(help="Writes of up to 1 MiB, not of 4 KiB.")] = True,
    cached: Annotated[bool, typer.Option(help="Linux may remember bytes, so that not every read comes here.")] = True,
    slower: Annotated[float, typer.Option(min=1.0, help="How many times as long each call takes.")] = 1.0,
    control: Annotated[Path | None, typer.Option(help="Unix socket that takes commands.")] = None,
) -> None:
    """Show a directory at another place, until it is unmounted."""
    try:
        times = {kind: float(took) for kind, _, took in (one.partition("=") for one in ms or [])}
        faults = tuple(Fault(**json.loads(one)) for one in fault or [])
        found = profile_named(profile).changed(times)
        if personality and personality not in PERSONALITIES:
            raise ValueError(f"no personality {personality!r}")
        fuse_server.serve(
            fuse_server.Mounting(
                backing, where, found, personality, faults, tracked, big_writes, cached, slower, control
            )
        )
    except (ValueError, TypeError, fuse_server.MountFailed) as error:
        console.print(f"gave up: {error}", highlight=False, markup=False)
        raise typer.Exit(1) from error


@cli.command()
def tell(
    control: Annotated[Path, typer.Argument(help="The socket of a mount that runs.")],
    do: Annotated[str, typer.Argument(help="fault, clear, release, struck, counts, waiting, crash or credits.")],
    more: Annotated[str, typer.Argument(help="JSON object of what belongs to it.")] = "{}",
) -> None:
    """Tell a running mount something, or ask it."""
    try:
        print(json.dumps(control_socket.send_request(control, do, **json.loads(more))))
    except (OSError, ValueError, control_socket.Refused) as error:
        console.print(f"gave up: {error}", highlight=False, markup=False)
        raise typer.Exit(1) from error


@cli.command()
def calibrate(
    profiles: Annotated[list[str] | None, typer.Argument(help="All that have published figures if not given.")] = None,
    only: Annotated[str, typer.Option(help="Only experiments with this text in their name.")] = "",
    directory: Annotated[Path | None, typer.Option(help="Where the backing directories are made.")] = None,
) -> None:
    """Repeat the published experiments on the mounts, and compare. Ends with 1 where a figure is off.

    As root it runs before all other processes (SCHED_FIFO), so that what else the machine does disturbs it less.
    """
    from sluice_s3.loadtests.mounts import calibration
    from sluice_s3.loadtests.mounts.experiments import EXPERIMENTS

    outcomes = []
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    try:
        for outcome in calibration.calibrate(profiles or list(EXPERIMENTS), only, directory):
            outcomes.append(outcome)
            one = outcome.experiment
            text = f"{outcome.profile}: {one.what}: {outcome.measured:.4g} {one.unit} ({outcome.verdict})"
            console.print(text, highlight=False, markup=False)
    except (KeyError, ValueError, OSError, fuse_server.MountFailed) as error:
        console.print(f"gave up: {error}", highlight=False, markup=False)
        raise typer.Exit(1) from error
    Console(width=None if console.is_terminal else 160).print(calibration.table(outcomes))
    raise typer.Exit(int(any(outcome.verdict == "off" for outcome in outcomes)))


if __name__ == "__main__":
    cli()
