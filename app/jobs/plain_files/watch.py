"""Watches that find external changes of plain files within a second: inotify on local disks.

Scans continue: they find what the kernel does not report. Buckets that cannot be watched (not local, no watches left)
are only scanned.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.plain_files.reconcile import FILES_PER_BATCH, ReconcileReport, adopt, reconcile_bucket
from sluice_s3.app.store.plain_files.writes import PlainFiles
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.errors import DriverError
from sluice_s3.storage_drivers.tree import ScannedFile
from sluice_s3.storage_drivers.tree.types import UNKNOWN

logger = logging.getLogger("sluice.jobs")

CHECK_SECONDS = 2.0
"""Seconds between checks for new buckets, and before a file that was being changed is checked again."""
RETRY_SECONDS = 300.0
"""Seconds until a bucket that could not be watched is tried again."""
MAX_WATCHED_BUCKETS = 64
"""Buckets that are watched; each is one inotify instance (fs.inotify.max_user_instances)."""


class PlainFileWatcher:
    """Watcher of one store."""

    def __init__(self, store: Store, tree: PlainFiles) -> None:
        self._store = store
        self._tree = tree
        self._tasks: dict[int, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """Watch until cancelled."""
        try:
            while True:
                try:
                    await self._follow()
                except DomainError as error:
                    logger.warning("watch of store %s: %s, to be tried again", self._store.name, type(error).__name__)
                await asyncio.sleep(CHECK_SECONDS)
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _follow(self) -> None:
        """Start a task for each new bucket, and cancel those of deleted ones."""
        buckets = {bucket.id: bucket for bucket in await self._tree.index.buckets_on(self._store.name)}
        for bucket_id in [bucket_id for bucket_id in self._tasks if bucket_id not in buckets]:
            self._tasks.pop(bucket_id).cancel()
        for bucket_id, bucket in buckets.items():
            if bucket_id not in self._tasks and len(self._tasks) < MAX_WATCHED_BUCKETS:
                self._tasks[bucket_id] = asyncio.create_task(self._watch(bucket))

    async def _watch(self, bucket: Bucket) -> None:
        while True:
            try:
                async for changes in self._tree.files.watch(bucket.name):
                    if changes.missed:
                        await reconcile_bucket(self._tree, bucket)
                    else:
                        await self._reconcile(bucket, sorted(changes.paths))
            except (DomainError, DriverError) as error:
                logger.info("bucket %s is not watched: %s", bucket.name, error)
            except Exception:
                logger.exception("watch of bucket %s failed, to be tried again", bucket.name)
            await asyncio.sleep(RETRY_SECONDS)

    async def _reconcile(self, bucket: Bucket, paths: Sequence[str]) -> None:
        for first in range(0, len(paths), FILES_PER_BATCH):
            report = ReconcileReport()
            await reconcile_paths(self._tree, bucket, paths[first : first + FILES_PER_BATCH], report)
            if report.deferred:  # being changed just now
                await asyncio.sleep(CHECK_SECONDS)
                await reconcile_paths(self._tree, bucket, paths[first : first + FILES_PER_BATCH], report)
            if report.adopted or report.vanished:
                logger.info(
                    "bucket %s: %d files that others made or changed, %d gone",
                    bucket.name,
                    report.adopted,
                    report.vanished,
                )


async def reconcile_paths(tree: PlainFiles, bucket: Bucket, paths: Sequence[str], report: ReconcileReport) -> None:
    """Make the rows of the keys at some paths match the present files."""
    keys = [(path, key) for path in paths if (key := tree.files.key_of(bucket.name, path)) is not None]
    with translate_driver_errors():
        stamps = await tree.files.find_all([path for path, _ in keys])
    files, absent = [], []
    for (path, key), stamp in zip(keys, stamps, strict=True):
        if stamp is not None:
            if stamp != UNKNOWN:
                files.append(ScannedFile(key, path, stamp))
            continue
        version = await tree.index.version(bucket.id, key)
        if version is not None and is_plain_file(version.body) and tree.parse(version.body)[0] == path:
            absent.append((path, key, version.seq))
    await adopt(tree, bucket, files, report)
    if not absent:
        return
    with translate_driver_errors():  # read the row first: otherwise the file of that row might appear in between
        stamps = await tree.files.find_all([path for path, _, _ in absent])
    missing = [(key, seq) for (_, key, seq), stamp in zip(absent, stamps, strict=True) if stamp is None]
    report.vanished += sum(await tree.index.forget_vanished(bucket.id, missing))
