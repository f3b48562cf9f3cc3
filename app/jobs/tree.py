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


class TreeJobs:
    """Of one store. `every` is the seconds between two scans of all its buckets, 0 for none."""

    def __init__(self, store: Store, tree: Tree, every: float, now: Callable[[], float] = monotonic) -> None:
        self._store = store
        self._tree = tree
        self._every = every
        self._now = now
        self._due = now() + every

    async def run_once(self) -> int:
        """Hash what waits for it, and scan when it is time; how many files were hashed."""
        hashed = await self._hash()
        if self._every and self._now() >= self._due:
            await self._scan()
            self._due = self._now() + self._every
        return hashed

    async def watch(self) -> None:
        """Until cancelled: see what others do as it happens, where the mount tells. Not without scans, either."""
        if self._every:
            await TreeWatch(self._store, self._tree).run()

    async def _hash(self) -> int:
        hashed, after = 0, 0
        while rows := await self._tree.index.unhashed(after, BATCH):
            after = rows[-1].seq
            hashed += await hash_files(self._tree, [row for row in rows if self._is_ours(row)])
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
            if scanned.adopted or scanned.vanished:
                logger.info(
                    "scan of bucket %s: %d files that others made or changed, %d gone",
                    bucket.name,
                    scanned.adopted,
                    scanned.vanished,
                )
