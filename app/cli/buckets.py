"""`sluice bucket …`: stores and quotas of buckets. Works beside a running server."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from sluice_s3.app.cli.common import ConfigOption, DataOption, IndexOption, fail, load_settings, progress_bar
from sluice_s3.app.errors import BucketBusy, DomainError, NoSuchBucket
from sluice_s3.app.settings import Settings

if TYPE_CHECKING:
    from sluice_s3.app.index import Index
    from sluice_s3.app.index.buckets.rows import Bucket

buckets = typer.Typer(name="bucket", help="Buckets and their stores.", no_args_is_help=True)

POLL_SECONDS = 0.5
"""Seconds between two reads of a move's progress."""


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
        stuck = asyncio.run(_move(settings, bucket, store, wait))
    except NoSuchBucket:
        fail("no such bucket", 3)
    except BucketBusy as error:
        fail(f"the bucket is busy: {error.detail['reason']}")
    except (DomainError, OSError) as error:
        fail(f"the index cannot be used: {type(error).__name__} {error}")
    except KeyboardInterrupt:
        fail("the move goes on in the server")
    if stuck:
        fail(f"{stuck} blobs cannot be read and stay where they are; the rest is moved", 8)


async def _move(settings: Settings, name: str, store: str, wait: bool) -> int:
    from sluice_s3.app.index import open_index

    if settings.index_is_missing:
        fail("there is no index here")
    index = open_index(settings, writer=False)
    await index.start()
    try:
        if store not in await index.identities():
            fail(f"the store {store!r} was never used: start the server with it first", 3)
        found = await index.bucket(name)
        if found is not None:
            _check_source(settings, found.store)
        moved = await index.begin_move(name, store)
        if not wait:
            return 0
        if not await _is_served(index, settings):
            print("no server runs: the next one moves what is there", file=sys.stderr)
            return 0
        return await _watch(index, moved)
    finally:
        await index.close()


def _check_source(settings: Settings, store: str) -> None:
    if store not in settings.named_stores:
        fail(f"the bucket lies on the store {store!r}, which is not in the settings", 3)
    if settings.named_stores[store].layout == "tree":
        fail("a bucket cannot be moved from a store of the layout tree")


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
    try:
        print(json.dumps(asyncio.run(_quota(settings, bucket, most_bytes, objects, none))))
    except NoSuchBucket:
        fail("no such bucket", 3)
    except (DomainError, OSError) as error:
        fail(f"the index cannot be used: {type(error).__name__} {error}")


async def _quota(
    settings: Settings, name: str, most_bytes: int | None, objects: int | None, none: bool
) -> dict[str, int | None]:
    from sluice_s3.app.index import open_index
    from sluice_s3.app.store.quotas import SETTING, Quota, quota_of, to_setting

    if settings.index_is_missing:
        fail("there is no index here")
    index = open_index(settings, writer=False)
    await index.start()
    try:
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
    finally:
        await index.close()


async def _is_served(index: Index, settings: Settings) -> bool:
    """Return whether a server holds its lock.

    With several gateways, return whether one is not known to be dead.
    """
    from sluice_s3.app.index.cluster.transactions import LIVE
    from sluice_s3.app.server.processes.instance_lock import acquire

    if index.many_hosts:
        return any(writer.state == LIVE for writer in await index.writers())
    lock = acquire(settings.run_dir)
    if lock is None:
        return True
    lock.close()
    return False


async def _watch(index: Index, bucket: Bucket) -> int:
    """Print the progress of a move until only unreadable blobs are left; return how many."""
    from sluice_s3.app.jobs.relocation.bucket_migration import note_of

    with progress_bar(disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(f"{bucket.name} → {bucket.store}", total=None)
        while True:
            found = await index.bucket(bucket.name)
            if found is None or not found.source:
                return 0
            last_state = json.loads(await index.note(note_of(bucket.id)) or b"{}")
            progress.update(task, completed=last_state.get("rows", 0), total=last_state.get("of"))
            if last_state.get("stuck") and last_state["rows"] >= last_state["of"]:
                return int(last_state["stuck"])
            await asyncio.sleep(POLL_SECONDS)
