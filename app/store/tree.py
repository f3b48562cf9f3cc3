"""Changes of plain files (DESIGN §4, layout *tree*).

Intent (key locked, conditions decided) → file renamed or unlinked, directory synced → commit. What was begun is
carried out to its end, whoever asked for it goes away meanwhile or not; when it fails in the middle it is ended by
`settle`, or by the sweep when the process dies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from app.crash import crash_point
from app.errors import (
    CommitUnknown,
    ConditionalRequestConflict,
    DomainError,
    KeyBusy,
    Overloaded,
    StoreFull,
    StoreUnavailable,
)
from app.index.base import Deletion, Index
from app.index.rows import Bucket, Committed, Conditions, Intent, NewVersion, Part, Upload, is_tree
from app.store.blobs import BlobIds
from app.store.calls import Timings, driver_calls
from app.store.tree_reading import Pause, TreeReader
from storage_drivers.base import FileSlice, Source
from storage_drivers.errors import DriverError
from storage_drivers.threads import Threads
from storage_drivers.tree import Collision, FileChanged, Stamp, TreeFiles

logger = logging.getLogger("sluice.store")

DELETE = "delete"
AT_ONCE = 16
"""Files of one request that are taken away at the same time."""
FINISH = 10.0
"""Seconds that a stopping worker waits for what was begun."""
PLACES = 3
"""How often a path may turn out to be taken."""
UNCONDITIONAL = (None, Conditions())

T = TypeVar("T")
Pieces = AsyncIterator[FileSlice | bytes]


class _Change(NamedTuple):
    """What is done to a key."""

    bucket: Bucket
    key: str
    blob_id: int
    """Of the file that was written aside; 0 for a delete."""
    conditions: Conditions | None


class Tree(TreeReader):
    """The plain files of one store."""

    def __init__(
        self,
        index: Index,
        files: TreeFiles,
        threads: Threads,
        ids: BlobIds,
        prefix: str,
        is_full: Callable[[], bool] = lambda: False,
    ) -> None:
        """`is_full` says whether the store has passed a limit of its settings."""
        super().__init__(index, files, threads, prefix)
        self._ids = ids
        self._is_full = is_full
        self._locks: WeakValueDictionary[tuple[int, str], asyncio.Lock] = WeakValueDictionary()
        self._running: set[asyncio.Task[Any]] = set()
        self._left: list[_Change] = []

    async def start(self) -> None:
        """Try the mount. Raises DriverError where it cannot keep plain files."""
        await self.files.start()

    def running(self) -> list[object]:
        """Blocking calls that run now."""
        return self._threads.running()

    def suspend(self, error: DriverError | None) -> None:
        """Refuse every further call with this error; with None take them again."""
        self._threads.refused = error

    async def finish(self) -> None:
        """Wait for what was begun, but not for a mount that hangs: what that holds up is ended by the sweep."""
        if self._running:
            await asyncio.wait(self._running, timeout=0 if self._threads.refused else FINISH)

    async def close(self) -> None:
        """Stop the threads, once what was begun is finished."""
        await self.finish()
        self._threads.shutdown()

    # what operations ask
    async def put(
        self,
        bucket: Bucket,
        key: str,
        source: Source,
        describe: Callable[[str], NewVersion],
        conditions: Conditions | None,
        timings: Timings,
    ) -> Committed:
        """Write a body aside and make it the key's file. Raises as `app.store.objects.put`."""

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
    ) -> Committed:
        """The same of bytes that are in the service already; `describe` is called when all of them were read."""

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
    ) -> Committed:
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
    ) -> Committed:
        """Make the bytes of the chosen parts the key's file. Raises as `app.store.multipart.complete`."""
        await self._look(bucket, upload.key, conditions)
        change = _Change(bucket, upload.key, await self._ids.take(), conditions)
        stamp = await self._staged(change, lambda: self.files.stage_pieces(change.blob_id, pieces))

        def begin(body: str) -> Awaitable[Intent | Committed]:
            return self.index.begin_tree_complete(upload, chosen, change.blob_id, new._replace(body=body), conditions)

        return await self._whole(self._replace(change, stamp, begin), timings)

    async def delete(
        self, bucket: Bucket, key: str, version_id: str | None, conditions: Conditions | None, timings: Timings
    ) -> Committed | None:
        """Take a key's file away; None when there was none. Raises PreconditionFailed, NoSuchKey (If-Match)."""
        await self.find(bucket, key, version_id)  # the condition is on what is there, whoever made it
        return await self._whole(self._delete(_Change(bucket, key, 0, conditions), version_id), timings)

    async def delete_many(
        self, bucket: Bucket, entries: Sequence[Deletion], timings: Timings
    ) -> list[Committed | Exception | None]:
        """Delete each entry alone; one that fails has its error in its place."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def delete(entry: Deletion) -> Committed | Exception | None:
            async with gate:
                try:
                    return await self.delete(bucket, *entry[:3], timings)
                except DomainError as error:
                    return error

        return await asyncio.gather(*map(delete, entries))

    async def _look(self, bucket: Bucket, key: str, conditions: Conditions | None) -> None:
        """Conditions are decided by the row: make it what the file is now."""
        if conditions not in UNCONDITIONAL:
            await self.find(bucket, key)

    # steps
    async def _staged(self, change: _Change, stage: Callable[[], Awaitable[Stamp]]) -> Stamp:
        try:
            if self._is_full():
                raise StoreFull()
            with driver_calls():
                stamp = await stage()
        except BaseException:
            await self._ids.settle(change.blob_id)
            raise
        crash_point("tree.staged")
        return stamp

    async def _whole(self, change: Coroutine[Any, Any, T], timings: Timings) -> T:
        """Carry a change out to its end, whether or not somebody waits for it still."""
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
            task.exception()  # told to whoever waited

    def _lock(self, bucket_id: int, key: str) -> asyncio.Lock:
        """Held over all of a change, so that those of one process wait in line and need not ask again and again."""
        lock = self._locks.get((bucket_id, key))
        if lock is None:
            lock = self._locks[bucket_id, key] = asyncio.Lock()
        return lock

    async def _replace(
        self, change: _Change, stamp: Stamp, begin: Callable[[str], Awaitable[Intent | Committed]]
    ) -> Committed:
        """Put what was written aside in its place."""
        async with self._lock(change.bucket.id, change.key):
            path = await self._path(change)
            for _ in range(PLACES):
                body = self.body_of(path, stamp)
                intent = await self._begun(change, lambda body=body: begin(body))  # type: ignore[misc]
                if isinstance(intent, Committed):
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
        """Where the key's file is, or is to be. It stays where it was, unless that has become another key's."""
        try:
            version = await self.index.version(change.bucket.id, change.key)
            with driver_calls():
                if version is not None and is_tree(version.body):
                    path = self.parse(version.body)[0]
                    if path == self.files.escaped(change.bucket.name, change.key):
                        return path
                return await self.files.place(change.bucket.name, change.key)
        except BaseException:
            await self._take_back(change)
            raise

    async def _begun(self, change: _Change, begin: Callable[[], Awaitable[T]]) -> T:
        pause = Pause()
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

    async def _publish(self, change: _Change, intent: Intent, path: str) -> Committed | None:
        """Rename and commit; None when the path is taken, and then nothing is begun any more."""
        with driver_calls():
            try:
                await self.files.publish(change.blob_id, path)
            except Collision:
                await self.index.drop_intent(intent.id)
                return None
        crash_point("tree.published")
        made = await self.index.commit_intent(intent.id)
        crash_point("tree.committed")
        await self._ids.settle(change.blob_id)
        assert made is not None  # nobody else ends what a living writer began
        return made

    async def _delete(self, change: _Change, version_id: str | None) -> Committed | None:
        place = (change.bucket.id, change.key)
        async with self._lock(*place):
            for _ in range(PLACES):
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
                await self.find(change.bucket, change.key)  # the conditions are on what is there now
            raise Overloaded(reason="the file is being changed")

    async def _removed(self, intent: Intent) -> bool:
        """Take the file of an intent away; False when another one has come to its place, and nothing is begun then.

        That may be one that was acknowledged: this gateway may have been stopped, and declared dead, after the intent.
        """
        if is_tree(intent.body):
            with driver_calls():
                try:
                    await self.files.remove(*self.parse(intent.body))
                except FileChanged:
                    await self.index.drop_intent(intent.id)
                    return False
        return True

    async def _take_back(self, change: _Change) -> None:
        """Nothing was begun: what was written aside goes."""
        if change.blob_id:
            with suppress(DriverError):  # left for the sweep
                await self.files.unstage(change.blob_id)
                await self._ids.settle(change.blob_id)

    # what was left in the middle
    async def settle(self) -> int:
        """End what failed in the middle in this process; how much of it. Raises DomainError: to be tried again."""
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
        """End what a writer began that is not at it any more: the file tells whether it came to its change.

        Raises StoreUnavailable when the store is not mounted.
        """
        done = True
        if is_tree(intent.body):
            path, stamp = self.parse(intent.body)
            with driver_calls():
                if intent.kind == DELETE:
                    done = await self.files.find(path) is None
                    if done:
                        with suppress(FileChanged):  # one that came there just now
                            await self.files.remove(path, stamp)  # to be sure that it stays away after a power cut
                else:
                    done = await self.files.is_published(intent.blob_id, path, stamp)
                    if not done:
                        await self.files.unstage(intent.blob_id)
        if done:
            await self.index.commit_intent(intent.id)
        else:
            await self.index.drop_intent(intent.id)
        logger.info("tree: a %s that was left in the middle is %s", intent.kind, "done" if done else "undone")
