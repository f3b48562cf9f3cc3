"""The command: `python -m loadtests.mounts mount`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from loadtests.mounts import control as control_socket
from loadtests.mounts import serving
from loadtests.mounts.faults import Fault
from loadtests.mounts.personalities import PERSONALITIES
from loadtests.mounts.profiles import PROFILES, profile_named

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
    control: Annotated[Path | None, typer.Option(help="Unix socket by which it is told and asked.")] = None,
    end_with_parent: Annotated[bool, typer.Option(help="Unmount when who began it, or our input, ends.")] = False,
) -> None:
    """Show a directory at another place, until it is unmounted."""
    try:
        times = {kind: float(took) for kind, _, took in (one.partition("=") for one in ms or [])}
        faults = tuple(Fault(**json.loads(one)) for one in fault or [])
        found = profile_named(profile).changed(times)
        if personality and personality not in PERSONALITIES:
            raise ValueError(f"no personality {personality!r}")
        mounting = serving.Mounting(backing, where, found, personality, faults, tracked, big_writes, cached, control)
        if end_with_parent:
            serving.end_with_parent(mounting)
        serving.serve(mounting)
    except (ValueError, TypeError, serving.MountFailed) as error:
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
        print(json.dumps(control_socket.tell(control, do, **json.loads(more))))
    except (OSError, ValueError, control_socket.Refused) as error:
        console.print(f"gave up: {error}", highlight=False, markup=False)
        raise typer.Exit(1) from error


if __name__ == "__main__":
    cli()
