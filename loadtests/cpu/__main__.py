"""The command: `python -m sluice_s3.loadtests.cpu run`."""

from __future__ import annotations

import json
import os
import secrets
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sluice_s3.loadtests.common import targets
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.scratch import scratch
from sluice_s3.loadtests.cpu import options, report
from sluice_s3.loadtests.cpu.bench import Bench, Place, Turn
from sluice_s3.loadtests.cpu.callgrind_requests import OPERATIONS as COUNTED
from sluice_s3.loadtests.cpu.callgrind_requests import USUAL
from sluice_s3.loadtests.cpu.client import Stalled
from sluice_s3.loadtests.cpu.shape_run import ShapePlan, ShapeRun, parse_shapes
from sluice_s3.loadtests.cpu.shapes import OPERATIONS as SHAPE_OPERATIONS
from sluice_s3.loadtests.cpu.shapes import SHAPES
from sluice_s3.loadtests.cpu.target_run import MIX, OBJECT_OPERATIONS, Plan, TargetRun
from sluice_s3.loadtests.cpu.warp import OPERATIONS as WARP_OPERATIONS
from sluice_s3.loadtests.cpu.warp import WarpRun
from sluice_s3.loadtests.mounts.workloads import linux_tree

OPERATIONS = (*OBJECT_OPERATIONS, "LIST", "MULTIPART", "MIX")

cli = typer.Typer(add_completion=False, help="Measure S3 endpoints side by side with one client.")
console = Console(stderr=True)


@cli.callback()
def main() -> None:
    """Measure S3 endpoints side by side with one client."""
    # servers run in another directory, where a relative path would give them an installed Sluice, not this one
    if paths := os.environ.get("PYTHONPATH"):
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, paths.split(os.pathsep)))


@cli.command()
def run(
    target: options.Targets,
    pid: options.Pids = None,
    beside: options.Beside = None,
    rounds: options.Rounds = 5,
    durability: options.Durability = "relaxed",
    driver: options.Driver = "local",
    ops: Annotated[str, typer.Option(help="Any of put,get,stat,delete,list,multipart,mix.")] = ",".join(OPERATIONS),
    sizes: Annotated[str, typer.Option(help="Sizes of objects.")] = "4k,64k,1m,10m",
    clients: options.Clients = "16",
    seconds: options.Seconds = 3.0,
    warm_up: options.WarmUp = 0.4,
    list_keys: Annotated[int, typer.Option(min=2, help="Keys of the bucket that is listed.")] = 3000,
    multipart: Annotated[str, typer.Option(help="Size of a multipart upload.")] = "1g",
    part: Annotated[str, typer.Option(help="Size of its parts.")] = "16m",
    mix_size: Annotated[str, typer.Option(help="Size of the mix's objects.")] = "10m",
    mix_clients: Annotated[int, typer.Option(min=1, help="Connections of the mix.")] = 20,
    server_core: options.ServerCore = 0,
    client_core: options.ClientCore = 1,
    workers: options.Workers = 1,
    warp: Annotated[Path | None, typer.Option(exists=True, help="Have this warp (minio/warp) send requests.")] = None,
    directory: options.Directory = None,
    data_directory: Annotated[Path | None, typer.Option(help="Only for their data: a mount.")] = None,
    output: options.Output = Path("benchmark.json"),
) -> None:
    """Run every cell against every target, turn by turn, and print the table."""
    try:
        chosen = options.chosen_targets(target, pid, durability, driver, workers)
        plan = Plan(
            operations=options.parse_words(ops, OPERATIONS if warp is None else tuple(WARP_OPERATIONS)),
            sizes=tuple(map(options.size_of, sizes.split(","))),
            clients=options.parse_numbers(clients),
            seconds=seconds,
            warm_up=warm_up,
            list_keys=list_keys,
            multipart_bytes=options.size_of(multipart),
            part_bytes=options.size_of(part),
            mix_bytes=options.size_of(mix_size),
            mix_clients=mix_clients,
        )
        cores = options.claim_cores(server_core, client_core, any_client=warp is not None)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    place = Place(*cores, directory, data_directory, beside)
    settings = {**asdict(plan), "mix": MIX, "warp": None if warp is None else targets.version(str(warp))}
    turn = partial(_turn, plan, place, warp)
    _measure(Bench(chosen, place, settings, output, console, turn), rounds)


def _turn(
    plan: Plan, place: Place, warp: Path | None, running: targets.Running, keys: targets.Keys, number: int, parent: Path
) -> Turn:
    if warp is not None:
        return WarpRun(running, keys, plan, warp, number, parent)
    return TargetRun(running, plan, place.meter(running), number, f"bench-{secrets.token_hex(4)}")


