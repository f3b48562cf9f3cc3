"""`sluice import`: makes a bucket over a directory that is there, without moving a byte."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli_common import fail, load_settings, progress_bar
from app.errors import BucketAlreadyExists, BucketAlreadyOwnedByYou, DomainError
from app.settings import Settings
from storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from rich.progress import Progress

    from app.index.rows import Bucket, Unhashed
    from app.store.adoption import Scanned
    from app.store.store import Store
    from app.store.tree import Tree

BATCH = 256


def import_command(
    bucket: Annotated[str, typer.Argument(help="Name of the bucket, and of the directory below the store's path.")],
    store: Annotated[str | None, typer.Option(help="A store of layout `tree`; default: the default store.")] = None,
    owner: Annotated[str | None, typer.Option(help="Id of the account that is to own it; default: the first.")] = None,
    hashes: Annotated[
        bool, typer.Option("--hash/--no-hash", help="Wait for the true ETags; else a running server makes them.")
    ] = True,
    data: Annotated[Path | None, typer.Option(help="Directory of the backing store [env SLUICE_DATA].")] = None,
    config: Annotated[Path | None, typer.Option(help="TOML file of settings [env SLUICE_CONFIG].")] = None,
    index: Annotated[str | None, typer.Option(help="URL of the index.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make the files of a directory the objects of a bucket; may run beside a server, and again at any time.

    All of them are listed at once, with ETags that stand for the true ones until these are made. Exit codes: 0 done,
    1 it could not be done, or not for all files: some cannot be read.
    """
    from app.s3.target import valid_bucket_name
    from app.startup import CannotStart

    settings = load_settings(data=data, config=config, index=index)
    if not valid_bucket_name(bucket):
        fail(f"{bucket!r} is no bucket name")
    try:
        report = asyncio.run(_run(settings, bucket, store, owner, hashes))
    except (DomainError, DriverError, CannotStart, OSError) as error:
        fail(f"the import failed: {type(error).__name__} {error}")
    if as_json:
        print(json.dumps(report))
    else:
        print(
            f"{report['files']} files are in bucket {bucket} ({report['adopted']} of them new or changed, "
            f"{report['vanished']} objects gone), {report['hashed']} hashed in {report['seconds']} s; "
            f"{report['skipped']} names are no objects"
        )
    if report["unreadable"]:
        fail(f"{report['unreadable']} files and directories cannot be read")


async def _run(settings: Settings, name: str, store: str | None, owner: str | None, hashes: bool) -> dict[str, object]:
    from app.startup import CannotStart, opened

    started = time.monotonic()
    async with opened(settings) as first:
        chosen = first.of(store or first.name)
        if chosen.tree is None:
            raise CannotStart(f"store {chosen.name} has not the layout `tree`")
        bucket = await _bucket(chosen, settings, name, owner)
        with progress_bar() as progress:
            scanned = await _scan(chosen.tree, bucket, progress)
            hashed, unread = await _hash(chosen.tree, bucket, progress) if hashes else (0, 0)
    seen = scanned.seen
    return {
        "files": seen.files,
        "skipped": seen.not_files + seen.not_keys,
        "unreadable": seen.unreadable + unread,
        "adopted": scanned.adopted,
        "vanished": scanned.vanished,
        "being_changed": scanned.later,
        "hashed": hashed,
        "seconds": round(time.monotonic() - started, 1),
    }


async def _bucket(store: Store, settings: Settings, name: str, owner: str | None) -> Bucket:
    """The bucket, made if it is missing. Raises CannotStart when it is not this store's, or another account's."""
    from app.access.bucket_access import ENFORCED, initial_settings
    from app.startup import CannotStart

    accounts = [account.id for account, _ in await store.index.accounts()]
    if not accounts:
        raise CannotStart("there is no account: start the server once, or give the root keys")
    owner_id = owner or accounts[0]
    if owner_id not in accounts:
        raise CannotStart(f"there is no account {owner_id}")
    bucket = await store.index.bucket(name)
    if bucket is not None and bucket.store != store.name:
        raise CannotStart(f"bucket {name} is on another store")
    assert store.tree is not None
    await store.tree.files.make_bucket(name)  # first: a bucket whose directory cannot be is of no use
    try:
        await store.index.create_bucket(
            name,
            owner_id,
            settings.region,
            settings.max_buckets,
            store.name,
            initial_settings(settings, ENFORCED, plain_files=True),
        )
    except BucketAlreadyOwnedByYou:
        pass
    except BucketAlreadyExists:
        if owner is not None:
            raise CannotStart(f"bucket {name} belongs to another account") from None
    bucket = await store.index.bucket(name)
    if bucket is None or bucket.store != store.name:
        raise CannotStart(f"bucket {name} is on another store")
    return bucket


async def _scan(tree: Tree, bucket: Bucket, progress: Progress) -> Scanned:
    from app.store.adoption import scan

    task = progress.add_task("files", total=None)

    def tell(scanned: Scanned) -> None:
        progress.update(task, completed=scanned.seen.files)

    scanned = await scan(tree, bucket, tell)
    progress.update(task, completed=scanned.seen.files, total=scanned.seen.files)
    return scanned


async def _hash(tree: Tree, bucket: Bucket, progress: Progress) -> tuple[int, int]:
    """Hash all files of the bucket that wait for it; how many were, and how many cannot be read."""
    from app.store.tree_hashing import hash_files

    task = progress.add_task("hashes", total=await _waiting(tree, bucket))

    def tell(_: Unhashed) -> None:
        progress.update(task, advance=1)

    unread = 0

    def note(_: Unhashed) -> None:
        nonlocal unread
        unread += 1

    hashed, after = 0, 0
    while rows := await tree.index.unhashed(after, BATCH):
        after = rows[-1].seq
        hashed += await hash_files(tree, [row for row in rows if row.bucket_id == bucket.id], tell, note)
    return hashed, unread


async def _waiting(tree: Tree, bucket: Bucket) -> int:
    count, after = 0, 0
    while rows := await tree.index.unhashed(after, 10_000):
        after = rows[-1].seq
        count += sum(1 for row in rows if row.bucket_id == bucket.id)
    return count
