"""The object store: what S3 means, in domain words. No HTTP, no SQL, no file calls.

PUT writes a blob, makes it durable, and only then one index transaction makes it visible (law 1). What a transaction
replaces or deletes goes to the discard queue inside it; nothing here ever takes a blob away that a row may hold.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from app.crash import crash_point
from app.errors import CommitUnknown, DomainError, NotNow, StoreFull, StoreUnavailable
from app.index.base import Chained, Index
from app.index.rows import Committed
from app.index.schema import DEFAULT
from app.index.steps import of_store
from app.store.bell import Bell
from app.store.blobs import BlobIds
from app.store.breaker import Breaker
from app.store.calls import Timings, driver_calls, translated
from app.store.keyring import Keyring
from app.store.place import owner
from app.store.quarantine import Quarantine
from app.store.transitions import ARCHIVES
from storage_drivers.base import Append, Buffer, Driver, Source, Usage
from storage_drivers.errors import DriverError

if TYPE_CHECKING:
    from app.store.tree import Tree

logger = logging.getLogger("sluice.store")

BOOK_TIMEOUT = 30.0
"""Seconds that a new pack waits for the index; its records fail then."""
REFUSED_AT_ONCE = 1000

T = TypeVar("T")


class Book:
    """Where the driver's packs are written down: in the index. Called in the driver's threads."""

    def __init__(self, index: Index, store: str) -> None:
        self._index = index
        self._store = store
        self._loop = asyncio.get_running_loop()

    def open_pack(self) -> int:
        """See `storage_drivers.base.PackBook`."""
        return asyncio.run_coroutine_threadsafe(self._index.open_pack(self._store), self._loop).result(BOOK_TIMEOUT)

    def seal_pack(self, pack_id: int, size: int) -> None:
        """See `storage_drivers.base.PackBook`."""
        asyncio.run_coroutine_threadsafe(self._index.seal_pack(pack_id, size), self._loop).result(BOOK_TIMEOUT)


class Kept(NamedTuple):
    """A blob that was written by `Store.keep`."""

    locator: str
    blob_id: int
    """0 for a record."""


class Store:
    """One backing store, and what operations share beside it: the index, blob ids, and the other stores.

    `driver` puts the store's name into locators: see `app.store.place`.
    """

    def __init__(
        self,
        index: Index,
        driver: Driver,
        name: str = DEFAULT,
        beside: Store | None = None,
        breaker: Breaker | None = None,
    ) -> None:
        self.name = name
        self.breaker = breaker
        """Watches over the mount; None for commands and tests."""
        self.index = index
        self.driver = driver
        self.ids: BlobIds = BlobIds(index) if beside is None else beside.ids
        self.quarantine: Quarantine = Quarantine(index) if beside is None else beside.quarantine
        self.keyring: Keyring = Keyring(index) if beside is None else beside.keyring
        self.all: dict[str, Store] = {} if beside is None else beside.all
        """Every store of this process by its name, this one too."""
        self.classes: dict[str, str] = {} if beside is None else beside.classes
        """The stores of storage classes that have one; objects of all other classes are on the stores of buckets."""
        self.all[name] = self
        self.stored_note = of_store("stored", name)
        """Note of the index that says how many bytes its buckets hold."""
        self.full = False
        """It has passed a limit of its settings, and takes no more: see `app.jobs.space`."""
        self.bell: Bell | None = None
        """Who writes its journals hears it; None for commands and tests."""
        self.tree: Tree | None = None
        """The plain files, in a store of layout *tree*; its driver then keeps what belongs to no key."""
        self._refused: list[tuple[str, int, int]] = []

    async def start(self) -> None:
        """Open the backing store. Raises DriverError."""
        await self.driver.start()
        if self.tree is not None:
            await self.tree.start()

    async def close(self) -> None:
        """Stop its threads; changes of plain files are finished first, so call it before the index is closed."""
        if self.tree is not None:
            await self.tree.close()
        await self.driver.close()

    def tree_at(self, body: str) -> Tree:
        """The plain files that a body is one of. Raises StoreUnavailable."""
        tree = self.at(body).tree
        if tree is None:
            raise StoreUnavailable(reason="the store of a plain file has another layout now")
        return tree

    def of(self, name: str) -> Store:
        """The store of that name. Raises StoreUnavailable when it is not among the settings."""
        try:
            return self.all[name]
        except KeyError:
            raise StoreUnavailable(reason=f"no store is named {name}") from None

    def at(self, locator: str) -> Store:
        """The store that a blob lies in. Raises StoreUnavailable."""
        return self.of(owner(locator))

    @property
    def archives(self) -> frozenset[str]:
        """The storage classes that have a store and whose objects must be restored before they are read."""
        return ARCHIVES & self.classes.keys()

    @property
    def up(self) -> bool:
        """The store is in service."""
        return self.breaker is None or self.breaker.up

    async def usage(self, patience: float) -> Usage | None:
        """How full the store is; None when it does not answer within `patience` seconds."""
        try:
            async with asyncio.timeout(patience):
                return await self.driver.usage()
        except (DriverError, TimeoutError):
            return None

    async def pack_bytes(self, pack_id: int) -> int:
        """How large a pack is by now. Raises StoreUnavailable."""
        with driver_calls():
            file = await self.driver.pack_file(pack_id)
        return 0 if file is None else file.size

    def open_packs(self) -> None:
        """Write small bodies into packs from now on. For the workers; other processes only read them."""
        (self.breaker or self.driver).open_packs(Book(self.index, self.name))

    async def close_packs(self) -> None:
        """Seal the packs; call it before the index is closed."""
        await self.driver.close_packs()
        try:
            await self.write_down_refused()
        except DomainError as error:
            logger.warning("%d refused records stay uncounted: %s", len(self._refused), type(error).__name__)

    async def write_down_refused(self) -> None:
        """Tell the index of records whose commit it refused, so that their space is counted dead."""
        refused = self._refused[:REFUSED_AT_ONCE]
        if not refused:
            return
        del self._refused[: len(refused)]  # in place: threads append
        try:
            await self.index.refuse_blobs(refused, self.name)
        except CommitUnknown:
            # to be written down for certain, but never to be counted twice
            self._refused += [(locator, pack_id, 0) for locator, pack_id, _ in refused]
            raise
        except BaseException:
            self._refused += refused
            raise

    async def write(
        self, source: Source, timings: Timings, begin: Callable[[], Chained], claim: Callable[[], bytes]
    ) -> Committed:
        """Write a body as a blob and commit what names it: `begin` begins that change, `claim` goes with the blob.

        When the commit is refused the blob is taken away again; when its outcome is unknown the blob is left to the
        sweep, which asks the index.
        """
        piece = await source.read()
        if not piece:
            source.verify()
            return await _committed(begin(), "", timings)
        if self.full:
            raise StoreFull()
        if len(piece) == source.size and len(piece) <= self.driver.capabilities.append_limit:
            return await self._append(await self.ids.take_for_record(), piece, source, timings, begin, claim).future
        blob_id = await self.ids.take()
        try:
            with driver_calls():
                locator = await self.driver.put(blob_id, source, timings, piece, claim)
        except BaseException as error:
            # a mount that failed may hold something of it all the same
            if not isinstance(error, DomainError) or await self._is_gone(blob_id):
                await self.ids.settle(blob_id)
            raise
        crash_point("store.durable")
        try:
            committed = await _committed(begin(), locator, timings)
        except CommitUnknown:
            raise
        except BaseException as error:
            if isinstance(error, Exception):
                await self._take_back(blob_id, locator)
            raise
        crash_point("store.committed")
        await self.ids.settle(blob_id)
        return committed

    def begin_write(
        self,
        piece: Buffer,
        source: Source,
        timings: Timings,
        begin: Callable[[], Chained],
        claim: Callable[[], bytes],
    ) -> asyncio.Future[Committed]:
        """`write` of a body that is here whole, without an await. Raises NotNow, and nothing has happened then."""
        if not piece:
            source.verify()
            chained = begin()
            chained.proceed("")
            return chained.future
        if self.full:
            raise StoreFull()
        if len(piece) > self.driver.capabilities.append_limit:
            raise NotNow
        return self._append(self.ids.take_for_record_now(), piece, source, timings, begin, claim).future

    def _append(
        self,
        blob_id: int,
        piece: Buffer,
        source: Source,
        timings: Timings,
        begin: Callable[[], Chained],
        claim: Callable[[], bytes],
    ) -> Chained:
        """Write a small body as a record; whoever writes its group queues the commit."""
        chained = begin()
        came: dict[str, str] = {}

        def done(entry: Append) -> None:
            if entry.error is None:
                crash_point("store.durable")
                chained.proceed(entry.locator)
                if came.setdefault("first", "done") != "done":
                    self._refuse(entry)
            else:
                chained.fail(translated(entry.error))

        entry = Append(blob_id, piece, source, claim, done, timings)
        try:
            with driver_calls():
                self.driver.append(entry)
        except BaseException:
            chained.abandon()
            raise
        chained.future.add_done_callback(partial(self._ended, entry, chained, came, perf_counter()))
        return chained

    def _ended(
        self, entry: Append, chained: Chained, came: dict[str, str], started: float, future: asyncio.Future[Committed]
    ) -> None:
        """Note the time; and the record for dead when no row will ever hold it."""
        timings = entry.timings
        timings["commit"] = perf_counter() - started - timings.get("write", 0.0) - timings.get("sync", 0.0)
        if future.cancelled():  # a cancelled request may be committed all the same
            never = chained.abandon()
        else:
            error = future.exception()
            if error is None:
                crash_point("store.committed")
            never = error is not None and not isinstance(error, CommitUnknown)
        if never and came.setdefault("first", "refused") != "refused":
            self._refuse(entry)

    def _refuse(self, entry: Append) -> None:
        """A record that is written and that no row will ever hold. Called in any thread."""
        packed = self.driver.packed(entry.locator)
        if packed is not None:
            self._refused.append((entry.locator, *packed))

    # blobs that are named by a commit of their own
    async def keep(self, source: Source, claim: Callable[[], bytes]) -> Kept:
        """Write a blob that no row holds yet. Whoever asks for it calls `settle` once one does, else `drop`."""
        if self.full:
            raise StoreFull()
        piece = await source.read()
        if len(piece) == source.size and len(piece) <= self.driver.capabilities.append_limit:
            return Kept(await self._keep_record(piece, source, claim), 0)
        blob_id = await self.ids.take()
        try:
            with driver_calls():
                return Kept(await self.driver.put(blob_id, source, {}, piece, claim), blob_id)
        except BaseException as error:
            if not isinstance(error, DomainError) or await self._is_gone(blob_id):
                await self.ids.settle(blob_id)
            raise

    async def _keep_record(self, piece: Buffer, source: Source, claim: Callable[[], bytes]) -> str:
        loop = asyncio.get_running_loop()
        written = asyncio.Event()

        def done(_: Append) -> None:
            loop.call_soon_threadsafe(written.set)

        entry = Append(await self.ids.take_for_record(), piece, source, claim, done, {})
        with driver_calls():
            self.driver.append(entry)
        await written.wait()
        if entry.error is not None:
            raise translated(entry.error)
        return entry.locator

    async def settle(self, kept: Kept) -> None:
        """A row holds the blob."""
        if kept.blob_id:
            await self.ids.settle(kept.blob_id)

    async def drop(self, kept: Kept) -> None:
        """No row holds the blob, and none will."""
        packed = self.driver.packed(kept.locator)
        if packed is not None:
            self._refused.append((kept.locator, *packed))
        else:
            await self._take_back(kept.blob_id, kept.locator)

    async def _is_gone(self, blob_id: int) -> bool:
        """Take away what may be left under an id; False when it is left to the sweep."""
        try:
            await self.driver.discard_id(blob_id)
        except DriverError:
            return False
        return True

    async def _take_back(self, blob_id: int, locator: str) -> None:
        try:
            await self.driver.discard(locator)
        except DriverError:
            return
        await self.ids.settle(blob_id)


async def _committed(chained: Chained, locator: str, timings: Timings) -> Committed:
    chained.proceed(locator)
    return await timed(chained.future, timings)


async def timed(commit: Awaitable[T], timings: Timings) -> T:
    """Await a commit and add its seconds to `timings["commit"]`."""
    started = perf_counter()
    try:
        return await commit
    finally:
        timings["commit"] = timings.get("commit", 0.0) + perf_counter() - started
