"""`sluice scrub`: reads everything again and reports damage."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, JsonOption, fail, load_settings
from sluice_s3.app.errors import DomainError, describe
from sluice_s3.app.settings import Settings
from sluice_s3.storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from sluice_s3.app.jobs.integrity.scrub import Report


def scrub_command(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    rate: Annotated[int, typer.Option(min=0, help="Bytes a second; 0: as fast as it goes.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Read every live blob again and compare it with its checks and its row.

    May run beside a server. Damaged blobs go into quarantine (503 at once), blobs that are whole again leave it. Exit
    codes: 0 nothing is damaged, 1 it could not run, 8 something is.
    """
    from sluice_s3.app.startup import CannotStart

    settings = load_settings(data=data, config=config, index=index)
    try:
        report = asyncio.run(_run(settings, rate))
    except (DomainError, DriverError, CannotStart, OSError) as error:
        fail(f"scrub could not run: {describe(error)}")
    if as_json:
        print(json.dumps({**asdict(report), "clean": report.clean}))
    else:
        _print(report)
    if not report.clean:
        raise typer.Exit(8)


async def _run(settings: Settings, rate: int) -> Report:
    from rich.console import Console
    from rich.status import Status

    from sluice_s3.app.jobs.integrity.scrub import Report, Scrubber
    from sluice_s3.app.startup import open_store

    async with open_store(settings) as store:
        with Status("reading", console=Console(stderr=True)) if sys.stderr.isatty() else nullcontext() as status:

            def progress(report: Report) -> None:
                if status is not None:
                    status.update(f"{report.blobs} blobs, {report.bytes >> 20} MiB, {len(report.damaged)} damaged")

            report = Report()
            for one in store.all.values():
                report.add(await Scrubber(one, rate).run_once(progress=progress))
            return report


def _print(report: Report) -> None:
    print(f"{report.rows} rows, {report.blobs} blobs, {report.bytes} bytes")
    for fact in report.damaged:
        print(f"DAMAGED  {fact['locator']}  {fact['bucket']}/{fact['key']}: {fact['reason']}")
    for journal in report.damaged_journals:
        print(f"DAMAGED  journal {journal}: a running server writes it again when its scrubber finds it")
    for locator in report.healed:
        print(f"healed   {locator}")
    print("clean" if report.clean else "NOT CLEAN")
