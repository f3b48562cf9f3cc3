"""Creation and deletion of buckets.

On a store of layout *tree* a bucket is also a directory.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from sluice_s3.app.errors import BucketAlreadyExists, BucketNotEmpty
from sluice_s3.app.index import Index
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.plain_files.reconcile import ReconcileReport, adopt, forget_vanished
from sluice_s3.app.store.plain_files.writes import PlainFiles
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.tree import Collision, SkippedCounts

PAGE = 1000
"""Buckets that are read at once."""


async def all_buckets(index: Index) -> AsyncIterator[Bucket]:
    """Yield the buckets of all accounts, oldest account first, each account's by name."""
    for account, _ in await index.accounts():
        after = ""
        while page := await index.buckets(account.id, "", after, PAGE):
            for bucket in page:
                yield bucket
            after = page[-1].name


async def create_bucket(
    store: Store,
    name: str,
    owner_id: str,
    region: str,
    maximum: int,
    settings: str = "",
    versioning: int = 0,
    *,
    with_files: bool = False,
) -> Bucket:
    """Create a bucket.

    A directory that holds files becomes a bucket only `with_files`, when the operator says so: otherwise anybody who
    may create buckets would get at files of others. Raises BucketAlreadyExists, BucketAlreadyOwnedByYou,
    TooManyBuckets, StoreUnavailable.
    """
    tree, index = store.tree, store.index
    if tree is not None and await index.bucket(name) is None:
        with translate_driver_errors():
            try:
                await tree.files.make_bucket(name)  # first: a bucket without its directory looks unmounted
            except Collision:
                if with_files:
                    raise
                raise BucketAlreadyExists() from None
        if not with_files and await _has_files(tree, name) and await index.bucket(name) is None:
            raise BucketAlreadyExists()
    bucket = await index.create_bucket(name, owner_id, region, maximum, store.name, settings, versioning)
    if tree is not None:
        with translate_driver_errors():
            await tree.files.make_bucket(name)  # again: a late delete may have removed it
    return bucket


async def _has_files(tree: PlainFiles, name: str) -> bool:
    counts = SkippedCounts()
    with translate_driver_errors():
        async for batch in tree.files.scan(name, counts):
            if batch:
                return True
    return counts.unreadable > 0  # unreadable names count as files


async def delete_bucket(store: Store, bucket: Bucket) -> None:
    """Delete a bucket.

    Raises NoSuchBucket, and BucketNotEmpty also for files that the index does not know yet.
    """
    if store.tree is None:
        await store.index.delete_bucket(bucket.id)
        return
    await _check_empty(store.tree, bucket)
    await store.index.delete_bucket(bucket.id)
    with translate_driver_errors():
        await store.tree.files.remove_bucket(bucket.name)
        again = await store.index.bucket(bucket.name)
        if again is not None and again.store == store.name:  # created meanwhile: its files do not make the directory
            await store.tree.files.make_bucket(bucket.name)


async def _check_empty(tree: PlainFiles, bucket: Bucket) -> None:
    report = ReconcileReport()
    with translate_driver_errors():
        async for batch in tree.files.scan(bucket.name, report.counts):
            if batch:
                await adopt(tree, bucket, batch, report)
                raise BucketNotEmpty()
    if report.counts.unreadable:
        raise BucketNotEmpty()
    await forget_vanished(tree, bucket, ReconcileReport())
