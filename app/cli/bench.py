"""`sluice bench`: the same load on several stores and endpoints, compared."""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import JsonOption, fail

if TYPE_CHECKING:
    from sluice_s3.loadtests.common.targets import Keys
    from sluice_s3.loadtests.compare.plan import Plan
    from sluice_s3.loadtests.compare.progress import Bar, JsonLines
    from sluice_s3.loadtests.compare.run import Run
    from sluice_s3.loadtests.report.options import ReportOptions

TitleOption = Annotated[str, typer.Option(help="Of the report, before the stores' names.")]
NoteOption = Annotated[str, typer.Option(help="A sentence of your own under the report's title.")]
PublishedOption = Annotated[
    bool, typer.Option("--published", help="Published measurements beside these, with their sources.")
]
CostOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Prices of a store: NAME=gp3, efs or s3 (examples of a day), NAME=gb=0.08,iops=0.005,stored=500, or both. "
        "Repeat. For what the load costs a month."
    ),
]

bench = typer.Typer(invoke_without_command=True, help="Compare stores and endpoints under load.")
PARTIAL = 3
STORES = ("local", "fuse")
REPEATS = 5
MINUTES = 5.0


@bench.callback()
def bench_command(
    context: typer.Context,
    store: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=PATH[:DRIVER] of a disk or mount; or the name of a mount to make: local, fuse, zdbfs, nfs, "
            "efs-004 and the other profiles, gocryptfs, sshfs and other installed file systems, also as NAME=PROFILE. "
            "NAME=PROFILE,slower=1.2: each call of the mount takes 1.2 times as long. Repeat. Default: local and fuse."
        ),
    ] = None,
    endpoint: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=URL of a server that runs; keys from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and "
            "AWS_SESSION_TOKEN for temporary ones."
        ),
    ] = None,
    direct: Annotated[bool, typer.Option("--direct", help="Each store also without a gateway, synced files.")] = False,
    direct_unsynced: Annotated[
        bool, typer.Option("--direct-unsynced", help="Each store also as files that are closed but not synced.")
    ] = False,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Repeat. Default: all but open_loop, boto3_mixed, saturation.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="At the published sizes: hours, and many gigabytes.")] = False,
    users: Annotated[int | None, typer.Option(min=1, help="Clients of the mixed scenarios.")] = None,
    duration: Annotated[float | None, typer.Option(min=0.1, help="Seconds of scenarios that have a duration.")] = None,
    sizes: Annotated[str | None, typer.Option(help="As 100KB,1MB: of scenarios with several sizes.")] = None,
    setting: Annotated[list[str] | None, typer.Option("--set", help="SCENARIO.OPTION=VALUE. Repeat.")] = None,
    repeats: Annotated[
        int | None,
        typer.Option(min=1, help="Of everything, instead of --minutes; with it, so many at most. Three tell noise."),
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="Of the generator.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Of the gateway.")] = 1,
    durability: Annotated[str, typer.Option(help="Of the gateway: full or relaxed.")] = "full",
    directory: Annotated[Path | None, typer.Option(help="Where temporary stores are made.")] = None,
    results: Annotated[Path, typer.Option(help="A directory for the run is made in it.")] = Path("results"),
    name: Annotated[str, typer.Option(help="Of the run. Default: the time.")] = "",
    resume: Annotated[Path | None, typer.Option(help="Go on with this run; other options are those it had.")] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            max=10_000,
            help="Take so many at most, until each use is known well enough. Default: 5, without --repeats and --full. "
            "With --resume: so many more.",
        ),
    ] = None,
    cold: Annotated[
        bool, typer.Option("--cold", help="Empty the page cache again and again, so that reads come from the device.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of the random order of targets. Default: another for each run.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what the run would do.")] = False,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line: progress, live figures, the verdict.")
    ] = False,
    title: TitleOption = "",
    note: NoteOption = "",
    published: PublishedOption = False,
    cost: CostOption = None,
) -> None:
    """Run load scenarios against each store through a new gateway and write the results.

    The results go into RESULTS/NAME.

    Exit codes: 0 everything was measured, 1 it could not begin, 2 an option is wrong, 3 the run is partial.
    """
    if context.invoked_subcommand is not None:
        return
    _need("locust")
    _need("jinja2")
    from sluice_s3.loadtests.common.procfs import age_seconds
    from sluice_s3.loadtests.compare import run as running
    from sluice_s3.loadtests.compare.pace import measured_slowness
    from sluice_s3.loadtests.compare.plan import Plan, PlanError, select_scenarios
    from sluice_s3.loadtests.compare.progress import Bar, JsonLines
    from sluice_s3.loadtests.compare.time_budget import divide
    from sluice_s3.loadtests.report.options import check_prices

    keys = _endpoint_keys()
    bar = JsonLines() if json_lines else Bar()
    options = _report_options(title, note, published, cost)
    began = time.monotonic() - age_seconds()
    interim = import_module("sluice_s3.loadtests.report.interim").Interim
    try:
        if resume is not None:
            found = running.resume(resume, keys, bar, interim, began, minutes)
        else:
            if durability not in ("full", "relaxed"):
                raise PlanError(f"durability {durability!r} is neither full nor relaxed")
            if directory is not None and not directory.is_dir():
                raise PlanError(f"{directory} is no directory")
            chosen = select_scenarios(
                scenario or (), full=full, users=users, duration=duration, sizes=sizes, settings=setting or ()
            )
            stores, endpoints = tuple(store or (() if endpoint else _usual())), tuple(endpoint or ())
            if minutes is None and repeats is None and not full:
                minutes = MINUTES
            planned = repeats or REPEATS
            if minutes is not None:
                count = len(stores) * (1 + direct + direct_unsynced) + len(endpoints)
                division = divide(minutes, chosen, count, measured_slowness())
                planned, chosen = min(division.repeats, repeats or division.repeats), dict(division.scenarios)
            plan = Plan(
                planned, chosen, processes, durability, workers, stores, endpoints, direct, direct_unsynced,
                str(directory or ""), keys.region, full, minutes or 0.0, repeats or 0,
                secrets.randbits(31) if seed is None else seed, cold,
            )  # fmt: skip
            if dry_run:
                _print_preview(plan, json_lines)
                return
            found = running.start_run(results / _name(name), plan, keys, bar, interim, began)
        check_prices(options, [one.name for one in found.targets])
    except PlanError as error:
        fail(str(error), 2)
    _play(found, bar, options)