def _measure(bench: Bench, rounds: int) -> None:
    try:
        bench.run(rounds)
    except (S3CallError, Stalled, OSError) as error:
        console.print(f"[red]gave up:[/red] {error}", highlight=False, markup=True)
        raise typer.Exit(1) from error
    Console(width=None if console.is_terminal else 200).print(report.table(report.rows(bench.measures)))


@cli.command()
def shapes(
    target: options.Targets,
    shape: Annotated[list[str] | None, typer.Option(help=f"Any of {', '.join(SHAPES)}; none: all.")] = None,
    tls: Annotated[bool, typer.Option(help="Over TLS; a command has {certificate} and {key}.")] = False,
    pid: options.Pids = None,
    rounds: options.Rounds = 3,
    durability: options.Durability = "relaxed",
    ops: Annotated[str, typer.Option(help="Any of put,get,head,list,delete-objects,part.")] = "put,get",
    size: options.ObjectSize = "4k",
    part: Annotated[str, typer.Option(help="Size of a part.")] = "5m",
    concurrency: options.Clients = "16",
    seconds: options.Seconds = 3.0,
    warm_up: options.WarmUp = 0.4,
    server_core: options.ServerCore = -1,
    client_core: options.ClientCore = -1,
    workers: options.Workers = 0,
    directory: options.Directory = None,
    output: options.Output = Path("shapes.json"),
) -> None:
    """Play requests as real clients send them against every target, turn by turn, and print the table."""
    try:
        chosen = options.chosen_targets(target, pid, durability, "local", workers)
        if unfit := [one.name for one in chosen if not one.durability and tls != ("{certificate}" in one.command)]:
            raise ValueError(f"{', '.join(unfit)}: a command with {{certificate}} and --tls go together")
        plan = ShapePlan(
            parse_shapes(shape or []),
            options.parse_words(ops, SHAPE_OPERATIONS),
            options.parse_numbers(concurrency),
            options.size_of(size),
            options.size_of(part),
            seconds,
            warm_up,
        )
        place = Place(*options.claim_cores(server_core, client_core, any_client=True), directory)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error

    def turn(running: targets.Running, _keys: targets.Keys, number: int, _parent: Path) -> Turn:
        return ShapeRun(running, plan, place.meter(running), number, f"shapes-{secrets.token_hex(4)}")

    _measure(Bench(chosen, place, asdict(plan), output, console, turn, tls=tls), rounds)


@cli.command()
def grow(
    objects: Annotated[str, typer.Option(help="Counts of objects at which the store is measured.")] = "100000,1000000",
    size: options.ObjectSize = "1k",
    durability: Annotated[str, typer.Option(help="relaxed or full.")] = "relaxed",
    seconds: Annotated[float, typer.Option(min=0.5, help="Length of a measurement.")] = 10.0,
    clients: Annotated[int, typer.Option(min=1, help="Connections.")] = 16,
    directory: options.Directory = None,
) -> None:
    """Fill one store with small objects and measure what many of them cost."""
    from sluice_s3.loadtests.cpu.scaling import grow, table

    with scratch("sluice-grow-", directory) as parent:
        counts = [int(count) for count in objects.split(",")]
        states = grow(parent, counts, options.size_of(size), durability, seconds, clients, console)
    Console(width=None if console.is_terminal else 120).print(table(states))


