"""`sluice import`: creates a bucket over an existing directory, without moving a byte."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import fail, load_settings, progress_bar
from sluice_s3.app.errors import BucketAlreadyExists, BucketAlreadyOwnedByYou, DomainError, describe
from sluice_s3.app.settings import Settings
from sluice_s3.storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from rich.progress import Progress

    from sluice_s3.app.index.buckets.rows import Bucket
    from sluice_s3.app.index.plain_files.rows import PendingHash
    from sluice_s3.app.store.plain_files.reconcile import ReconcileReport
    from sluice_s3.app.store.plain_files.writes import PlainFiles
    from sluice_s3.app.store.store import Store

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
    """Make the files of a directory the objects of a bucket.

    May run beside a server, and again at any time. All files are listed at once, with provisional ETags until they are
    hashed.

    Exit codes: 0 done, 1 it failed, or some files cannot be read.
    """
    from sluice_s3.app.s3.wire.target import is_bucket_name
    from sluice_s3.app.startup import CannotStart

    settings = load_settings(data=data, config=config, index=index)
    if not is_bucket_name(bucket):
        fail(f"{bucket!r} is no bucket name")
    try:
        report = asyncio.run(_run(settings, bucket, store, owner, hashes))
    except (DomainError, DriverError, CannotStart, OSError) as error:
        fail(f"the import failed: {describe(error)}")
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
    from sluice_s3.app.startup import CannotStart, open_store

    started = time.monotonic()
    async with open_store(settings) as first:
        chosen = first.of(store or first.name)
        if chosen.tree is None:
            raise CannotStart(f"store {chosen.name} has not the layout `tree`")
        bucket = await _bucket(chosen, settings, name, owner)
        with progress_bar() as progress:
            report = await _scan(chosen.tree, bucket, progress)
            hashed, unread = await _hash(chosen.tree, bucket, progress) if hashes else (0, 0)
    counts = report.counts
    return {
        "files": counts.files,
        "skipped": counts.not_files + counts.not_keys,
        "unreadable": counts.unreadable + unread,
        "adopted": report.adopted,
        "vanished": report.vanished,
        "being_changed": report.deferred,
        "hashed": hashed,
        "seconds": round(time.monotonic() - started, 1),
    }


async def _bucket(store: Store, settings: Settings, name: str, owner: str | None) -> Bucket:
    """Return the bucket, created if it is missing.

    Raises CannotStart when it is on another store, or another account's.
    """
    from sluice_s3.app.access.bucket_access import initial_settings
    from sluice_s3.app.startup import CannotStart
    from sluice_s3.app.store.regions import Regions

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
    await store.tree.files.make_bucket(name)  # first: a bucket without a possible directory is useless
    try:
        await store.index.create_bucket(
            name,
            owner_id,
            Regions(settings.region).default,
            settings.max_buckets,
            store.name,
            initial_settings(settings, plain_files=True),
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


async def _scan(tree: PlainFiles, bucket: Bucket, progress: Progress) -> ReconcileReport:
    from sluice_s3.app.store.plain_files.reconcile import reconcile_bucket

    task = progress.add_task("files", total=None)

    def show(report: ReconcileReport) -> None:
        progress.update(task, completed=report.counts.files)

    report = await reconcile_bucket(tree, bucket, show)
    progress.update(task, completed=report.counts.files, total=report.counts.files)
    return report


async def _hash(tree: PlainFiles, bucket: Bucket, progress: Progress) -> tuple[int, int]:
    """Hash all waiting files of the bucket; return the numbers hashed and unreadable."""
    from sluice_s3.app.store.plain_files.hashing import hash_files

    task = progress.add_task("hashes", total=await _waiting(tree, bucket))

    def advance(_: PendingHash) -> None:
        progress.update(task, advance=1)

    unread = 0

    def note(_: PendingHash) -> None:
        nonlocal unread
        unread += 1

    hashed, after = 0, 0
    while rows := await tree.index.unhashed(after, BATCH):
        after = rows[-1].seq
        hashed += await hash_files(tree, [row for row in rows if row.bucket_id == bucket.id], advance, note)
    return hashed, unread


async def _waiting(tree: PlainFiles, bucket: Bucket) -> int:
    count, after = 0, 0
    while rows := await tree.index.unhashed(after, 10_000):
        after = rows[-1].seq
        count += sum(1 for row in rows if row.bucket_id == bucket.id)
    return count
