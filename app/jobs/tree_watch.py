"""What others do to plain files is seen within a second where the mount tells it: on local disks, by inotify.

The scan stays: it finds what is not told. What cannot be watched (not local, no watches left) is only scanned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from app.errors import DomainError
from app.index.rows import Bucket, is_tree
from app.store.adoption import BATCH, Scanned, adopt, scan
from app.store.calls import driver_calls
from app.store.store import Store
from app.store.tree import Tree
from storage_drivers.errors import DriverError
from storage_drivers.tree import Found
from storage_drivers.tree.base import UNKNOWN

logger = logging.getLogger("sluice.jobs")

EVERY = 2.0
"""Seconds between looks for new buckets, and before what was just being changed is looked at again."""
RETRY = 300.0
"""Seconds after which it is tried again to watch a bucket that could not be watched."""
AT_MOST = 64
"""Buckets that are watched; each is one inotify instance (fs.inotify.max_user_instances)."""


class TreeWatch:
    """Of one store."""

    def __init__(self, store: Store, tree: Tree) -> None:
        self._store = store
        self._tree = tree
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                try:
                    await self._follow()
                except DomainError as error:
                    logger.warning("watch of store %s: %s, to be tried again", self._store.name, type(error).__name__)
                await asyncio.sleep(EVERY)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _follow(self) -> None:
        """A task for each bucket that there is, none for others."""
        buckets = {bucket.id: bucket for bucket in await self._tree.index.buckets_on(self._store.name)}
        for bucket_id in [bucket_id for bucket_id in self._tasks if bucket_id not in buckets]:
            self._tasks.pop(bucket_id).cancel()
        for bucket_id, bucket in buckets.items():
            if bucket_id not in self._tasks and len(self._tasks) < AT_MOST:
                self._tasks[bucket_id] = asyncio.create_task(self._watch(bucket))

    async def _watch(self, bucket: Bucket) -> None:
        while True:
            try:
                async for changes in self._tree.files.watch(bucket.name):
                    if changes.missed:
                        await scan(self._tree, bucket)
                    else:
                        await self._look(bucket, sorted(changes.paths))
            except (DomainError, DriverError) as error:
                logger.info("bucket %s is not watched: %s", bucket.name, error)
            except Exception:
                logger.exception("watch of bucket %s failed, to be tried again", bucket.name)
            await asyncio.sleep(RETRY)

    async def _look(self, bucket: Bucket, paths: Sequence[str]) -> None:
        for first in range(0, len(paths), BATCH):
            scanned = Scanned()
            await look(self._tree, bucket, paths[first : first + BATCH], scanned)
            if scanned.later:  # being changed just now
                await asyncio.sleep(EVERY)
                await look(self._tree, bucket, paths[first : first + BATCH], scanned)
            if scanned.adopted or scanned.vanished:
                logger.info(
                    "bucket %s: %d files that others made or changed, %d gone",
                    bucket.name,
                    scanned.adopted,
                    scanned.vanished,
                )


async def look(tree: Tree, bucket: Bucket, paths: Sequence[str], scanned: Scanned) -> None:
    """Make the rows of the keys at some paths what is there now."""
    keys = [(path, key) for path in paths if (key := tree.files.key_of(bucket.name, path)) is not None]
    with driver_calls():
        stamps = await tree.files.find_all([path for path, _ in keys])
    found, absent = [], []
    for (path, key), stamp in zip(keys, stamps, strict=True):
        if stamp is not None:
            if stamp != UNKNOWN:
                found.append(Found(key, path, stamp))
            continue
        version = await tree.index.version(bucket.id, key)
        if version is not None and is_tree(version.body) and tree.parse(version.body)[0] == path:
            absent.append((path, key, version.seq))
    await adopt(tree, bucket, found, scanned)
    if not absent:
        return
    with driver_calls():  # after the row was read: else the file of that row came in between
        stamps = await tree.files.find_all([path for path, _, _ in absent])
    gone = [(key, seq) for (_, key, seq), stamp in zip(absent, stamps, strict=True) if stamp is None]
    scanned.vanished += sum(await tree.index.forget_vanished(bucket.id, gone))
