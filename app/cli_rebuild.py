"""`sluice rebuild`: makes the index anew from the data alone."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli_common import ConfigOption, DataOption, IndexOption, JsonOption, fail, load_settings, progress_bar
from app.errors import DomainError
from app.settings import Settings
from storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from app.jobs.rebuild import Rebuild, Report


def rebuild_command(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    replace: Annotated[bool, typer.Option("--replace", help="Move an index that is there aside.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be restored.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make the index anew from the data: journals, packs and files. No server may run.

    Exit codes: 0 everything that was decided is restored, and nothing else was found; 1 it could not be done; 4 some
    writes whose outcome is not known were left out (listed); 8 decided data is missing or damaged (listed).
    """
    import apsw

    from app.jobs.rebuild import Rebuild
    from app.store.offline import open_all

    settings = load_settings(data=data, config=config, index=index)
    if settings.index_url is not None:
        fail(
            "an index in Postgres is made anew in two steps: --index sqlite:///FILE makes it in SQLite, and "
            "`sluice index copy` takes that to Postgres"
        )
    if settings.index_path.exists() and not (replace or dry_run):
        fail(f"there is an index at {settings.index_path}: give --replace to move it aside")
    try:
        with (
            _no_server(settings),
            _progress() as progress,
            Rebuild(
                open_all(settings), settings.index_path, commit_timeout=settings.commit_timeout, progress=progress
            ) as work,
        ):
            report = work.run()
            bad = _print(report, work, as_json)
            if not dry_run:
                old = work.install(replace=replace)
                if old is not None and not as_json:
                    print(f"the index that was there is now {old}")
    except (DomainError, DriverError, OSError, apsw.Error, BlockingIOError) as error:
        fail(f"the index could not be rebuilt: {error}")
    if not report.whole or bad:
        raise typer.Exit(8)
    if report.counts["not_restored"]:
        raise typer.Exit(4)


@contextmanager
def _no_server(settings: Settings) -> Iterator[None]:
    """Hold what a server holds while it runs."""
    from app.server.lock import take

    settings.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = take(settings.run_dir)
    if lock is None:
        raise DriverError("a server runs on this directory")
    with closing(lock):
        yield


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    with progress_bar() as bar:
        tasks: dict[str, Any] = {}

        def tell(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=None)
            bar.update(tasks[what], completed=done, total=total or None)

        yield tell


def _print(report: Report, work: Rebuild, as_json: bool) -> bool:
    """Print all of it, one row at a time; whether data that was decided is among what was not restored."""
    if as_json:
        head = json.dumps({**asdict(report), "whole": report.whole})
        print(f'{head[:-1]}, "not_restored": [', end="")
        bad = _print_rows(work.lost())
        print('], "superseded": [', end="")
        _print_rows(work.lost(superseded=True))
        print("]}")
        return bad
    _print_counts(report)
    bad = False
    for bucket, key, size, at, reason in work.lost():
        bad = bad or reason.startswith(DECIDED)
        when = datetime.fromtimestamp(at / 1000, UTC).strftime("%F %T")
        print(f"NOT RESTORED  {bucket}/{key}  {size} bytes of {when}: {reason}")
    return bad


def _print_rows(rows: Iterator[tuple[str, str, int, int, str]]) -> bool:
    bad = False
    for number, (bucket, key, size, at, reason) in enumerate(rows):
        bad = bad or reason.startswith(DECIDED)
        row = {"bucket": bucket, "key": key, "size": size, "at": at, "reason": reason}
        print("," if number else "", json.dumps(row), sep="", end="")
    return bad


DECIDED = ("its blob ", "a blob of it", "a part of it", "what it is made of")
"""How reasons begin that are not about claims without a decision."""


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