@cli.command("curve")
def curve_command(
    target: Annotated[list[str] | None, typer.Option(help="As of `run`, but launched.")] = None,
    minutes: Annotated[float, typer.Option(min=0.05, help="Length of the curve.")] = 60.0,
    interval: Annotated[float, typer.Option(min=1, help="Seconds of a point.")] = 60.0,
    load: Annotated[float, typer.Option(min=0.01, help="Requests arrive at this share of the saturation.")] = 0.8,
    rate: Annotated[float, typer.Option(min=0, help="Requests a second; 0: by --load.")] = 0.0,
    sizes: Annotated[str, typer.Option(help="Sizes of objects, each as often.")] = "4k,1m",
    objects: Annotated[int, typer.Option(min=1, help="Of a size: to read, and as many to delete.")] = 500,
    clients: Annotated[int, typer.Option(min=1, help="Connections.")] = 32,
    calibration: Annotated[float, typer.Option(min=0.1, help="Seconds in which the saturation is found.")] = 20.0,
    workers: Annotated[int, typer.Option(min=1, help="Of the target `sluice`.")] = 2,
    directory: Annotated[Path | None, typer.Option(help="Where targets get their data.")] = None,
    output: Annotated[Path, typer.Option(help="JSON to write.")] = Path("curve.json"),
) -> None:
    """Record how a mix with overwrites and deletes runs for long below saturation."""
    from sluice_s3.loadtests.cpu import curve

    try:
        chosen = [
            targets.with_workers(targets.parse_target(text, "relaxed", {}), workers) for text in target or ["sluice"]
        ]
        if any(not one.launched for one in chosen):
            raise ValueError("only targets that are launched")
        plan = curve.Plan(
            tuple(map(options.size_of, sizes.split(","))),
            objects,
            clients,
            load,
            rate,
            minutes * 60,
            interval,
            calibration,
        )
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    keys = targets.Keys("GK" + secrets.token_hex(12), secrets.token_hex(32))
    found: list[curve.Curve] = []
    printer = Console(width=None if console.is_terminal else 120)
    for one in chosen:
        points: list[curve.Point] = []

        def tell(point: curve.Point, points: list[curve.Point] = points) -> None:
            points.append(point)
            console.print("  ".join(curve.line(point, points[0])), highlight=False)

        with scratch("sluice-curve-", directory) as parent:
            found.append(curve.measure(one, keys, parent, plan, tell))
        curve.write(output, plan, found)
        printer.print(curve.table(found[-1]))


