"""What happens later to plain files (layout *tree*): looking at all of them, and hashing those that others made."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from app.errors import DomainError
from app.index.rows import Unhashed
from app.jobs.tree_watch import TreeWatch
from app.store.adoption import scan
from app.store.place import owner
from app.store.store import Store
from app.store.tree import Tree
from app.store.tree_hashing import hash_files

logger = logging.getLogger("sluice.jobs")

BATCH = 256
BUCKETS = 1000
RETRY = 300.0
"""Seconds after which files that could not be read are tried again."""


class TreeJobs:
    """Of one store. `every` is the seconds between two scans of all its buckets, 0 for none."""

    def __init__(self, store: Store, tree: Tree, every: float, now: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._tree = tree
        self._every = every
        self._now = now
        self._due = now() + every
        self._first = 0
        """Rows up to here were tried; among them are some whose file could not be read."""
        self._retry = 0.0

    async def run_once(self) -> int:
        """Hash what waits for it, and scan when it is time; how many files were hashed."""
        if self._every and self._now() >= self._due:
            await self._scan()  # first: what cannot be hashed must not keep new files from being found
            self._due = self._now() + self._every
        return await self._hash()

    async def watch(self) -> None:
        """Until cancelled: see what others do as it happens, where the mount tells. Not without scans, either."""
        if self._every:
            await TreeWatch(self._store, self._tree).run()

    async def _hash(self) -> int:
        if self._now() >= self._retry:
            self._first = 0
        hashed, after, unreadable = 0, self._first, list[Unhashed]()
        while rows := await self._tree.index.unhashed(after, BATCH):
            after = rows[-1].seq
            some = [row for row in rows if self._is_ours(row)]
            unreadable.clear()
            hashed += await hash_files(self._tree, some, unreadable=unreadable.append)
            if unreadable:
                if not self._first:
                    self._retry = self._now() + RETRY
                self._first = after
                logger.warning("%d files, such as %s, cannot be read", len(unreadable), unreadable[0].key)
        return hashed

    def _is_ours(self, row: Unhashed) -> bool:
        """Rows that are gone belong to nobody: everybody forgets them."""
        return not row.bucket_id or owner(row.body) == self._store.name

    async def _scan(self) -> None:
        for bucket in await self._tree.index.buckets_on(self._store.name):
            try:
                scanned = await scan(self._tree, bucket)
            except DomainError as error:
                logger.warning("scan of bucket %s: %s, to be tried again", bucket.name, type(error).__name__)
                continue
            if scanned.seen.unreadable:
                logger.warning(
                    "scan of bucket %s: %d files and directories cannot be read", bucket.name, scanned.seen.unreadable
                )
            if scanned.adopted or scanned.vanished:
                logger.info(
                    "scan of bucket %s: %d files that others made or changed, %d gone",
                    bucket.name,
                    scanned.adopted,
                    scanned.vanished,
                )
