"""`sluice rebuild`: builds a new index from the data alone."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sluice_s3.app.cli.common import (
    ConfigOption,
    DataOption,
    IndexOption,
    JsonOption,
    fail,
    load_settings,
    progress_bar,
    progress_lines,
)
from sluice_s3.app.errors import DomainError, describe
from sluice_s3.app.private_files import make_directory
from sluice_s3.app.settings import Settings
from sluice_s3.storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from sluice_s3.app.jobs.journals.rebuild import Rebuild
    from sluice_s3.app.jobs.journals.rebuild_source import Report

ShowProgress = Callable[[str, int, int], None]
"""Called with the step, how much of it is done, and of how much (0: not known)."""
ProgressDisplay = AbstractContextManager[ShowProgress]
NOT_RESTORED = 4
"""Exit code: some writes of unknown outcome were left out."""


def rebuild_command(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    replace: Annotated[bool, typer.Option("--replace", help="Move an index that is there aside.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only say what would be restored; where there is an index, beside a server."),
    ] = False,
    as_json: JsonOption = False,
    with_progress: Annotated[
        bool, typer.Option("--progress", help="First print how far it is, a JSON line each second.")
    ] = False,
) -> None:
    """Build a new index from the data: journals, packs and files.

    No server may run. A dry run beside one reads what is there while it writes, and holds the removal of data, as a
    backup does.

    Exit codes: 0 everything journaled is restored, and nothing else was found; 1 it failed; 4 some writes of unknown
    outcome were left out (listed); 8 journaled data is missing or damaged (listed).
    """
    import apsw

    settings = load_settings(data=data, config=config, index=index)
    is_beside = dry_run and not settings.index_is_missing
    if settings.index_url is not None and not dry_run:
        fail(
            "an index in Postgres is rebuilt in two steps: --index sqlite:///FILE makes it in SQLite, and "
            "`sluice index copy` takes that to Postgres"
        )
    replace = replace or (not dry_run and _is_left_by_a_start(settings.index_path))
    if settings.index_path.exists() and not (replace or dry_run):
        fail(f"there is an index at {settings.index_path}: give --replace to move it aside")
    progress = _show_lines() if with_progress else show_progress()
    try:
        if is_beside:
            code = asyncio.run(_try_beside_server(settings, progress, as_json))
        else:
            with without_server(settings), progress as show, _open_rebuild(settings, show) as work:
                install = None if dry_run else partial(work.install, replace=replace)
                code = run_and_report(work, install, as_json, replaced="the index that was there")
    except (DomainError, DriverError, OSError, apsw.Error, BlockingIOError) as error:
        fail(f"the index could not be rebuilt: {describe(error)}")
    raise typer.Exit(code)


def _open_rebuild(settings: Settings, show: ShowProgress, *, is_beside: bool = False) -> Rebuild:
    from sluice_s3.app.jobs.journals.rebuild import Rebuild
    from sluice_s3.app.store.offline import open_offline_stores

    path = settings.run_dir / "dry-run" / "sluice.db" if is_beside else settings.index_path
    stores = open_offline_stores(settings, alone=not is_beside)
    return Rebuild(stores, path, progress=show)


async def _try_beside_server(settings: Settings, progress: ProgressDisplay, as_json: bool) -> int:
    """Run a dry run while the removal of data is held; return the exit code."""
    from sluice_s3.app.index.tools.hold import hold_removals

    def try_rebuild() -> int:
        with progress as show, _open_rebuild(settings, show, is_beside=True) as work:
            return run_and_report(work, None, as_json, replaced="")

    async with hold_removals(settings.run_dir, settings.index_url) as still_held:
        code = await asyncio.to_thread(try_rebuild)
        await still_held()
    return code


def _is_left_by_a_start(path: Path) -> bool:
    """Return whether there is an index that a start made before it refused data without an index."""
    from sluice_s3.app.index.sqlite.migrate import was_never_served

    try:
        return path.exists() and was_never_served(path)
    except DomainError:
        return False


def run_and_report(work: Rebuild, install: Callable[[], Path | None] | None, as_json: bool, *, replaced: str) -> int:
    """Run a rebuild, print its report and install its index, unless `install` is None; return the exit code.

    `replaced` names the index that was moved aside.
    """
    report = work.run()
    bad = _print_report(report, work, as_json)
    old = install() if install is not None else None
    if old is not None and not as_json:
        print(f"{replaced} is now {old}")
    if not report.whole or bad:
        return 8
    return NOT_RESTORED if report.counts["not_restored"] else 0


@contextmanager
def without_server(settings: Settings) -> Iterator[None]:
    """Hold the locks of a server."""
    from sluice_s3.app.server.processes.instance_lock import acquire

    make_directory(settings.run_dir)
    lock = acquire(settings.run_dir)
    if lock is None:
        raise DriverError("a server runs on this directory")
    with closing(lock):
        yield


@contextmanager
def show_progress() -> Iterator[ShowProgress]:
    """Show a progress bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    with progress_bar() as bar:
        tasks: dict[str, Any] = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=None)
            bar.update(tasks[what], completed=done, total=total or None)

        yield update


@contextmanager
def _show_lines() -> Iterator[ShowProgress]:
    """Print the progress as lines of JSON."""
    print_line = progress_lines()
    yield lambda what, done, total: print_line({"what": what, "done": done, "total": total})


def _print_report(report: Report, work: Rebuild, as_json: bool) -> bool:
    """Print the whole report; return whether journaled data was not restored."""
    if as_json:
        head = json.dumps({**asdict(report), "whole": report.whole})
        print(f'{head[:-1]}, "not_restored": [', end="")
        bad = _print_rows(work.find_lost())
        print('], "superseded": [', end="")
        _print_rows(work.find_lost(superseded=True))
        print("]}")
        return bad
    _print_counts(report)
    bad = False
    for bucket, key, size, at, reason in work.find_lost():
        bad = bad or reason.startswith(CONFIRMED_LOSS)
        when = datetime.fromtimestamp(at / 1000, UTC).strftime("%F %T")
        print(f"NOT RESTORED  {bucket}/{key}  {size} bytes of {when}: {reason}")
    return bad


def _print_rows(rows: Iterator[tuple[str, str, int, int, str]]) -> bool:
    bad = False
    for number, (bucket, key, size, at, reason) in enumerate(rows):
        bad = bad or reason.startswith(CONFIRMED_LOSS)
        row = {"bucket": bucket, "key": key, "size": size, "at": at, "reason": reason}
        print("," if number else "", json.dumps(row), sep="", end="")
    return bad


CONFIRMED_LOSS = ("its blob ", "a blob of it", "a part of it", "what it is made of")
"""Prefixes of the reasons that concern journaled data."""


def _print_counts(report: Report) -> None:
    for name, count in {
        "journals": report.journals,
        "records": report.records,
        "files": report.files,
        "unreadable files": report.unreadable_files,
    }.items():
        print(f"{name:>20} {count}")
    for name, count in report.counts.items():
        print(f"{name.replace('_', ' '):>20} {count}")
    decided = datetime.fromtimestamp(report.decided_at / 1000, UTC).strftime("%F %T.%f")[:-3]
    print(f"decided until {decided} UTC; {report.restored_claims} later writes restored by their claims")
    for text in report.damage:
        print(f"DAMAGED  {text}")
    if report.damage:
        print("what no row holds stays in its packs, for another rebuild, until `sluice fsck --repair`")
