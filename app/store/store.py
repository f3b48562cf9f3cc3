"""The object store: S3's semantics in domain terms, without HTTP, SQL or file calls.

PUT writes a blob, makes it durable, and only then makes it visible in one index transaction (law 1). That transaction
puts what it replaces or deletes into the discard queue; nothing here removes a blob that a row may reference.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sluice_s3.app.crash import crash_point
from sluice_s3.app.errors import CommitUnknown, DomainError, StoreFull, StoreUnavailable
from sluice_s3.app.index.engine.declared import DeferredCommit
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.objects.rows import CommitResult
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.transaction import of_store
from sluice_s3.app.store.availability.circuit_breaker import CircuitBreaker
from sluice_s3.app.store.blob_ids import BlobIds
from sluice_s3.app.store.driver_errors import Timings, to_domain_error, translate_driver_errors
from sluice_s3.app.store.encryption.keyring import Keyring
from sluice_s3.app.store.etags import MD5
from sluice_s3.app.store.journals.wakeup import JournalWakeup
from sluice_s3.app.store.lifecycle.storage_classes import ARCHIVES
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.quarantine import Quarantine
from sluice_s3.storage_drivers.base import AppendRequest, BodySource, Buffer, Driver, Usage
from sluice_s3.storage_drivers.errors import DriverError
from sluice_s3.storage_drivers.layout import FILE

if TYPE_CHECKING:
    from sluice_s3.app.store.plain_files.writes import PlainFiles

logger = logging.getLogger("sluice.store")

REGISTRY_TIMEOUT_SECONDS = 30.0
"""Seconds that a new pack waits for the index before its records fail."""
REJECTED_PER_BATCH = 1000
MAX_VOIDS = 100_000
"""Blobs that failed and are not reported yet; those beyond are forgotten."""

T = TypeVar("T")


class IndexPackRegistry:
    """Registry of the driver's packs in the index. Called in the driver's threads."""

    def __init__(self, index: Index, store: str) -> None:
        self._index = index
        self._store = store
        self._loop = asyncio.get_running_loop()

    def open_pack(self) -> int:
        """See `storage_drivers.base.PackRegistry`."""
        return asyncio.run_coroutine_threadsafe(self._index.open_pack(self._store), self._loop).result(
            REGISTRY_TIMEOUT_SECONDS
        )

    def seal_pack(self, pack_id: int, size: int) -> None:
        """See `storage_drivers.base.PackRegistry`."""
        asyncio.run_coroutine_threadsafe(self._index.seal_pack(pack_id, size), self._loop).result(
            REGISTRY_TIMEOUT_SECONDS
        )


class StoredBlob(NamedTuple):
    """A blob that `Store.write_blob` wrote."""

    locator: str
    blob_id: int
    """0 for a record."""


class JournalFailure(NamedTuple):
    """Why a store refuses changes although its disk works: see `app.jobs.journals.health`."""

    reason: str
    full: bool = False
    """The disk is full: deletes go on, since they free space."""
    wrong_index: bool = False
    """The index does not belong to the data, so nothing in it may be served."""


class Store:
    """One backing store with what its operations share: index, blob ids, other stores.

    `driver` adds the store's name to locators: see `app.store.named_driver`.
    """

    def __init__(
        self,
        index: Index,
        driver: Driver,
        name: str = DEFAULT,
        sibling: Store | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self.name = name
        self.breaker = breaker
        """The circuit breaker of the mount; None for commands and tests."""
        self.index = index
        self.driver = driver
        self.ids: BlobIds = BlobIds(index) if sibling is None else sibling.ids
        self.quarantine: Quarantine = Quarantine(index) if sibling is None else sibling.quarantine
        self.keyring: Keyring = Keyring(index) if sibling is None else sibling.keyring
        self.all: dict[str, Store] = {} if sibling is None else sibling.all
        """Every store of this process by name, including this one."""
        self.classes: dict[str, str] = {} if sibling is None else sibling.classes
        """Stores of storage classes that have one; all other classes use the bucket's store."""
        self.journal_failures: dict[str, JournalFailure] = {} if sibling is None else sibling.journal_failures
        """By store name, why its journals cannot be written."""
        self.all[name] = self
        self.stored_note = of_store("stored", name)
        """The note of the index with the bytes that its buckets hold."""
        self.full = False
        """Whether it has passed a limit of its settings and refuses writes: see `app.jobs.integrity.capacity`."""
        self.journal_wakeup: JournalWakeup | None = None
        """Wakes its journal writer; None for commands and tests."""
        self.etag_kind = MD5
        """What ETags of its new objects are made of: see `app.store.etags`."""
        self.tree: PlainFiles | None = None
        """The plain files of a store of layout *tree*; its driver holds the blobs of no key."""
        self._rejected: list[tuple[str, int, int]] = []

    async def start(self) -> None:
        """Open the backing store. Raises DriverError."""
        await self.driver.start()
        if self.tree is not None:
            await self.tree.start()

    async def close(self) -> None:
        """Finish changes of plain files and stop the threads.

        Call it before the index is closed.
        """
        if self.tree is not None:
            await self.tree.close()
        await self.driver.close()

    def tree_at(self, body: str) -> PlainFiles:
        """Return the plain files that a body belongs to. Raises StoreUnavailable."""
        tree = self.at(body).tree
        if tree is None:
            raise StoreUnavailable(reason="the store of a plain file has another layout now")
        return tree

    def of(self, name: str) -> Store:
        """Return the store of that name. Raises StoreUnavailable when the settings do not have it."""
        try:
            return self.all[name]
        except KeyError:
            raise StoreUnavailable(reason=f"no store is named {name}") from None

    def at(self, locator: str) -> Store:
        """Return the store of a blob. Raises StoreUnavailable."""
        return self.of(store_of_locator(locator))

    @property
    def archives(self) -> frozenset[str]:
        """The storage classes with a store whose objects must be restored before they are read."""
        return ARCHIVES & self.classes.keys()

    @property
    def up(self) -> bool:
        """Whether the store is in service."""
        return self.breaker is None or self.breaker.up

    async def usage(self, timeout: float) -> Usage | None:
        """Return the usage of the store; None when it does not answer within `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                return await self.driver.usage()
        except (DriverError, TimeoutError):
            return None

    async def pack_bytes(self, pack_id: int) -> int:
        """Return the present size of a pack. Raises StoreUnavailable."""
        with translate_driver_errors():
            file = await self.driver.pack_file(pack_id)
        return 0 if file is None else file.size

    def open_packs(self) -> None:
        """Write small bodies into packs from now on.

        Only workers call it; other processes only read packs.
        """
        (self.breaker or self.driver).open_packs(IndexPackRegistry(self.index, self.name))

    async def close_packs(self) -> None:
        """Seal the packs. Call it before the index is closed."""
        await self.driver.close_packs()
        try:
            await self.report_rejected_records()
        except DomainError as error:
            logger.warning("%d refused records stay uncounted: %s", len(self._rejected), type(error).__name__)

    async def report_rejected_records(self) -> None:
        """Report records whose commit was refused, so that the index counts their space as dead."""
        rejected = self._rejected[:REJECTED_PER_BATCH]
        if not rejected:
            return
        del self._rejected[: len(rejected)]  # in place: threads append
        try:
            await self.index.refuse_blobs(rejected, self.name)
        except CommitUnknown:
            # They must be counted, but never twice.
            self._rejected += [(locator, pack_id, 0) for locator, pack_id, _ in rejected]
            raise
        except BaseException:
            self._rejected += rejected
            raise

    async def write(
        self,
        source: BodySource,
        timings: Timings,
        begin: Callable[[], DeferredCommit],
        make_header: Callable[[], bytes],
    ) -> CommitResult:
        """Write a body as a blob and commit the change that references it.

        `begin` begins that change; `make_header` returns the blob's recovery header. A refused commit removes the blob.
        After an unknown outcome the blob is left to the orphan sweeper, which asks the index.
        """
        piece = await source.read()
        if not piece:
            source.verify()
            return await _committed(begin(), "", timings)
        if self.full:
            raise StoreFull()
        if len(piece) == source.size and len(piece) <= self.driver.capabilities.append_limit:
            return await self._append(
                await self.ids.take_for_record(), piece, source, timings, begin, make_header
            ).future
        blob_id = await self.ids.take()
        try:
            with translate_driver_errors():
                locator = await self.driver.put(blob_id, source, timings, piece, make_header)
        except BaseException:
            await self._settle_if_gone(blob_id)
            raise
        crash_point("store.durable")
        try:
            committed = await _committed(begin(), locator, timings)
        except CommitUnknown:
            raise
        except BaseException as error:
            if isinstance(error, Exception):
                await self._settle_if_gone(blob_id, locator)
            raise
        crash_point("store.committed")
        await self.ids.settle(blob_id)
        return committed

    def _append(
        self,
        blob_id: int,
        piece: Buffer,
        source: BodySource,
        timings: Timings,
        begin: Callable[[], DeferredCommit],
        make_header: Callable[[], bytes],
    ) -> DeferredCommit:
        """Write a small body as a record; the writer of its group queues the commit."""
        deferred = begin()
        first_outcome: dict[str, str] = {}

        def on_written(entry: AppendRequest) -> None:
            if entry.error is None:
                crash_point("store.durable")
                deferred.proceed(entry.locator)
                if first_outcome.setdefault("first", "done") != "done":
                    self._reject(entry)
            else:
                if isinstance(entry.error, DriverError):
                    self._void(entry.blob_id)
                deferred.fail(to_domain_error(entry.error))

        entry = AppendRequest(blob_id, piece, source, make_header, on_written, timings)
        try:
            self.driver.append(entry)
        except BaseException as error:
            deferred.abandon()
            if isinstance(error, DriverError):
                raise to_domain_error(error) from error
            raise
        deferred.future.add_done_callback(partial(self._finish_record, entry, deferred, first_outcome, perf_counter()))
        return deferred

    def _finish_record(
        self,
        entry: AppendRequest,
        deferred: DeferredCommit,
        first_outcome: dict[str, str],
        started: float,
        future: asyncio.Future[CommitResult],
    ) -> None:
        """Note the time, and that a record without a row is dead."""
        timings = entry.timings
        timings["commit"] = perf_counter() - started - timings.get("write", 0.0) - timings.get("sync", 0.0)
        if future.cancelled():  # the commit of a cancelled request may still happen
            never_commits = deferred.abandon()
        else:
            error = future.exception()
            if error is None:
                crash_point("store.committed")
            never_commits = error is not None and not isinstance(error, CommitUnknown)
        if never_commits and first_outcome.setdefault("first", "refused") != "refused":
            self._reject(entry)

    def _reject(self, entry: AppendRequest) -> None:
        """Note a written record that no row will ever reference. Called in any thread."""
        location = self.driver.packed(entry.locator)
        if location is not None:
            self._rejected.append((entry.locator, *location))

    def _void(self, blob_id: int) -> None:
        """Note a blob that may be there, and that no rebuild may restore. Called in any thread."""
        if len(self._rejected) < MAX_VOIDS:  # the index may be down as well
            self._rejected.append((f"{FILE}{blob_id:016x}", 0, 0))

    # blobs with a commit of their own
    async def write_blob(self, source: BodySource, make_header: Callable[[], bytes]) -> StoredBlob:
        """Write a blob that no row references yet.

        The caller calls `confirm_blob` once a row does, else `discard_blob`.
        """
        if self.full:
            raise StoreFull()
        piece = await source.read()
        if len(piece) == source.size and len(piece) <= self.driver.capabilities.append_limit:
            return StoredBlob(await self._write_record(piece, source, make_header), 0)
        blob_id = await self.ids.take()
        try:
            with translate_driver_errors():
                return StoredBlob(await self.driver.put(blob_id, source, {}, piece, make_header), blob_id)
        except BaseException:
            await self._settle_if_gone(blob_id)
            raise

    async def _write_record(self, piece: Buffer, source: BodySource, make_header: Callable[[], bytes]) -> str:
        loop = asyncio.get_running_loop()
        written = asyncio.Event()

        def on_written(_: AppendRequest) -> None:
            loop.call_soon_threadsafe(written.set)

        entry = AppendRequest(await self.ids.take_for_record(), piece, source, make_header, on_written, {})
        with translate_driver_errors():
            self.driver.append(entry)
        await written.wait()
        if entry.error is not None:
            raise to_domain_error(entry.error)
        return entry.locator

    async def confirm_blob(self, blob: StoredBlob) -> None:
        """Note that a row references the blob."""
        if blob.blob_id:
            await self.ids.settle(blob.blob_id)

    async def discard_blob(self, blob: StoredBlob) -> None:
        """Remove a blob that no row references or ever will."""
        location = self.driver.packed(blob.locator)
        if location is not None:
            self._rejected.append((blob.locator, *location))
        else:
            await self._settle_if_gone(blob.blob_id, blob.locator)

    async def _settle_if_gone(self, blob_id: int, locator: str = "") -> None:
        """Remove what may exist under an id, or at a locator, whatever failed: the mount may have failed as well.

        Where that is not possible the blob is void, and its id stays unsettled, for the orphan sweeper.
        """
        try:
            await (self.driver.discard(locator) if locator else self.driver.discard_id(blob_id))
        except DriverError:
            self._void(blob_id)
            return
        await self.ids.settle(blob_id)


async def _committed(deferred: DeferredCommit, locator: str, timings: Timings) -> CommitResult:
    deferred.proceed(locator)
    return await timed(deferred.future, timings)


async def timed(commit: Awaitable[T], timings: Timings) -> T:
    """Await a commit and add its seconds to `timings["commit"]`."""
    started = perf_counter()
    try:
        return await commit
    finally:
        timings["commit"] = timings.get("commit", 0.0) + perf_counter() - started
