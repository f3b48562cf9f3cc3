"""Changes of plain files that stopped in the middle, and how they end.

This process finishes its own; the orphan sweeper finishes those of a process that died, by `recover`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.plain_files.rows import Intent, is_plain_file
from sluice_s3.app.store.blob_ids import BlobIds
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.plain_files.reads import PlainFileReader
from sluice_s3.storage_drivers.errors import DriverError
from sluice_s3.storage_drivers.tree import FileChanged

logger = logging.getLogger("sluice.store")

DELETE = "delete"


class Change(NamedTuple):
    """One change of a key."""

    bucket: Bucket
    key: str
    blob_id: int
    """The id of the temporary file; 0 for a delete."""
    conditions: Conditions | None


class InterruptedChanges:
    """The changes of one store that this process has left in the middle.

    `lock` returns the lock of a key: the id of its bucket, and its name.
    """

    def __init__(self, reader: PlainFileReader, ids: BlobIds, lock: Callable[[int, str], asyncio.Lock]) -> None:
        self._reader = reader
        self._ids = ids
        self._lock = lock
        self._changes: list[Change] = []

    def add(self, change: Change) -> None:
        """Keep a change that may have begun, for `finish_all`."""
        self._changes.append(change)

    @contextmanager
    def keep_on_error(self, change: Change) -> Iterator[None]:
        """Keep a change whose steps raise."""
        try:
            yield
        except BaseException as error:
            self.add(change)
            logger.warning("tree: a change of a file is left in the middle (%s), to be settled", type(error).__name__)
            raise

    async def finish_all(self) -> int:
        """Finish the changes; return how many.

        Raises DomainError: try again later.
        """
        finished = 0
        failed: StoreUnavailable | None = None
        for bucket_id, key in dict.fromkeys((change.bucket.id, change.key) for change in self._changes):
            try:
                async with self._lock(bucket_id, key):
                    finished += await self.finish(bucket_id, key)
            except StoreUnavailable as error:  # perhaps of this bucket only
                failed = error
        if failed is not None:
            raise failed
        return finished

    async def finish(self, bucket_id: int, key: str) -> int:
        """Finish the changes of a key, whose lock the caller holds; return how many.

        Raises StoreUnavailable.
        """
        index = self._reader.index
        changes = [change for change in self._changes if (change.bucket.id, change.key) == (bucket_id, key)]
        if changes:
            intent = await index.intent_on(bucket_id, key)
            if intent is not None and intent.incarnation == index.incarnation:
                await self.recover(intent)
        for change in changes:
            await self.discard_staged(change)
            self._changes.remove(change)
        return len(changes)

    async def recover(self, intent: Intent) -> None:
        """Finish the change of a writer that is gone.

        The file shows whether the change took place. Raises StoreUnavailable when the store is not mounted.
        """
        index = self._reader.index
        took_place = await self._took_place(intent) if is_plain_file(intent.body) else True
        if took_place:
            await index.commit_intent(intent.id)
        else:
            await index.drop_intent(intent.id)
        logger.info("tree: a %s that was left in the middle is %s", intent.kind, "done" if took_place else "undone")

    async def _took_place(self, intent: Intent) -> bool:
        """Return whether the file of an intent was changed; if not, remove the temporary file."""
        files = self._reader.files
        path, stamp = self._reader.parse(intent.body)
        with translate_driver_errors():
            if intent.kind == DELETE:
                took_place = await files.find(path) is None
                if took_place:
                    with suppress(FileChanged):  # another file has just taken its place
                        await files.remove(path, stamp)  # again, so that it stays deleted after a power cut
            else:
                took_place = await files.is_published(intent.blob_id, path, stamp)
                if not took_place:
                    await files.unstage(intent.blob_id)
        return took_place

    async def discard_staged(self, change: Change) -> None:
        """Delete the temporary file of a change that did not begin."""
        if change.blob_id:
            with suppress(DriverError):  # left for the orphan sweeper
                await self._reader.files.unstage(change.blob_id)
                await self._ids.settle(change.blob_id)
