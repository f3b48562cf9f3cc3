"""Make and delete buckets: on a store of layout *tree* a bucket is a directory too."""

from __future__ import annotations

from app.errors import BucketAlreadyExists, BucketNotEmpty
from app.index.rows import Bucket
from app.store.adoption import Scanned, adopt, forget_vanished
from app.store.calls import driver_calls
from app.store.store import Store
from app.store.tree import Tree
from storage_drivers.tree import Collision, Seen


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
    """Raises BucketAlreadyExists, BucketAlreadyOwnedByYou, TooManyBuckets, StoreUnavailable.

    A directory that holds files becomes a bucket `with_files` only, when the operator says so: else whoever may make
    buckets would come by what others keep there.
    """
    tree, index = store.tree, store.index
    if tree is not None and await index.bucket(name) is None:
        with driver_calls():
            try:
                await tree.files.make_bucket(name)  # first: a bucket without its directory looks like one unmounted
            except Collision:
                if with_files:
                    raise
                raise BucketAlreadyExists() from None
        if not with_files and await _has_files(tree, name) and await index.bucket(name) is None:
            raise BucketAlreadyExists()
    made = await index.create_bucket(name, owner_id, region, maximum, store.name, settings, versioning)
    if tree is not None:
        with driver_calls():
            await tree.files.make_bucket(name)  # again: who deleted the last one of this name may have been late
    return made


async def _has_files(tree: Tree, name: str) -> bool:
    seen = Seen()
    with driver_calls():
        async for batch in tree.files.scan(name, seen):
            if batch:
                return True
    return seen.unreadable > 0  # whoever cannot look must believe it


async def delete_bucket(store: Store, bucket: Bucket) -> None:
    """Raises NoSuchBucket, BucketNotEmpty: also for files that the index does not know yet."""
    if store.tree is None:
        await store.index.delete_bucket(bucket.id)
        return
    await _check_empty(store.tree, bucket)
    await store.index.delete_bucket(bucket.id)
    with driver_calls():
        await store.tree.files.remove_bucket(bucket.name)
        again = await store.index.bucket(bucket.name)
        if again is not None and again.store == store.name:  # made meanwhile: its files do not make the directory
            await store.tree.files.make_bucket(bucket.name)


async def _check_empty(tree: Tree, bucket: Bucket) -> None:
    scanned = Scanned()
    with driver_calls():
        async for batch in tree.files.scan(bucket.name, scanned.seen):
            if batch:
                await adopt(tree, bucket, batch, scanned)
                raise BucketNotEmpty()
    if scanned.seen.unreadable:
        raise BucketNotEmpty()
    await forget_vanished(tree, bucket, Scanned())
