"""The command: `python -m tests.reliability.lab`, or `make lab`."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tests.reliability.lab.setups import SETUPS
from tests.reliability.lab.table import Row, print_table, write_json
from tests.reliability.lab.trial import faults_of, run_trial

SIZES = {"small": (30, 1.0, 0.0), "minutes": (150, 2.0, 0.0), "soak": (400, 6.0, 8.0)}
"""Operations before a fault, seconds that it lasts, and hours over which new seeds are tried (0: one seed)."""
USUAL = "minutes"
console = Console(highlight=False, markup=False, soft_wrap=True)


def main(
    seed: Annotated[int | None, typer.Option(help="Decides everything but time; a new one if not given.")] = None,
    setup: Annotated[list[str] | None, typer.Option(help=f"{', '.join(SETUPS)}; all if not given.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help="All that the set-up can have, if not given.")] = None,
    size: Annotated[str, typer.Option(help=", ".join(SIZES))] = USUAL,
    hours: Annotated[float | None, typer.Option(help="Try new seeds for so long.")] = None,
    directory: Annotated[Path | None, typer.Option(help="Where disks and mounts are made.")] = None,
    result: Annotated[Path, typer.Option(help="File for the result as JSON.")] = Path("build/lab/result.json"),
) -> None:
    """Bring every fault to every set-up under load, and check the answers.

    Exit codes: 0 nothing was lost, wrong or a ghost; 1 something was; 2 wrong options.
    """
    if size not in SIZES:
        raise typer.BadParameter(f"no size {size!r}")
    if unknown := set(setup or ()) - SETUPS.keys():
        raise typer.BadParameter(f"no set-up {', '.join(unknown)}")
    before, hold, usual_hours = SIZES[size]
    chosen = [SETUPS[name] for name in setup or SETUPS]
    first = seed if seed is not None else time.time_ns() % 1_000_000
    until = time.monotonic() + 3600 * (usual_hours if hours is None else hours)
    named = "" if size == USUAL else size
    rows: list[Row] = []

    def report(row: Row) -> None:
        rows.append(row)
        counts = " / ".join(f"{row.count(kind)} {kind}" for kind in ("lost", "wrong", "ghost"))
        console.print(
            f"seed {row.seed} {row.setup} {row.fault}: {counts}, unavailable {row.unavailable:.1f} s, back after"
            f" {row.back:.1f} s, {row.operations} operations in {row.seconds:.0f} s, load {os.getloadavg()[0]:.0f}"
        )
        for one in row.findings:
            console.print(f"  {one.kind}: {one.text}")
        if row.findings:
            console.print(row.log, end="", markup=False)
            console.print(f"  replay: {row.replay()}")
        write_json(rows, result)

    number = first
    while True:
        for one in chosen:
            try:
                wanted = faults_of(one, fault or ())
            except ValueError as error:
                raise typer.BadParameter(str(error)) from error
            if not wanted:
                continue
            place = Path(tempfile.mkdtemp(prefix="sluice-lab-", dir=directory))
            try:
                run_trial(one, number, wanted, place, report, before=before, hold=hold, size=named)
            finally:
                shutil.rmtree(place, ignore_errors=True)
        number += 1
        if time.monotonic() >= until:
            break
    print_table(rows, [one.name for one in chosen], Console(width=None if console.is_terminal else 200))
    console.print(f"{number - first} seeds from {first}; {result} has every row")
    raise typer.Exit(int(any(row.findings for row in rows)))


if __name__ == "__main__":
    typer.run(main)