@cli.command("files")
def files_command(
    directory: Annotated[Path, typer.Option(help="Where the files are made; they are removed afterwards.")],
    threads: Annotated[int, typer.Option(min=1)] = 64,
    size: Annotated[str, typer.Option(help="Size of a file.")] = "4k",
    seconds: Annotated[float, typer.Option(min=0.05)] = 5.0,
    sync: Annotated[bool, typer.Option(help="Sync each file.")] = True,
    sync_directory: Annotated[bool, typer.Option(help="Sync its directory too, so that its name is durable.")] = False,
    directories: Annotated[int, typer.Option(min=0, help="Directories to spread over; 0: one a thread.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make one file an object, in many threads: what a mount gives without packs."""
    from sluice_s3.loadtests.cpu import raw_files

    with scratch("sluice-files-", directory) as parent:
        plan = raw_files.Plan(parent, threads, options.size_of(size), seconds, sync, sync_directory, directories)
        found = raw_files.run(plan)
    if as_json:
        print(json.dumps({**asdict(found), "rate": found.rate}))
    else:
        latency = ", ".join(f"{name} {value:.1f} ms" for name, value in found.latency_ms.items())
        print(f"{found.rate:,.0f} objects/s ({latency})")


@cli.command()
def hang(
    rounds: Annotated[int, typer.Option(min=1)] = 3,
    seconds: Annotated[float, typer.Option(min=0.5, help="Length of each of the three phases.")] = 15.0,
    server_core: options.ServerCore = -1,
    directory: options.Directory = None,
) -> None:
    """Measure what health and one store answer while the mount of another store hangs."""
    from sluice_s3.loadtests.cpu import stuck_mount

    keys = targets.Keys("GK" + secrets.token_hex(12), secrets.token_hex(32))
    found = []
    for _ in range(rounds):
        with scratch("sluice-hang-", directory) as parent:
            found.append(stuck_mount.measure(parent, keys, options.core_of(server_core), seconds))
    Console(width=None if console.is_terminal else 120).print(stuck_mount.table(found))


@cli.command()
def features(
    rounds: Annotated[int, typer.Option(min=1)] = 5,
    objects: Annotated[int, typer.Option(min=1, help="Of a bucket and round.")] = 5000,
    size: Annotated[str, typer.Option(help="Of an object.")] = "4k",
    server_core: options.ServerCore = 0,
    directory: options.Directory = None,
) -> None:
    """Measure what versions, a policy and encryption cost an operation."""
    from sluice_s3.loadtests.cpu import features

    keys = targets.Keys("GK" + secrets.token_hex(12), secrets.token_hex(32))
    core = options.core_of(server_core)
    with scratch("sluice-features-", directory) as parent:
        found = features.measure(parent, keys, core, objects, options.size_of(size), rounds)
    Console(width=None if console.is_terminal else 170).print(features.table(found))


@cli.command("callgrind")
def callgrind_command(
    ops: Annotated[str, typer.Option(help="Any of the operations of the README, or all.")] = ",".join(USUAL).lower(),
    count: Annotated[int, typer.Option(min=3, help="Small requests of an operation; fewer of slow ones.")] = 300,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, each with fresh workers; their order turns.")] = 3,
    idle: Annotated[float, typer.Option(min=1, help="Seconds that the idle worker is counted in a round.")] = 10.0,
    python: Annotated[
        str, typer.Option(help="Interpreter of the worker, with Sluice's dependencies.")
    ] = sys.executable,
    against: Annotated[
        Path | None, typer.Option(exists=True, help="Another checkout, measured in turns, or an earlier JSON.")
    ] = None,
    directory: options.Directory = None,
    output: options.Output = Path("callgrind.json"),
) -> None:
    """Count the instructions an operation by callgrind, where the machine has no counter."""
    from sluice_s3.loadtests.cpu import callgrind, callgrind_costs, callgrind_report

    try:
        callgrind.require_tools()
        chosen = tuple(COUNTED) if ops == "all" else options.parse_words(ops, tuple(COUNTED))
        plan = callgrind_costs.Plan(chosen, count, idle)
        sides = [callgrind_costs.Side("this", str(targets.ROOT), report.commit_of(targets.ROOT))]
        if against is not None and against.is_dir():
            other = against.resolve()
            sides.append(callgrind_costs.Side(other.name or "other", str(other), report.commit_of(other)))
        earlier = [callgrind_report.read_side(against)] if against is not None and against.is_file() else []
    except callgrind.ToolsMissing as error:
        console.print(f"[red]cannot count:[/red] {error}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    tell = partial(console.print, highlight=False, soft_wrap=True)
    result = callgrind_report.Result([*sides, *earlier], plan, rounds)
    try:
        callgrind_costs.measure(sides, python, plan, rounds, directory, tell)
    except (callgrind.CallgrindError, S3CallError, OSError) as error:
        console.print(f"[red]gave up:[/red] {error}", highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error
    result.write(output)
    printer = Console(width=None if console.is_terminal else 170)
    printer.print(result.table())
    for line in result.lines():
        printer.print(line, highlight=False, soft_wrap=True)


@cli.command("small-files")
def small_files_command(
    directory: Annotated[Path, typer.Option(help="Where data lie: the mount. What is made there is removed.")],
    target: Annotated[list[str] | None, typer.Option(help="As of `run`; `sluice` has its index elsewhere.")] = None,
    driver: Annotated[str, typer.Option(help="Of the target `sluice`.")] = "local",
    straight: Annotated[str, typer.Option(help="Numbers of threads that write it without a gateway.")] = "",
    sync: Annotated[bool, typer.Option(help="Those sync each file.")] = False,
    share: Annotated[float, typer.Option(help="Of the tree of 54,000 files.")] = 1.0,
    reads: Annotated[int, typer.Option(min=1, help="Of a whole tree.")] = 10_000,
    read_files: Annotated[int, typer.Option(min=5, help="How many of its files these are of.")] = 10_000,
    clients: Annotated[int, typer.Option(min=1)] = 64,
    workers: options.Workers = 1,
    server_core: options.ServerCore = 0,
    client_core: options.ClientCore = 1,
    mount_pid: Annotated[int | None, typer.Option(help="Process of the mount, whose CPU is reported too.")] = None,
) -> None:
    """Put a source tree through gateways on a mount, and straight on it; then read it by 16."""
    from sluice_s3.loadtests.cpu import small_files

    tree = linux_tree(share)
    chosen = small_files.Reads(round(reads * share), round(read_files * share))
    keys = targets.Keys("GK" + secrets.token_hex(12), secrets.token_hex(32))
    found = []
    own = os.sched_getaffinity(0)
    with tempfile.TemporaryDirectory(prefix="sluice-local-") as local:
        for text in target or []:
            parsed = targets.with_workers(targets.with_driver(targets.parse_target(text, "full", {}), driver), workers)
            core = options.core_of(server_core)
            os.sched_setaffinity(0, {client_core} if client_core >= 0 else own)
            with targets.Running(parsed, keys, Path(local), core, directory.resolve()) as running:
                found.append(small_files.through(running, tree, clients, chosen, mount_pid))
            os.sched_setaffinity(0, own)
            console.print(found[-1], highlight=False)
    for threads in (int(count) for count in straight.split(",") if count):
        with scratch("sluice-files-", directory) as parent:
            found.append(small_files.straight(parent, tree, threads, chosen, sync=sync))
        console.print(found[-1], highlight=False)
    printer = Console(width=None if console.is_terminal else 120)
    printer.print(small_files.table(found))
    printer.print(small_files.cpu_table(found))


if __name__ == "__main__":
    cli()
