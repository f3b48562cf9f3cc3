"""`sluice fsck`: reconciles index and store both ways."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli_common import ConfigOption, DataOption, IndexOption, JsonOption, fail, load_settings
from app.errors import DomainError
from app.settings import Settings
from storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from app.jobs.fsck import Report


def fsck_command(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Take away blobs that no row holds; count dead bytes anew.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare index and store both ways; may run beside a server.

    Exit codes: 0 nothing is wrong (or all mended), 1 fsck could not run, 4 blobs that no row holds were found,
    8 a row's blob is missing, short or miscounted (restore it from a backup), too much of a pack is counted dead, or a
    key has not exactly one newest version (--repair sets these two right).
    """
    from app.startup import CannotStart

    settings = load_settings(data=data, config=config, index=index)
    try:
        report = asyncio.run(_run(settings, repair))
    except (DomainError, DriverError, CannotStart, OSError) as error:
        fail(f"fsck could not run: {error}")
    if as_json:
        print(json.dumps({**asdict(report), "clean": report.clean}))
    else:
        _print(report)
    if report.missing or report.short or report.miscounted or report.overcounted or report.newest:
        raise typer.Exit(8)
    if not report.clean:
        raise typer.Exit(4)


async def _run(settings: Settings, repair: bool) -> Report:
    from app.jobs.fsck import Report, fsck
    from app.startup import opened

    async with opened(settings) as store:
        report = Report()
        for one in store.all.values():
            report.add(await fsck(one, repair=repair))
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
        print(f"{'removed ' if report.repaired else 'orphan  '} {locator}")
    print("clean" if report.clean else "NOT CLEAN")
