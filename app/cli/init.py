"""`sluice init …`: an init file, applied or compared. Works beside a running server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, fail, load_settings
from sluice_s3.app.errors import DomainError, describe
from sluice_s3.app.settings import Settings

if TYPE_CHECKING:
    from sluice_s3.app.init_file.changes import Change

init = typer.Typer(name="init", help="Accounts, users, policies, keys and buckets from a file.", no_args_is_help=True)

FileOption = Annotated[Path | None, typer.Option("--file", help="The init file [env SLUICE_INIT_FILE].")]


@init.command()
def apply(
    file: FileOption = None, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None
) -> None:
    """Make what the file says and is not there; print each change.

    Nothing is deleted: what the file does not name stays as it is.

    Exit codes: 0 done, 1 it failed, 2 the settings are wrong.
    """
    settings, file = _settings(file, data, config, index)
    for change in asyncio.run(_run(settings, file, write=True)):
        print(f"{change.where} {change.what}: applied")


@init.command()
def check(
    file: FileOption = None, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None
) -> None:
    """Print how the index differs from the file, and change nothing.

    Exit codes: 0 no difference, 1 there is one, 2 the file or the settings cannot be used.
    """
    settings, file = _settings(file, data, config, index)
    changes = asyncio.run(_run(settings, file, write=False))
    for change in changes:
        print(f"{change.where} {change.what}")
    if changes:
        raise typer.Exit(1)


def _settings(file: Path | None, data: Path | None, config: Path | None, index: str | None) -> tuple[Settings, Path]:
    settings = load_settings(data=data, config=config, index=index, init_file=file)
    if settings.init_file is None:
        fail("give --file, or the setting init_file", 2)
    return settings, settings.init_file


async def _run(settings: Settings, file: Path, *, write: bool) -> list[Change]:
    from sluice_s3.app.init_file.apply import apply_document, compare_document
    from sluice_s3.app.init_file.changes import InitError
    from sluice_s3.app.init_file.document import read_init_file
    from sluice_s3.app.startup import CannotStart, open_store

    code = 1 if write else 2
    try:
        document = read_init_file(file)
        async with open_store(settings) as store:
            return await (apply_document if write else compare_document)(settings, store, document, file)
    except (InitError, CannotStart) as error:
        fail(str(error), code)
    except (DomainError, OSError) as error:
        fail(f"the index cannot be used: {describe(error)}", code)