@bench.command("report")
def report_command(
    run: Annotated[Path, typer.Argument(help="A directory that `sluice bench` made.")],
    title: TitleOption = "",
    note: NoteOption = "",
    published: PublishedOption = False,
    cost: CostOption = None,
) -> None:
    """Write the report of a run again: report.html, report.md and report.json in its directory.

    Options that are left out stay as they were.
    """
    from sluice_s3.loadtests.compare.plan import PlanError

    _need("jinja2")
    try:
        options = _report_options(title, note, published, cost)
        print(import_module("sluice_s3.loadtests.report").write_report(run, options))
    except (PlanError, OSError) as error:
        fail(str(error), 2)


@bench.command("compare")
def compare_command(
    run_a: Annotated[Path, typer.Argument(help="A directory that `sluice bench` made.")],
    run_b: Annotated[Path, typer.Argument(help="Another one.")],
    as_json: JsonOption = False,
) -> None:
    """Compare two runs target by target, and print which differences exceed the noise.

    It also writes a page, compared-with-RUN_A.html, into RUN_B.
    """
    from sluice_s3.loadtests.compare.plan import PlanError

    try:
        found = import_module("sluice_s3.loadtests.report.comparison").compare_runs(run_a, run_b)
    except (PlanError, OSError) as error:
        fail(str(error), 2)
    if as_json:
        print(
            json.dumps({"a": found.a, "b": found.b, "remarks": found.remarks, "pairs": list(map(asdict, found.pairs))})
        )
        return
    import_module("sluice_s3.loadtests.report.console").show(found)
    _need("jinja2")
    try:
        print(import_module("sluice_s3.loadtests.report.comparison_page").write_comparison(found, run_b))
    except OSError as error:
        fail(f"the page cannot be written: {error}")


@bench.command("history")
def history_command(
    results: Annotated[Path, typer.Argument(help="The directory of runs.")] = Path("results"),
    trend: Annotated[
        bool, typer.Option("--trend", help="Also write trend.html there, of the runs like the newest one.")
    ] = False,
    like: Annotated[str, typer.Option(help="With --trend: of the runs like this one.")] = "",
    as_json: JsonOption = False,
) -> None:
    """List the runs below a directory, the newest first: when, targets, verdict.

    A trend is over runs with the same targets and scenarios, with the same options of these.
    """
    from sluice_s3.loadtests.compare.plan import PlanError

    try:
        if like and not trend:
            raise PlanError("--like needs --trend")
        runs = import_module("sluice_s3.loadtests.report.history").runs_of(results)
        if as_json:
            print(json.dumps([one.as_json() for one in runs]))
        else:
            import_module("sluice_s3.loadtests.report.console").show_runs(runs)
        if trend:
            _need("jinja2")
            typer.echo(import_module("sluice_s3.loadtests.report.trend").write_trend(results, like), err=as_json)
    except (PlanError, OSError) as error:
        fail(str(error), 2)


