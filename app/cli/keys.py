"""`sluice key …`: the key ring, whose keys encrypt objects.

Works beside a running server.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, JsonOption, fail, load_settings
from sluice_s3.app.cli.opened_index import require_index, run_with_index
from sluice_s3.app.errors import ConditionalRequestConflict
from sluice_s3.app.settings import Settings

if TYPE_CHECKING:
    from sluice_s3.app.encryption.keyring import KeyRing
    from sluice_s3.app.index import Index

keys = typer.Typer(name="key", help="The key ring.", no_args_is_help=True)

KeyArgument = Annotated[str, typer.Argument(help="Name of the key.")]


@keys.command("new-master")
def new_master() -> None:
    """Print a new master key.

    Store it where the settings find it, and in a second place. Without it, every object encrypted with a key of the
    ring is lost.
    """
    from sluice_s3.app.encryption import master_key

    print(master_key.new_master())


@keys.command("list")
def list_keys(
    data: DataOption = None, config: ConfigOption = None, index: IndexOption = None, as_json: JsonOption = False
) -> None:
    """List the keys: their versions, when the last was created, and whether each is disabled."""
    ring = _run(load_settings(data=data, config=config, index=index), None)
    rows = [
        {
            "key": key.id,
            "versions": len(key.versions),
            "rotated": _time(key.versions[-1].created),
            "disabled": key.disabled,
        }
        for key in ring.keys.values()
    ]
    if as_json:
        print(json.dumps(rows))
        return
    for one in rows:
        print(
            f"{one['key']}  versions {one['versions']}  rotated {one['rotated']}{'  disabled' * bool(one['disabled'])}"
        )


@keys.command()
def create(key: KeyArgument, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Create a key for SSE-KMS."""
    _run(load_settings(data=data, config=config, index=index), lambda ring: ring.with_new_key(key, _now()))


@keys.command()
def rotate(key: KeyArgument, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Give a key a new secret for new objects.

    Existing objects stay as they are, and readable. `sse-s3` is the key of SSE-S3, `aws-s3` the one of SSE-KMS when a
    request names none.
    """
    _run(load_settings(data=data, config=config, index=index), lambda ring: ring.with_new_version(key, _now()))


@keys.command()
def disable(key: KeyArgument, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Refuse to encrypt and to decrypt with a key, until it is enabled again."""
    _run(load_settings(data=data, config=config, index=index), lambda ring: ring.with_key_state(key, disabled=True))


@keys.command()
def enable(key: KeyArgument, data: DataOption = None, config: ConfigOption = None, index: IndexOption = None) -> None:
    """Enable a key again."""
    _run(load_settings(data=data, config=config, index=index), lambda ring: ring.with_key_state(key, disabled=False))


@keys.command()
def reseal(
    new_master_key_file: Annotated[Path, typer.Argument(help="File that holds the new master key.")],
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
) -> None:
    """Seal the ring with another master key, which servers need at their next start.

    Running servers continue. The old key stays where it is: a ring that `sluice rebuild` restores may be sealed by it
    until a server has run with the new one.
    """
    from sluice_s3.app.encryption.keyring import KeyRing, RingError
    from sluice_s3.app.encryption.master_key import automatic_file, read_file

    settings = load_settings(data=data, config=config, index=index)
    try:
        sealer = read_file(new_master_key_file)
    except RingError as error:
        fail(str(error))
    _run(settings, lambda ring: KeyRing(ring.number + 1, ring.keys.values()), sealer)
    print(f"the next start of every server wants SLUICE_MASTER_KEY_FILE={new_master_key_file.absolute()}")
    if automatic_file(settings).exists():
        print(f"{automatic_file(settings)} may go once a server has run with that")


@keys.command("new-ring")
def new_ring(
    give_up: Annotated[
        bool, typer.Option("--give-up-encrypted", help="Objects that are encrypted now are lost: say so.")
    ] = False,
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
) -> None:
    """Replace a ring whose master key is lost.

    What was encrypted with the old ring stays unreadable. Without a configured master key, one is created as at a first
    start.
    """
    from sluice_s3.app.encryption.keyring import RingError
    from sluice_s3.app.store.encryption.keyring import renew_ring

    if not give_up:
        fail("every object that is encrypted with a key of the ring is lost then: give --give-up-encrypted", 2)
    settings = load_settings(data=data, config=config, index=index)
    try:
        run_with_index(settings, lambda opened: renew_ring(opened, settings))
    except RingError as error:
        fail(f"there is no new key ring: {error}")


def _run(settings: Settings, change: Callable[[KeyRing], KeyRing] | None, sealer: bytes = b"") -> KeyRing:
    from sluice_s3.app.encryption.keyring import RingError
    from sluice_s3.app.encryption.master_key import read_master

    require_index(settings)
    try:
        master = b"" if sealer else read_master(settings)
        call = partial(_change, settings, master, change, sealer)
        return run_with_index(settings, call, (ConditionalRequestConflict,))
    except RingError as error:
        fail(str(error))
    except ConditionalRequestConflict:
        fail("another command changed the key ring at the same moment: try again")


async def _change(
    settings: Settings, master: bytes, change: Callable[[KeyRing], KeyRing] | None, sealer: bytes, index: Index
) -> KeyRing:
    from sluice_s3.app.encryption.keyring import load_keyring
    from sluice_s3.app.encryption.master_key import find_master
    from sluice_s3.app.store.encryption.keyring import NO_KEYRING, change_ring, ring_text

    text = await ring_text(index)
    if change is not None:
        return await change_ring(index, master or find_master(text, settings), change, sealer)
    if not text:
        fail(NO_KEYRING)
    return load_keyring(text, master)


def _now() -> int:
    return time.time_ns() // 1_000_000


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
