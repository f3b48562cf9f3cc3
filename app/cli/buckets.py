"""`sluice bucket …`: buckets, their stores and quotas. Works beside a running server."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from sluice_s3.app.cli.common import (
    ConfigOption,
    DataOption,
    IndexOption,
    JsonOption,
    fail,
    load_settings,
    progress_bar,
)
from sluice_s3.app.cli.opened_index import is_served, require_index, run_with_index
from sluice_s3.app.errors import (
    BucketAlreadyExists,
    BucketAlreadyOwnedByYou,
    BucketBusy,
    BucketNotEmpty,
    DomainError,
    NoSuchBucket,
    TooManyBuckets,
    describe,
)
from sluice_s3.app.settings import Settings
from sluice_s3.storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from sluice_s3.app.index import Index
    from sluice_s3.app.index.buckets.rows import Bucket
    from sluice_s3.app.store.store import Store

buckets = typer.Typer(name="bucket", help="Buckets, their stores and quotas.", no_args_is_help=True)

T = TypeVar("T")
POLL_SECONDS = 0.5
"""Seconds between two reads of a move's progress."""


@buckets.command("list")
def list_buckets(
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    usage: Annotated[bool, typer.Option("--usage", help="Count bytes and objects too: it reads every row.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List all buckets of all accounts."""
    rows = _run(load_settings(data=data, config=config, index=index), lambda opened: _rows(opened, usage))
    if as_json:
        print(json.dumps(rows))
        return
    from rich.console import Console
    from rich.table import Table

    columns = ["bucket", "store", "owner", "created", "versioning", *(["bytes", "objects"] if usage else [])]
    table = Table(*columns)
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    Console().print(table)


async def _rows(index: Index, usage: bool) -> list[dict[str, Any]]:
    from sluice_s3.app.store.buckets import all_buckets

    owners = {account.id: account.display_name or account.id for account, _ in await index.accounts()}
    found = [
        await _row(index, bucket, owners.get(bucket.owner_id, bucket.owner_id), usage)
        async for bucket in all_buckets(index)
    ]
    return sorted(found, key=lambda row: str(row["bucket"]))


async def _row(index: Index, bucket: Bucket, owner: str, usage: bool) -> dict[str, Any]:
    from sluice_s3.app.index.schema.tables import ENABLED, SUSPENDED

    row: dict[str, Any] = {
        "bucket": bucket.name,
        "store": bucket.store,
        "owner": owner,
        "created": datetime.fromtimestamp(bucket.created // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "versioning": {ENABLED: "enabled", SUSPENDED: "suspended"}.get(bucket.versioning, "off"),
    }
    if usage:
        used = await index.bucket_usage(bucket.id)
        row |= {"bytes": used.bytes, "objects": used.objects}
    return row


@buckets.command()
def create(
    bucket: Annotated[str, typer.Argument(help="The bucket.")],
    store: Annotated[
        str | None, typer.Option(help="The store that it is to lie on; default the default store.")
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Canonical id of its account; default the first.")] = None,
    versioning: Annotated[bool, typer.Option("--versioning", help="Enable versioning.")] = False,
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
) -> None:
    """Create a bucket, as a default bucket is created at start.

    On plain files, the files in a directory of that name become its objects.

    Exit codes: 0 done, 1 it failed, 3 no such store or account, 4 the name is taken.
    """
    from sluice_s3.app.s3.wire.target import is_bucket_name

    settings = load_settings(data=data, config=config, index=index)
    if not is_bucket_name(bucket):
        fail(f"{bucket!r} is no bucket name", 2)
    if store is not None and store not in settings.named_stores:
        fail(f"there is no store {store!r} in the settings", 3)
    try:
        _run_with_store(settings, lambda opened: _create(opened, settings, bucket, store, owner, versioning))
    except (BucketAlreadyExists, BucketAlreadyOwnedByYou):
        fail("the name is taken", 4)
    except TooManyBuckets:
        fail(f"the account has {settings.max_buckets} buckets, which SLUICE_MAX_BUCKETS allows at most")


async def _create(
    opened: Store, settings: Settings, name: str, store: str | None, owner: str | None, versioning: bool
) -> None:
    from sluice_s3.app.access.bucket_access import initial_settings
    from sluice_s3.app.index.schema.tables import ENABLED, UNVERSIONED
    from sluice_s3.app.store.buckets import create_bucket
    from sluice_s3.app.store.regions import Regions

    accounts = [account.id for account, _ in await opened.index.accounts()]
    if (owner or "") not in [*accounts, ""] or not accounts:
        fail("no such account", 3)
    chosen = opened.of(store or settings.first_store)
    plain_files = chosen.tree is not None
    if plain_files and versioning:
        fail("plain files have no versions")
    await create_bucket(
        chosen,
        name,
        owner or accounts[0],
        Regions(settings.region).default,
        settings.max_buckets,
        initial_settings(settings, plain_files=plain_files),
        ENABLED if versioning else UNVERSIONED,
        with_files=True,
    )


@buckets.command()
def remove(
    bucket: Annotated[str, typer.Argument(help="The bucket.")],
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
) -> None:
    """Remove an empty bucket.

    Exit codes: 0 done, 1 it failed, 3 no such bucket, 4 it holds objects, versions or uploads.
    """
    settings = load_settings(data=data, config=config, index=index)
    try:
        _run_with_store(settings, lambda opened: _remove(opened, bucket))
    except NoSuchBucket:
        fail("no such bucket", 3)
    except BucketNotEmpty:
        fail("the bucket is not empty: delete its objects, versions and unfinished uploads first", 4)


async def _remove(opened: Store, name: str) -> None:
    from sluice_s3.app.store.buckets import delete_bucket

    found = await opened.index.bucket(name)
    if found is None:
        raise NoSuchBucket()
    await delete_bucket(opened.of(found.store), found)


def _run_with_store(settings: Settings, call: Callable[[Store], Awaitable[None]]) -> None:
    """Open the stores and run `call`. Passes the errors of buckets on."""
    from sluice_s3.app.startup import CannotStart, open_store

    async def run() -> None:
        async with open_store(settings) as store:
            await call(store)

    require_index(settings)
    try:
        asyncio.run(run())
    except (BucketAlreadyExists, BucketAlreadyOwnedByYou, BucketNotEmpty, NoSuchBucket, TooManyBuckets):
        raise
    except (DomainError, DriverError, CannotStart, OSError) as error:
        fail(f"the store cannot be used: {describe(error)}")


@buckets.command()
def move(
    bucket: Annotated[str, typer.Argument(help="The bucket.")],
    store: Annotated[str, typer.Argument(help="The store that it is to lie on.")],
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    wait: Annotated[bool, typer.Option(help="Wait until all of it is there.")] = True,
) -> None:
    """Move a bucket to another store while it is used.

    The server moves it; interrupting this command stops nothing. New writes go to the new store, and everything else
    follows.

    Exit codes: 0 done (or begun, with --no-wait, or when no server runs: the next one continues), 1 it failed, 3 no
    such bucket or store, 8 some of it cannot be read and stays where it is (see the log, and `sluice scrub`).
    """
    settings = load_settings(data=data, config=config, index=index)
    if store not in settings.named_stores:
        fail(f"there is no store {store!r} in the settings", 3)
    if settings.named_stores[store].layout == "tree":
        fail("a bucket cannot be moved to a store of the layout tree")
    try:
        stuck = _run(settings, lambda opened: _move(opened, settings, bucket, store, wait), BucketBusy)
    except BucketBusy as error:
        fail(f"the bucket is busy: {error.detail['reason']}")
    except KeyboardInterrupt:
        fail("the move goes on in the server")
    if stuck:
        fail(f"{stuck} blobs cannot be read and stay where they are; the rest is moved", 8)


async def _move(index: Index, settings: Settings, name: str, store: str, wait: bool) -> int:
    if store not in await index.identities():
        fail(f"the store {store!r} was never used: start the server with it first", 3)
    found = await index.bucket(name)
    if found is not None:
        _check_source(settings, found.store)
    moved = await index.begin_move(name, store)
    if not wait:
        return 0
    if moved.source and not await is_served(index, settings):
        print("no server runs: the next one moves what is there", file=sys.stderr)
        return 0
    stuck = await _watch(index, moved)
    if not stuck:
        print(f"all of {name} is on the store {store}")
    return stuck


def _check_source(settings: Settings, store: str) -> None:
    if store not in settings.named_stores:
        fail(f"the bucket lies on the store {store!r}, which is not in the settings", 3)
    if settings.named_stores[store].layout == "tree":
        fail("a bucket cannot be moved from a store of the layout tree")


@buckets.command("cancel-move")
def cancel_move(
    bucket: Annotated[str, typer.Argument(help="The bucket.")],
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
) -> None:
    """Turn a move back: new writes go to the old store again, and what was moved comes back.

    Exit codes: 0 done, 1 the bucket is not being moved, 3 no such bucket.
    """
    settings = load_settings(data=data, config=config, index=index)
    try:
        back = _run(settings, lambda opened: opened.turn_back(bucket), BucketBusy)
    except BucketBusy as error:
        fail(str(error.detail["reason"]))
    print(f"the server moves it back to the store {back.store}", file=sys.stderr)


@buckets.command()
def quota(
    bucket: Annotated[str, typer.Argument(help="The bucket.")],
    data: DataOption = None,
    config: ConfigOption = None,
    index: IndexOption = None,
    most_bytes: Annotated[int | None, typer.Option("--bytes", min=0, help="Bytes that it may hold.")] = None,
    objects: Annotated[int | None, typer.Option(min=0, help="Objects that it may hold, versions counted.")] = None,
    none: Annotated[bool, typer.Option("--none", help="It may hold all that there is room for.")] = False,
) -> None:
    """Set or print the quota of a bucket; options left out do not change it.

    Prints quota and usage as JSON.

    Exit codes: 0 done, 1 it failed, 3 no such bucket.
    """
    from sluice_s3.app.store.quotas import MAX_QUOTA

    if max(most_bytes or 0, objects or 0) > MAX_QUOTA:
        fail(f"a quota is {MAX_QUOTA} at most", 2)
    if none and (most_bytes is not None or objects is not None):
        fail("--none goes with no other option", 2)
    settings = load_settings(data=data, config=config, index=index)
    print(json.dumps(_run(settings, lambda opened: _quota(opened, bucket, most_bytes, objects, none))))


async def _quota(
    index: Index, name: str, most_bytes: int | None, objects: int | None, none: bool
) -> dict[str, int | None]:
    from sluice_s3.app.store.quotas import SETTING, Quota, quota_of, to_setting

    found = await index.bucket(name)
    if found is None:
        raise NoSuchBucket()
    old = quota_of(found) or Quota()
    new = Quota(old.bytes if most_bytes is None else most_bytes, old.objects if objects is None else objects)
    if none:
        new = Quota()
    if new != old:
        await index.configure_bucket(found.id, SETTING, to_setting(new))
    used = await index.bucket_usage(found.id)
    return {**new._asdict(), "used_bytes": used.bytes, "used_objects": used.objects}


def _run(settings: Settings, call: Callable[[Index], Awaitable[T]], *expected: type[DomainError]) -> T:
    try:
        return run_with_index(settings, call, (NoSuchBucket, *expected))
    except NoSuchBucket:
        fail("no such bucket", 3)


async def _watch(index: Index, bucket: Bucket) -> int:
    """Print the progress of a move until only unreadable blobs are left; return how many."""
    from sluice_s3.app.index.relocation.rows import progress_note

    with progress_bar(disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(f"{bucket.name} → {bucket.store}", total=None)
        while True:
            found = await index.bucket(bucket.name)
            if found is None or not found.source:
                return 0
            last_state = json.loads(await index.note(progress_note(bucket.id)) or b"{}")
            progress.update(task, completed=last_state.get("rows", 0), total=last_state.get("of"))
            if last_state.get("stuck") and last_state["rows"] >= last_state["of"]:
                return int(last_state["stuck"])
            await asyncio.sleep(POLL_SECONDS)