@bench.command("scenarios")
def scenarios_command(as_json: JsonOption = False) -> None:
    """List the scenarios, with the paths of their Locust files."""
    from sluice_s3.loadtests.compare.plan import LOCUST_ONLY, SCENARIOS, select_scenarios

    for chosen in select_scenarios(SCENARIOS).values():
        one = SCENARIOS[chosen.name]
        if as_json:
            fields = {"name": one.name, "about": one.about, "default": one.default, "users": one.users}
            print(json.dumps({**fields, "seconds": chosen.seconds, "bytes": chosen.bytes, "file": str(one.file)}))
        else:
            print(f"{one.name}: {one.about}\n    {one.file}")
    for one in () if as_json else LOCUST_ONLY:
        print(f"{one.name}: {one.about}\n    {one.file}")


@bench.command("doctor")
def doctor_command(
    recipe: Annotated[str, typer.Argument(help="Of docs/load-testing: efs, ebs, nfs, juicefs and others.")],
    path: Annotated[Path | None, typer.Option(help="Where it is mounted; nothing there is touched.")] = None,
    server: Annotated[str, typer.Option(help="HOST or HOST:PORT of its server, to see whether it answers.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Check what a recipe for a real mount needs on this machine, and the options of the mount.

    Exit codes: 0 nothing is missing, 1 the mount does not answer, 2 there is no such recipe, 8 something is missing.
    """
    from sluice_s3.app.cli.doctor import examine_recipe

    raise typer.Exit(examine_recipe(recipe, path, server, as_json))


def _need(module: str) -> None:
    if find_spec(module) is None:
        fail("load tests need Locust and others: pip install 'sluice-s3[loadtest]'")


def _print_preview(plan: Plan, as_json: bool) -> None:
    from sluice_s3.loadtests.compare.preview import preview

    found = preview(plan)
    if as_json:
        print(json.dumps(asdict(found)))
        return
    print(f"about {max(1, round(found.seconds / 60))} min: {found.repeats} repeats of {', '.join(found.scenarios)}")
    for place in found.places:
        what = f"{place.filesystem} at {place.mount}, " if place.mount else ""
        space = f"{place.needed / 1e6:,.0f} MB of {place.free / 1e6:,.0f} MB free" if place.needed else ""
        print(f"{place.name}: {place.where or 'a temporary directory'}: {place.problem or what + space}".rstrip(": "))
    for warning in found.warnings:
        print(f"note: {warning}")


def _report_options(title: str, note: str, published: bool, cost: list[str] | None) -> ReportOptions:
    from pydantic import ValidationError

    from sluice_s3.loadtests.compare.plan import PlanError
    from sluice_s3.loadtests.report.cost.examples import EXAMPLES
    from sluice_s3.loadtests.report.cost.prices import parse_costs
    from sluice_s3.loadtests.report.options import ReportOptions

    try:
        return ReportOptions(title=title, note=note, published=published, prices=parse_costs(cost or (), EXAMPLES))
    except PlanError as error:
        fail(str(error), 2)
    except ValidationError as error:
        first = error.errors()[0]
        fail(f"--{first['loc'][0]}: {first['msg']}", 2)


def _play(run: Run, bar: Bar | JsonLines, options: ReportOptions) -> None:
    from sluice_s3.loadtests.compare.preview import look_around

    run.meta["warnings"] = look_around(run.plan)
    for warning in run.meta["warnings"]:
        bar.print_line(f"note: {warning}")
    with bar.of(run.seconds_left(), max(0.0, run.deadline.left()) if run.deadline.seconds else 0.0):
        run.go()
    written = import_module("sluice_s3.loadtests.report").write_report(run.directory, options)
    if hasattr(bar, "show_verdict"):
        report = json.loads((run.directory / "report.json").read_text(encoding="utf-8"))
        bar.show_verdict(run.meta["state"], report["partial"], run.plan.repeats, report["verdict"]["headline"])
    else:
        print(written)
        if run.deadline.seconds:
            print(f"the whole command took {run.deadline.took():.0f} s of {run.deadline.seconds:.0f} s")
        print(f"{run.meta['state']}: {run.directory}")
    if run.meta["state"] != "complete":
        raise typer.Exit(PARTIAL)


def _usual() -> tuple[str, ...]:
    """Return the default stores."""
    from sluice_s3.loadtests.compare.stores import can_mount

    if can_mount():
        return STORES
    typer.echo("sluice: FUSE cannot be used here: only the local disk is measured", err=True)
    return STORES[:1]


def _name(name: str) -> str:
    from sluice_s3.loadtests.compare.plan import PlanError

    if not name:
        return time.strftime("%Y%m%d-%H%M%S")
    if not all(one.isascii() and (one.isalnum() or one in "._-") for one in name) or name.startswith("."):
        raise PlanError(f"{name!r}: the name of a run has letters, digits, dots, dashes and underscores")
    return name


def _endpoint_keys() -> Keys:
    """Return the keys of endpoints, from AWS's variables."""
    from sluice_s3.loadtests.common.targets import Keys

    given = [os.environ.get(f"AWS_{one}", "") for one in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")]
    return Keys(given[0], given[1], _region(), session_token=given[2])


def _region() -> str:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
