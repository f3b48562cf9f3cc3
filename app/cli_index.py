"""`sluice migrate` and `sluice index …`: the tables of an index, and an index copied to another engine."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli_common import ConfigOption, DataOption, IndexOption, fail, load_settings
from app.errors import DomainError
from app.settings import is_index_url

if TYPE_CHECKING:
    from app.index.copying import Held

indexes = typer.Typer(name="index", help="The index itself: copies, comparisons.", no_args_is_help=True)

From = Annotated[str, typer.Argument(metavar="FROM", help="URL of an index: sqlite:////FILE or postgresql://…")]
To = Annotated[str, typer.Argument(metavar="TO", help="URL of another.")]


def migrate_command(data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Make the tables of the index, or bring them to this version. `sluice serve` does it too; gateways that are
    started together do it once."""
    from app.index import open_index

    settings = load_settings(data=data, config=config, index=index)

    async def run() -> None:
        opened = open_index(settings, writer=False)
        await opened.start(migrate=True)
        await opened.close()

    try:
        settings.run_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        asyncio.run(run())
    except (DomainError, OSError) as error:
        fail(f"the index cannot be migrated: {error}")


@indexes.command()
def copy(source: From, target: To) -> None:
    """Copy an index to another one, which must be empty, and compare them. No gateway may run.

    Exit codes: 0 both hold the same; 1 it could not be done; 8 they differ, because the first was changed meanwhile.
    """
    _check(source, target)
    _run(_copy(source, target))


@indexes.command()
def compare(source: From, target: To) -> None:
    """Compare two indexes, each in one state of it: counts and a hash of every table. Exit code 8 when they differ."""
    _check(source, target)
    _run(_compare(source, target))


def _check(*urls: str) -> None:
    for url in urls:
        if not is_index_url(url):
            fail("FROM and TO must be sqlite:////FILE or postgresql://…", 2)


def _run(work: Coroutine[object, object, bool]) -> None:
    import apsw

    try:
        same = asyncio.run(work)
    except (DomainError, apsw.Error, OSError) as error:
        fail(f"it could not be done: {error}")
    if not same:
        fail("they differ", 8)


async def _copy(source: str, target: str) -> bool:
    from app.index import copying

    async with copying.opened(source) as one, copying.opened(target, write=True) as other:
        before = await one.position()
        read = await copying.copy(one, other, _progress)
    async with copying.opened(source) as one, copying.opened(target) as other:
        if await one.position() != before:
            print("sluice: the index was changed while it was copied: stop its gateways", file=sys.stderr)
        written = {name: found for name, (_, found) in (await copying.compare(one, other)).items()}
        return _show({name: (read[name], written[name]) for name in read}) and await one.position() == before


async def _compare(source: str, target: str) -> bool:
    from app.index import copying

    async with copying.opened(source) as one, copying.opened(target) as other:
        return _show(await copying.compare(one, other))


def _show(tables: dict[str, tuple[Held, Held]]) -> bool:
    for name, (one, other) in tables.items():
        told = "same" if one == other else f"DIFFERS, {other.rows} rows {other.hash}"
        print(f"{name:<14} {one.rows:>10} rows  {one.hash}  {told}")
    return all(one == other for one, other in tables.values())


def _progress(table: str, rows: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{table}: {rows}", end="", file=sys.stderr)
