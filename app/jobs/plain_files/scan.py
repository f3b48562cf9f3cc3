"""Scans of plain files (layout *tree*), and hashing of those that others wrote."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.plain_files.rows import PendingHash
from sluice_s3.app.jobs.plain_files.watch import PlainFileWatcher
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.plain_files.hashing import hash_files
from sluice_s3.app.store.plain_files.reconcile import reconcile_bucket
from sluice_s3.app.store.plain_files.writes import PlainFiles
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.jobs")

FILES_PER_BATCH = 256
BUCKETS = 1000
RETRY_SECONDS = 300.0
"""Seconds after which unreadable files are tried again."""


class PlainFileScanner:
    """Scanner of one store.

    `every` is the seconds between two scans of all its buckets, 0 for none.
    """

    def __init__(self, store: Store, tree: PlainFiles, every: float, now: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._tree = tree
        self._every = every
        self._now = now
        self._due = now() + every
        self._again = False
        self._first = 0
        """Rows up to this one were tried; some of their files are unreadable."""
        self._retry = 0.0

    def run_again(self) -> None:
        """Make the next run scan all buckets."""
        self._again = True

    async def run_once(self) -> int:
        """Hash waiting files, and scan when that is due; return the number hashed."""
        if self._again or (self._every and self._now() >= self._due):
            self._again = False
            await self._scan()  # first: files that cannot be hashed must not delay the discovery of new ones
            self._due = self._now() + self._every
        return await self._hash()

    async def watch(self) -> None:
        """Watch for external changes until cancelled, where the mount reports them.

        It does nothing when scans are off.
        """
        if self._every:
            await PlainFileWatcher(self._store, self._tree).run()

    async def _hash(self) -> int:
        if self._now() >= self._retry:
            self._first = 0
        hashed, after, unreadable = 0, self._first, list[PendingHash]()
        while rows := await self._tree.index.unhashed(after, FILES_PER_BATCH):
            after = rows[-1].seq
            own_rows = [row for row in rows if self._is_ours(row)]
            unreadable.clear()
            hashed += await hash_files(self._tree, own_rows, unreadable=unreadable.append)
            if unreadable:
                if not self._first:
                    self._retry = self._now() + RETRY_SECONDS
                self._first = after
                logger.warning("%d files, such as %s, cannot be read", len(unreadable), unreadable[0].key)
        return hashed

    def _is_ours(self, row: PendingHash) -> bool:
        """Return whether a row concerns this store. Every store deletes rows that are gone."""
        return not row.bucket_id or store_of_locator(row.body) == self._store.name

    async def _scan(self) -> None:
        for bucket in await self._tree.index.buckets_on(self._store.name):
            try:
                report = await reconcile_bucket(self._tree, bucket)
            except DomainError as error:
                logger.warning("scan of bucket %s: %s, to be tried again", bucket.name, type(error).__name__)
                continue
            if report.counts.unreadable:
                logger.warning(
                    "scan of bucket %s: %d files and directories cannot be read", bucket.name, report.counts.unreadable
                )
            if report.adopted or report.vanished:
                logger.info(
                    "scan of bucket %s: %d files that others made or changed, %d gone",
                    bucket.name,
                    report.adopted,
                    report.vanished,
                )
