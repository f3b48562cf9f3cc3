"""`sluice recover`: brings an older index up to date with the journals beside the data."""

from __future__ import annotations

from typing import Annotated

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, JsonOption, fail, load_settings
from sluice_s3.app.cli.rebuild import run_and_report, show_progress, without_server
from sluice_s3.app.errors import DomainError, describe
from sluice_s3.storage_drivers.errors import DriverError


def recover_command(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be restored.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring an index that is older than its data (a backup) up to date.

    Applies the journal records beyond it. No server may run.

    Exit codes: 0 the index has everything journaled; 1 it failed; 4 some writes of unknown outcome were left out
    (listed); 8 journaled data is missing or damaged (listed).
    """
    import apsw

    from sluice_s3.app.jobs.journals.recover import open_recovery

    settings = load_settings(data=data, config=config, index=index)
    if settings.index_is_missing:
        fail(f"there is no index at {settings.index_path}: `sluice rebuild` makes one from the data")
    try:
        with without_server(settings), show_progress() as progress, open_recovery(settings, progress) as work:
            install = None if dry_run else work.replace_base
            code = run_and_report(work, install, as_json, replaced="the older index")
    except (DomainError, DriverError, OSError, apsw.Error, BlockingIOError) as error:
        fail(f"the index could not be brought up to date: {describe(error)}")
    raise typer.Exit(code)
