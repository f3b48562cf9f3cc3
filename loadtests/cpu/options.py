"""Options that several commands have, and their values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from sluice_s3.loadtests.common import targets

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}

Targets = Annotated[list[str], typer.Option(help="sluice[:full|:relaxed], NAME=http://HOST:PORT or NAME=COMMAND.")]
Pids = Annotated[list[str] | None, typer.Option(help="NAME=PID: root process of an endpoint that runs.")]
Beside = Annotated[
    int | None, typer.Option(help="Root process of a database that serves the servers; its CPU is separate.")
]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds; the order of targets turns with each.")]
Durability = Annotated[str, typer.Option(help="Of the target `sluice`: relaxed or full.")]
Driver = Annotated[str, typer.Option(help="Of the target `sluice`: local, efs, fuse.")]
Clients = Annotated[str, typer.Option(help="Connections; several numbers repeat the cells.")]
Seconds = Annotated[float, typer.Option(min=0.05, help="Length of a cell.")]
WarmUp = Annotated[float, typer.Option(min=0, help="Before each cell, not measured.")]
ServerCore = Annotated[int, typer.Option(help="Core of the server; -1: any.")]
ClientCore = Annotated[int, typer.Option(help="Core of the client; -1: any (of `run` with --warp only).")]
Workers = Annotated[int, typer.Option(min=0, help="Of the target `sluice`; 0: its default.")]
Directory = Annotated[Path | None, typer.Option(help="Where launched targets, or stores, get their data.")]
Output = Annotated[Path, typer.Option(help="JSON to write.")]
ObjectSize = Annotated[str, typer.Option(help="Size of an object.")]


def size_of(text: str) -> int:
    """Bytes of `4k`, `10m`, `1g` or `512`. Raises ValueError."""
    digits = text.strip().lower().rstrip("ib")
    unit = digits[-1:] if digits[-1:].isalpha() else ""
    if unit not in UNITS:
        raise ValueError(f"{text!r} is no size")
    return int(digits.removesuffix(unit)) * UNITS[unit]


def parse_words(text: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
    """Return upper-case words of a list with commas. Raises ValueError for others than the allowed ones."""
    words = tuple(word.strip().upper() for word in text.split(",") if word.strip())
    if unknown := [word for word in words if word not in allowed]:
        raise ValueError(f"{', '.join(unknown)}: not one of {', '.join(allowed).lower()}")
    return words


def parse_numbers(text: str) -> tuple[int, ...]:
    """Return the numbers of a list with commas. Raises ValueError."""
    return tuple(int(number) for number in text.split(","))


def chosen_targets(
    texts: list[str], pids: list[str] | None, durability: str, driver: str, workers: int
) -> list[targets.Target]:
    """Return the targets of a command line. Raises ValueError."""
    known = {name: int(pid) for name, _, pid in (text.partition("=") for text in pids or [])}
    parsed = (targets.parse_target(text, durability, known) for text in texts)
    return [targets.with_workers(targets.with_driver(one, driver), workers) for one in parsed]


def core_of(number: int) -> int | None:
    """Return the core of an option; None for any."""
    return number if number >= 0 else None


def claim_cores(server: int, client: int, *, any_client: bool) -> tuple[int | None, int | None]:
    """Pin this process, the client, to its core. Return the server's and the client's, None for any.

    Raises ValueError if they share one, or if the client may use any and not `any_client`.
    """
    named = {core for core in (server, client) if core >= 0}
    if any_client and client < 0 and not named - os.sched_getaffinity(0):
        return core_of(server), None
    if named - os.sched_getaffinity(0) or client < 0 or server == client:
        raise ValueError("server and client want a core each")
    os.sched_setaffinity(0, {client})
    return core_of(server), client
