"""`sluice key …`: the key ring, whose keys encrypt objects. Works beside a running server."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli_common import ConfigOption, DataOption, IndexOption, JsonOption, fail, load_settings
from app.errors import ConditionalRequestConflict, DomainError
from app.settings import Settings

if TYPE_CHECKING:
    from app.encryption.ring import KeyRing

keys = typer.Typer(name="key", help="The key ring.", no_args_is_help=True)

KeyArgument = Annotated[str, typer.Argument(help="Name of the key.")]


@keys.command("new-master")
def new_master() -> None:
    """Print a new master key, to be kept where the settings find it (and somewhere else, too).

    Whoever loses it loses every object that is encrypted with a key of the ring.
    """
    from app.encryption import master

    print(master.new_master())


@keys.command("list")
def list_keys(
    data: DataOption = None, config: ConfigOption = None, index: IndexOption = None, as_json: JsonOption = False
) -> None:
    """List the keys: how many versions each has, when the last was made, and whether it is disabled."""
    ring = _run(load_settings(data=data, config=config, index=index), None)
    shown = [
        {
            "key": key.id,
            "versions": len(key.versions),
            "rotated": _time(key.versions[-1].created),
            "disabled": key.disabled,
        }
        for key in ring.keys.values()
    ]
    if as_json:
        print(json.dumps(shown))
        return
    for one in shown:
        print(
            f"{one['key']}  versions {one['versions']}  rotated {one['rotated']}{'  disabled' * bool(one['disabled'])}"
        )


@keys.command()
def create(key: KeyArgument, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Make a key for SSE-KMS."""
    _run(load_settings(data=data, config=config, index=index), lambda ring: ring.created(key, _now()))


@keys.command()
def rotate(key: KeyArgument, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Give a key a new secret, for what is written from now on. What is there stays as it is, and readable.

    `sse-s3` is the key of SSE-S3, `aws-s3` the one of SSE-KMS when a request names none.
    """
    _run(load_settings(data=data, config=config, index=index), lambda ring: ring.rotated(key, _now()))


@keys.command()
def disable(key: KeyArgument, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Refuse to encrypt and to decrypt with a key, until it is enabled again."""
    _run(load_settings(data=data, config=config, index=index), lambda ring: ring.switched(key, disabled=True))


@keys.command()
def enable(key: KeyArgument, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Let a key be used again."""
    _run(load_settings(data=data, config=config, index=index), lambda ring: ring.switched(key, disabled=False))


@keys.command()
def reseal(
    new_master_key_file: Annotated[Path, typer.Argument(help="File that holds the new master key.")],
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
) -> None:
    """Seal the ring by another master key. Servers go on, and want the new one at their next start."""
    from app.encryption.master import read_file
    from app.encryption.ring import KeyRing, RingError

    settings = load_settings(data=data, config=config, index=index)
    try:
        sealer = read_file(new_master_key_file)
    except RingError as error:
        fail(str(error))
    _run(settings, lambda ring: KeyRing(ring.number + 1, ring.keys.values()), sealer)


def _run(settings: Settings, change: Callable[[KeyRing], KeyRing] | None, sealer: bytes = b"") -> KeyRing:
    from app.encryption.ring import RingError

    try:
        return asyncio.run(_change(settings, change, sealer))
    except RingError as error:
        fail(str(error))
    except ConditionalRequestConflict:
        fail("another command changed the key ring at the same moment: try again")
    except (DomainError, OSError) as error:
        fail(f"the index cannot be used: {type(error).__name__} {error}")


async def _change(settings: Settings, change: Callable[[KeyRing], KeyRing] | None, sealer: bytes) -> KeyRing:
    from app.encryption.master import read_master
    from app.encryption.ring import open_ring
    from app.index import open_index
    from app.store.keyring import NO_RING, change_ring, ring_text

    if settings.index_is_missing:
        fail("there is no index here")
    master = read_master(settings)
    index = open_index(settings, writer=False)
    await index.start()
    try:
        if change is not None:
            return await change_ring(index, master, change, sealer)
        text = await ring_text(index)
        if not text:
            fail(NO_RING)
        return open_ring(text, master)
    finally:
        await index.close()


def _now() -> int:
    return time.time_ns() // 1_000_000


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
