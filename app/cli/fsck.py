"""`sluice fsck`: compares index and store in both directions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import (
    ConfigOption,
    DataOption,
    IndexOption,
    JsonOption,
    fail,
    load_settings,
    progress_lines,
)
from sluice_s3.app.errors import DomainError, describe
from sluice_s3.app.settings import Settings
from sluice_s3.storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from sluice_s3.app.jobs.integrity.fsck import Report


def fsck_command(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Put blobs that no row holds into quarantine for 7 days; recount dead bytes."),
    ] = False,
    as_json: JsonOption = False,
    with_progress: Annotated[
        bool,
        typer.Option("--progress", help="First print how many rows and blobs were looked at, a JSON line each second."),
    ] = False,
) -> None:
    """Compare index and store in both directions; may run beside a server.

    Exit codes: 0 nothing is wrong (or everything is repaired), 1 fsck could not run, 4 blobs without a row were found
    (those that the journals name stay in any case), 8 a row's blob is missing, short or miscounted (restore it from a
    backup), too much of a pack is counted dead, or a key has not exactly one newest version (--repair corrects these
    two).
    """
    from sluice_s3.app.startup import CannotStart

    settings = load_settings(data=data, config=config, index=index)
    print_line = progress_lines() if with_progress else lambda _: None
    try:
        report = asyncio.run(_run(settings, repair, lambda count: print_line({"looked": count})))
    except (DomainError, DriverError, CannotStart, OSError) as error:
        fail(f"fsck could not run: {describe(error)}")
    if as_json:
        print(json.dumps({**asdict(report), "clean": report.clean}))
    else:
        _print(report)
    if report.damaged:
        raise typer.Exit(8)
    if not report.clean:
        raise typer.Exit(4)


async def _run(settings: Settings, repair: bool, looked: Callable[[int], None]) -> Report:
    from sluice_s3.app.jobs.integrity.fsck import Report, fsck
    from sluice_s3.app.startup import open_store

    async with open_store(settings) as store:
        report = Report()
        for one in store.all.values():
            before = report.rows + report.blobs

            def progress(found: Report, before: int = before) -> None:
                looked(before + found.rows + found.blobs)

            report.add(await fsck(one, repair=repair, progress=progress))
        return report


def _print(report: Report) -> None:
    print(f"{report.rows} rows, {report.blobs} blobs, {report.bytes} bytes")
    for fact in report.missing:
        print(f"MISSING  {fact['locator']}  {fact['kind']} of {fact['bucket']}/{fact['key']}")
    for fact in report.short:
        print(f"SHORT    {fact['locator']}  {fact['size']} of {fact['needed']} bytes, {fact['bucket']}/{fact['key']}")
    for fact in report.miscounted:
        print(f"COUNT    {fact['body']}  kept {fact['kept']}, true {fact['true']}")
    for wrong in report.overcounted:
        print(f"DEAD     pack {wrong['pack']:x}  counted {wrong['counted']}, true {wrong['true']}")
    for fact in report.newest:
        print(f"NEWEST   {fact['bucket']}/{fact['key']}  not exactly one version is its newest")
    if report.reordered:
        print(f"{report.reordered} keys have the newest version again that was made last")
    if report.uncounted:
        print(f"{report.uncounted} dead bytes of packs {'are counted now' if report.recounted else 'are not counted'}")
    for locator in report.orphans:
        print(f"{'quarantined' if report.repaired else 'orphan     '} {locator}")
    for locator in report.unaccounted:
        print(f"KEPT     {locator}  no row holds it, but the journals name it, or the index never drew its id")
    print("clean" if report.clean else "NOT CLEAN")
