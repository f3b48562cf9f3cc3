"""`sluice migrate` and `sluice index …`: tables of an index, and copies to another engine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, fail, load_settings, require_postgres
from sluice_s3.app.errors import DomainError, describe
from sluice_s3.app.private_files import make_directory
from sluice_s3.app.settings import is_index_url

if TYPE_CHECKING:
    from sluice_s3.app.index.tools.copy import TableDigest

indexes = typer.Typer(name="index", help="The index itself: copies, comparisons.", no_args_is_help=True)

From = Annotated[str, typer.Argument(metavar="FROM", help="URL of an index: sqlite:////FILE or postgresql://…")]
To = Annotated[str, typer.Argument(metavar="TO", help="URL of another.")]


def migrate_command(data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Create the tables of the index, or migrate them to this version.

    `sluice serve` does it too; gateways that start together do it once.
    """
    from sluice_s3.app.index import open_index

    settings = load_settings(data=data, config=config, index=index)

    async def run() -> None:
        opened = open_index(settings, writer=False)
        await opened.start(migrate=True)
        await opened.close()

    try:
        make_directory(settings.run_dir)
        asyncio.run(run())
    except (DomainError, OSError) as error:
        fail(f"the index cannot be migrated: {describe(error)}")


@indexes.command()
def copy(source: From, target: To) -> None:
    """Copy an index to another one, which must be empty, and compare them.

    No gateway may run.

    Exit codes: 0 both have the same rows; 1 it failed; 8 they differ, because the first changed meanwhile.
    """
    _check(source, target)
    _run(_copy(source, target))


@indexes.command()
def compare(source: From, target: To) -> None:
    """Compare two indexes: counts and a hash of every table.

    Each is read in one state.

    Exit code 8 when they differ.
    """
    _check(source, target)
    _run(_compare(source, target))


def _check(*urls: str) -> None:
    for url in urls:
        if not is_index_url(url):
            fail("FROM and TO must be sqlite:////FILE or postgresql://…", 2)
        if not url.startswith("sqlite:"):
            require_postgres()


def _run(work: Coroutine[object, object, bool]) -> None:
    import apsw

    try:
        same = asyncio.run(work)
    except (DomainError, apsw.Error, OSError) as error:
        fail(f"it could not be done: {describe(error)}")
    if not same:
        fail("they differ", 8)


async def _copy(source: str, target: str) -> bool:
    from sluice_s3.app.index.tools import copy

    async with copy.open_endpoint(source) as one, copy.open_endpoint(target, write=True) as other:
        before = await one.position()
        read = await copy.copy(one, other, _progress)
    async with copy.open_endpoint(source) as one, copy.open_endpoint(target) as other:
        if await one.position() != before:
            print("sluice: the index was changed while it was copied: stop its gateways", file=sys.stderr)
        written = {name: found for name, (_, found) in (await copy.compare(one, other)).items()}
        return _show({name: (read[name], written[name]) for name in read}) and await one.position() == before


async def _compare(source: str, target: str) -> bool:
    from sluice_s3.app.index.tools import copy

    async with copy.open_endpoint(source) as one, copy.open_endpoint(target) as other:
        return _show(await copy.compare(one, other))


def _show(tables: dict[str, tuple[TableDigest, TableDigest]]) -> bool:
    for name, (one, other) in tables.items():
        comparison = "same" if one == other else f"DIFFERS, {other.rows} rows {other.hash}"
        print(f"{name:<14} {one.rows:>10} rows  {one.hash}  {comparison}")
    return all(one == other for one, other in tables.values())


def _progress(table: str, rows: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{table}: {rows}", end="", file=sys.stderr)
