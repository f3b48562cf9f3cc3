"""Changes of plain files (layout `tree`).

Steps: write intent (key locked, conditions checked) → file renamed or unlinked, directory synced → commit. A change
that has begun runs to its end even if the client disconnects. `settle` finishes a change that fails in the middle; the
orphan sweeper does if the process dies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import (
    CommitUnknown,
    ConditionalRequestConflict,
    DomainError,
    KeyBusy,
    Overloaded,
    StoreFull,
    StoreUnavailable,
)
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.rows import Bucket, CommitResult, Conditions, Intent, NewVersion, Part, Upload, is_plain_file
from sluice_s3.app.index.version_rows import Deletion
from sluice_s3.app.store.blob_ids import BlobIds
from sluice_s3.app.store.driver_errors import Timings, translate_driver_errors
from sluice_s3.app.store.plain_files.reads import Backoff, PlainFileReader
from sluice_s3.storage_drivers.base import BodySource, FileSlice
from sluice_s3.storage_drivers.errors import DriverError
from sluice_s3.storage_drivers.threads import StoreThreadPool
from sluice_s3.storage_drivers.tree import Collision, FileChanged, Stamp, TreeFiles

logger = logging.getLogger("sluice.store")

DELETE = "delete"
CONCURRENCY = 16
"""Files of one request that are deleted concurrently."""
FINISH_SECONDS = 10.0
"""Seconds that a stopping worker waits for changes under way."""
PATH_ATTEMPTS = 3
"""Attempts when a path turns out to be taken."""
UNCONDITIONAL = (None, Conditions())

T = TypeVar("T")
Pieces = AsyncIterator[FileSlice | bytes]


class _Change(NamedTuple):
    """One change of a key."""

    bucket: Bucket
    key: str
    blob_id: int
    """The id of the temporary file; 0 for a delete."""
    conditions: Conditions | None


class PlainFiles(PlainFileReader):
    """The plain files of one store."""

    def __init__(
        self,
        index: Index,
        files: TreeFiles,
        threads: StoreThreadPool,
        ids: BlobIds,
        prefix: str,
        is_full: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_full` returns whether the store has passed a limit of its settings."""
        super().__init__(index, files, threads, prefix)
        self._ids = ids
        self._is_full = is_full
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
        self._running: set[asyncio.Task[Any]] = set()
        self._left: list[_Change] = []

    async def start(self) -> None:
        """Try the mount. Raises DriverError if it cannot hold plain files."""
        await self.files.start()

    def running(self) -> list[object]:
        """Return the blocking calls that run now."""
        return self._threads.running()

    def suspend(self, error: DriverError | None) -> None:
        """Refuse every further call with this error, or accept calls again when it is None."""
        self._threads.refused = error

    async def finish(self) -> None:
        """Wait for changes under way.

        It does not wait for a mount that hangs: the orphan sweeper finishes those changes.
        """
        if self._running:
            await asyncio.wait(self._running, timeout=0 if self._threads.refused else FINISH_SECONDS)

    async def close(self) -> None:
        """Stop the threads after changes under way are finished."""
        await self.finish()
        self._threads.shutdown()

    # operations
    async def put(
        self,
        bucket: Bucket,
        key: str,
        source: BodySource,
        describe: Callable[[str], NewVersion],
        conditions: Conditions | None,
        timings: Timings,
    ) -> CommitResult:
        """Write a body to a temporary file and make it the key's file.

        Raises as `app.store.objects.put`.
        """

        def stage(blob_id: int) -> Awaitable[Stamp]:
            return self.files.stage(blob_id, source, timings)

        return await self._put(bucket, key, stage, describe, conditions, timings)

    async def put_pieces(
        self,
        bucket: Bucket,
        key: str,
        pieces: Pieces,
        describe: Callable[[str], NewVersion],
        conditions: Conditions | None,
        timings: Timings,
    ) -> CommitResult:
        """Do the same with bytes that are already in the service.

        `describe` is called after all of them are read.
        """

        def stage(blob_id: int) -> Awaitable[Stamp]:
            return self.files.stage_pieces(blob_id, pieces)

        return await self._put(bucket, key, stage, describe, conditions, timings)

    async def _put(
        self,
        bucket: Bucket,
        key: str,
        stage: Callable[[int], Awaitable[Stamp]],
        describe: Callable[[str], NewVersion],
        conditions: Conditions | None,
        timings: Timings,
    ) -> CommitResult:
        await self._look(bucket, key, conditions)
        change = _Change(bucket, key, await self._ids.take(), conditions)
        stamp = await self._staged(change, lambda: stage(change.blob_id))

        def begin(body: str) -> Awaitable[Intent]:
            return self.index.begin_tree_put(bucket.id, key, change.blob_id, describe(body), conditions)

        return await self._whole(self._replace(change, stamp, begin), timings)

    async def complete(
        self,
        bucket: Bucket,
        upload: Upload,
        chosen: Sequence[Part],
        pieces: Pieces,
        new: NewVersion,
        conditions: Conditions | None,
        timings: Timings,
    ) -> CommitResult:
        """Make the bytes of the chosen parts the key's file. Raises as `app.store.multipart.complete`."""
        await self._look(bucket, upload.key, conditions)
        change = _Change(bucket, upload.key, await self._ids.take(), conditions)
        stamp = await self._staged(change, lambda: self.files.stage_pieces(change.blob_id, pieces))

        def begin(body: str) -> Awaitable[Intent | CommitResult]:
            return self.index.begin_tree_complete(upload, chosen, change.blob_id, new._replace(body=body), conditions)

        return await self._whole(self._replace(change, stamp, begin), timings)

    async def delete(
        self, bucket: Bucket, key: str, version_id: str | None, conditions: Conditions | None, timings: Timings
    ) -> CommitResult | None:
        """Delete a key's file; return None when there was none.

        Raises PreconditionFailed, NoSuchKey (If-Match).
        """
        await self.find(bucket, key, version_id)  # the condition applies to the present file
        return await self._whole(self._delete(_Change(bucket, key, 0, conditions), version_id), timings)

    async def delete_many(
        self, bucket: Bucket, entries: Sequence[Deletion], timings: Timings
    ) -> list[CommitResult | Exception | None]:
        """Delete the entries independent of each other.

        A failed entry has its error in its place.
        """
        gate = asyncio.Semaphore(CONCURRENCY)

        async def delete(entry: Deletion) -> CommitResult | Exception | None:
            async with gate:
                try:
                    return await self.delete(bucket, *entry[:3], timings)
                except DomainError as error:
                    return error

        return await asyncio.gather(*map(delete, entries))

    async def _look(self, bucket: Bucket, key: str, conditions: Conditions | None) -> None:
        """Correct the row to match the file, since conditions are checked against the row."""
        if conditions not in UNCONDITIONAL:
            await self.find(bucket, key)

    # steps
    async def _staged(self, change: _Change, stage: Callable[[], Awaitable[Stamp]]) -> Stamp:
        try:
            if self._is_full():
                raise StoreFull()
            with translate_driver_errors():
                stamp = await stage()
        except BaseException:
            await self._ids.settle(change.blob_id)
            raise
        crash_point("tree.staged")
        return stamp

    async def _whole(self, change: Coroutine[Any, Any, T], timings: Timings) -> T:
        """Run a change to its end, even if the request ends before."""
        started = perf_counter()
        task = asyncio.create_task(change)
        self._running.add(task)
        task.add_done_callback(self._done)
        try:
            return await asyncio.shield(task)
        finally:
            timings["commit"] = perf_counter() - started

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # the waiting request has the error

    def _lock(self, bucket_id: int, key: str) -> asyncio.Lock:
        """Hold the key's lock for a whole change.

        Changes of one process thus queue instead of polling.
        """
        lock = self._locks.get((bucket_id, key))
        if lock is None:
            lock = self._locks[bucket_id, key] = asyncio.Lock()
        return lock

    async def _replace(
        self, change: _Change, stamp: Stamp, begin: Callable[[str], Awaitable[Intent | CommitResult]]
    ) -> CommitResult:
        """Replace the key's file with the temporary file."""
        async with self._lock(change.bucket.id, change.key):
            path = await self._path(change)
            for _ in range(PATH_ATTEMPTS):
                body = self.body_of(path, stamp)
                intent = await self._begun(change, lambda body=body: begin(body))  # type: ignore[misc]
                if isinstance(intent, CommitResult):
                    await self._take_back(change)
                    return intent
                crash_point("tree.begun")
                with self._unknown_on_error(change):
                    made = await self._publish(change, intent, path)
                if made is not None:
                    return made
                path = self.files.escaped(change.bucket.name, change.key)
            await self._take_back(change)
            raise StoreUnavailable(reason="no path for the key")

    async def _path(self, change: _Change) -> str:
        """Return the path of the key's present or future file.

        It does not change unless another key has taken the path.
        """
        try:
            version = await self.index.version(change.bucket.id, change.key)
            with translate_driver_errors():
                if version is not None and is_plain_file(version.body):
                    path = self.parse(version.body)[0]
                    if path == self.files.escaped(change.bucket.name, change.key):
                        return path
                return await self.files.place(change.bucket.name, change.key)
        except BaseException:
            await self._take_back(change)
            raise

    async def _begun(self, change: _Change, begin: Callable[[], Awaitable[T]]) -> T:
        pause = Backoff()
        while True:
            try:
                return await begin()
            except CommitUnknown:
                self._left.append(change)
                raise
            except KeyBusy:
                if await pause.wait():
                    continue
                await self._take_back(change)
                if change.conditions in UNCONDITIONAL:
                    raise Overloaded(reason="the key is being changed") from None
                raise ConditionalRequestConflict() from None
            except BaseException:
                await self._take_back(change)
                raise

    @contextmanager
    def _unknown_on_error(self, change: _Change) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self._left.append(change)
            logger.warning("tree: a change of a file is left in the middle (%s), to be settled", type(error).__name__)
            raise

    async def _publish(self, change: _Change, intent: Intent, path: str) -> CommitResult | None:
        """Rename and commit; return None when the path is taken, and then nothing has begun."""
        with translate_driver_errors():
            try:
                await self.files.publish(change.blob_id, path)
            except Collision:
                await self.index.drop_intent(intent.id)
                return None
        crash_point("tree.published")
        made = await self.index.commit_intent(intent.id)
        crash_point("tree.committed")
        await self._ids.settle(change.blob_id)
        assert made is not None  # only its writer finishes the change while that writer lives
        return made

    async def _delete(self, change: _Change, version_id: str | None) -> CommitResult | None:
        place = (change.bucket.id, change.key)
        async with self._lock(*place):
            for _ in range(PATH_ATTEMPTS):
                intent = await self._begun(
                    change, lambda: self.index.begin_tree_delete(*place, version_id, change.conditions)
                )
                if intent is None:
                    return None
                crash_point("tree.begun")
                with self._unknown_on_error(change):
                    if await self._removed(intent):
                        crash_point("tree.removed")
                        return await self.index.commit_intent(intent.id)
                await self.find(change.bucket, change.key)  # the conditions apply to the present file
            raise Overloaded(reason="the file is being changed")

    async def _removed(self, intent: Intent) -> bool:
        """Delete the file of an intent; return False when another file has replaced it.

        Then nothing has begun. The other file may be acknowledged: this gateway may have stopped, and been declared
        dead, after the intent.
        """
        if is_plain_file(intent.body):
            with translate_driver_errors():
                try:
                    await self.files.remove(*self.parse(intent.body))
                except FileChanged:
                    await self.index.drop_intent(intent.id)
                    return False
        return True

    async def _take_back(self, change: _Change) -> None:
        """Delete the temporary file of a change that did not begin."""
        if change.blob_id:
            with suppress(DriverError):  # left for the orphan sweeper
                await self.files.unstage(change.blob_id)
                await self._ids.settle(change.blob_id)

    # interrupted changes
    async def settle(self) -> int:
        """Finish the interrupted changes of this process; return how many.

        Raises DomainError: try again later.
        """
        settled = 0
        failed: StoreUnavailable | None = None
        for change in list(self._left):
            try:
                async with self._lock(change.bucket.id, change.key):
                    intent = await self.index.intent_on(change.bucket.id, change.key)
                    if intent is not None and intent.incarnation == self.index.incarnation:
                        await self.recover(intent)
            except StoreUnavailable as error:  # perhaps of this bucket only
                failed = error
                continue
            await self._take_back(change)
            self._left.remove(change)
            settled += 1
        if failed is not None:
            raise failed
        return settled

    async def recover(self, intent: Intent) -> None:
        """Finish the change of a writer that is gone.

        The file shows whether the change took place. Raises StoreUnavailable when the store is not mounted.
        """
        done = True
        if is_plain_file(intent.body):
            path, stamp = self.parse(intent.body)
            with translate_driver_errors():
                if intent.kind == DELETE:
                    done = await self.files.find(path) is None
                    if done:
                        with suppress(FileChanged):  # another file has just taken its place
                            await self.files.remove(path, stamp)  # again, so that it stays deleted after a power cut
                else:
                    done = await self.files.is_published(intent.blob_id, path, stamp)
                    if not done:
                        await self.files.unstage(intent.blob_id)
        if done:
            await self.index.commit_intent(intent.id)
        else:
            await self.index.drop_intent(intent.id)
        logger.info("tree: a %s that was left in the middle is %s", intent.kind, "done" if done else "undone")
