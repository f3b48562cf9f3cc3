"""Changes of plain files (layout `tree`).

Steps: write intent (key locked, conditions checked) → file renamed or unlinked, directory synced → commit. A change
that has begun runs to its end even if the client disconnects. One that stops in the middle is finished later: see
`interrupted.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from time import perf_counter
from typing import Any, TypeVar
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
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.multipart.rows import Part, Upload
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import CommitResult, NewVersion
from sluice_s3.app.index.plain_files.rows import Intent, is_plain_file
from sluice_s3.app.index.versioning.rows import Deletion
from sluice_s3.app.store.blob_ids import BlobIds
from sluice_s3.app.store.driver_errors import Timings, translate_driver_errors
from sluice_s3.app.store.etags import MD5
from sluice_s3.app.store.plain_files.interrupted import Change, InterruptedChanges
from sluice_s3.app.store.plain_files.reads import Backoff, PlainFileReader
from sluice_s3.storage_drivers.base import BodySource, FileSlice
from sluice_s3.storage_drivers.errors import DriverError
from sluice_s3.storage_drivers.threads import StoreThreadPool
from sluice_s3.storage_drivers.tree import Collision, FileChanged, Stamp, TreeFiles

CONCURRENCY = 16
"""Files of one request that are deleted concurrently."""
FINISH_SECONDS = 10.0
"""Seconds that a stopping worker waits for changes under way."""
PATH_ATTEMPTS = 3
"""Attempts when a path turns out to be taken."""
UNCONDITIONAL = (None, Conditions())

T = TypeVar("T")
Pieces = AsyncIterator[FileSlice | bytes]


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
        etag_kind: str = MD5,
    ) -> None:
        """`is_full` returns whether the store has passed a limit of its settings."""
        super().__init__(index, files, threads, prefix)
        self.etag_kind = etag_kind
        """See `Store.etag_kind`."""
        self._ids = ids
        self._is_full = is_full
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
        self._running: set[asyncio.Task[Any]] = set()
        self._interrupted = InterruptedChanges(self, ids, self._lock)

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

    async def finish_interrupted(self) -> int:
        """See `InterruptedChanges.finish_all`."""
        return await self._interrupted.finish_all()

    async def finish_interrupted_of(self, bucket_id: int, key: str) -> bool:
        """See `PlainFileReader.finish_interrupted_of`."""
        if self._lock(bucket_id, key).locked():  # by a change, perhaps the caller's, which finishes it or waits
            return False
        return await self._run_to_completion(self._finish(bucket_id, key), {})

    async def _finish(self, bucket_id: int, key: str) -> bool:
        async with self._lock(bucket_id, key):
            return await self._interrupted.finish(bucket_id, key) > 0

    async def recover(self, intent: Intent) -> None:
        """See `InterruptedChanges.recover`."""
        await self._interrupted.recover(intent)

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
        await self._refresh_row(bucket, key, conditions)
        change = Change(bucket, key, await self._ids.take(), conditions)
        stamp = await self._stage(change, lambda: stage(change.blob_id))

        def open_intent(body: str) -> Awaitable[Intent]:
            return self.index.begin_tree_put(bucket.id, key, change.blob_id, describe(body), conditions)

        return await self._run_to_completion(self._replace(change, stamp, open_intent), timings)

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
        await self._refresh_row(bucket, upload.key, conditions)
        change = Change(bucket, upload.key, await self._ids.take(), conditions)
        stamp = await self._stage(change, lambda: self.files.stage_pieces(change.blob_id, pieces))

        def open_intent(body: str) -> Awaitable[Intent | CommitResult]:
            return self.index.begin_tree_complete(upload, chosen, change.blob_id, new._replace(body=body), conditions)

        return await self._run_to_completion(self._replace(change, stamp, open_intent), timings)

    async def delete(
        self, bucket: Bucket, key: str, version_id: str | None, conditions: Conditions | None, timings: Timings
    ) -> CommitResult | None:
        """Delete a key's file; return None when there was none.

        Raises PreconditionFailed, NoSuchKey (If-Match).
        """
        await self.find(bucket, key, version_id)  # the condition applies to the present file
        return await self._run_to_completion(self._delete(Change(bucket, key, 0, conditions), version_id), timings)

    async def delete_many(
        self, bucket: Bucket, entries: Sequence[Deletion], timings: Timings
    ) -> list[CommitResult | Exception | None]:
        """Delete the entries independent of each other.

        A failed entry has its error in its place.
        """
        semaphore = asyncio.Semaphore(CONCURRENCY)

        async def delete(entry: Deletion) -> CommitResult | Exception | None:
            async with semaphore:
                try:
                    return await self.delete(bucket, *entry[:3], timings)
                except DomainError as error:
                    return error

        return await asyncio.gather(*map(delete, entries))

    async def _refresh_row(self, bucket: Bucket, key: str, conditions: Conditions | None) -> None:
        """Correct the row to match the file, since conditions are checked against the row."""
        if conditions not in UNCONDITIONAL:
            await self.find(bucket, key)

    # steps
    async def _stage(self, change: Change, stage: Callable[[], Awaitable[Stamp]]) -> Stamp:
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

    async def _run_to_completion(self, change: Coroutine[Any, Any, T], timings: Timings) -> T:
        """Run a change to its end, even if the request ends before."""
        started = perf_counter()
        task = asyncio.create_task(change)
        self._running.add(task)
        task.add_done_callback(self._on_completion)
        try:
            return await asyncio.shield(task)
        finally:
            timings["commit"] = perf_counter() - started

    def _on_completion(self, task: asyncio.Task[Any]) -> None:
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
        self, change: Change, stamp: Stamp, open_intent: Callable[[str], Awaitable[Intent | CommitResult]]
    ) -> CommitResult:
        """Replace the key's file with the temporary file."""
        async with self._lock(change.bucket.id, change.key):
            path = await self._path_of(change)
            for _ in range(PATH_ATTEMPTS):
                body = self.body_of(path, stamp)
                intent = await self._open_intent(change, lambda body=body: open_intent(body))  # type: ignore[misc]
                if isinstance(intent, CommitResult):
                    await self._interrupted.discard_staged(change)
                    return intent
                crash_point("tree.begun")
                with self._interrupted.keep_on_error(change):
                    result = await self._publish(change, intent, path)
                if result is not None:
                    return result
                path = self.files.escaped_path(change.bucket.name, change.key)
            await self._interrupted.discard_staged(change)
            raise StoreUnavailable(reason="no path for the key")

    async def _path_of(self, change: Change) -> str:
        """Return the path of the key's present or future file.

        It does not change unless another key has taken the path.
        """
        try:
            version = await self.index.version(change.bucket.id, change.key)
            with translate_driver_errors():
                if version is not None and is_plain_file(version.body):
                    path = self.parse(version.body)[0]
                    if path == self.files.escaped_path(change.bucket.name, change.key):
                        return path
                return await self.files.path_for(change.bucket.name, change.key)
        except BaseException:
            await self._interrupted.discard_staged(change)
            raise

    async def _open_intent(self, change: Change, open_intent: Callable[[], Awaitable[T]]) -> T:
        """Open the intent of a change, behind that of another process or one that was left in the middle here."""
        backoff = Backoff()
        try:
            while True:
                try:
                    return await open_intent()
                except KeyBusy:
                    if await self._interrupted.finish(change.bucket.id, change.key) or await backoff.wait():
                        continue
                    if change.conditions in UNCONDITIONAL:
                        raise Overloaded(reason="the key is being changed") from None
                    raise ConditionalRequestConflict() from None
        except CommitUnknown:
            self._interrupted.add(change)
            raise
        except BaseException:
            await self._interrupted.discard_staged(change)
            raise

    async def _publish(self, change: Change, intent: Intent, path: str) -> CommitResult | None:
        """Rename and commit; return None when the path is taken, and then nothing has begun."""
        with translate_driver_errors():
            try:
                await self.files.publish(change.blob_id, path)
            except Collision:
                await self.index.drop_intent(intent.id)
                return None
        crash_point("tree.published")
        result = await self.index.commit_intent(intent.id)
        crash_point("tree.committed")
        await self._ids.settle(change.blob_id)
        assert result is not None  # only its writer finishes the change while that writer lives
        return result

    async def _delete(self, change: Change, version_id: str | None) -> CommitResult | None:
        bucket_and_key = (change.bucket.id, change.key)
        async with self._lock(*bucket_and_key):
            for _ in range(PATH_ATTEMPTS):
                intent = await self._open_intent(
                    change, lambda: self.index.begin_tree_delete(*bucket_and_key, version_id, change.conditions)
                )
                if intent is None:
                    return None
                crash_point("tree.begun")
                with self._interrupted.keep_on_error(change):
                    if await self._remove_file(intent):
                        crash_point("tree.removed")
                        return await self.index.commit_intent(intent.id)
                await self.find(change.bucket, change.key)  # the conditions apply to the present file
            raise Overloaded(reason="the file is being changed")

    async def _remove_file(self, intent: Intent) -> bool:
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
