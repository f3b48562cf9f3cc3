"""The object store: what S3 means, in domain words. No HTTP, no SQL, no file calls.

PUT writes a blob, makes it durable, and only then one index transaction makes it visible (law 1). What a transaction
replaces or deletes goes to the discard queue inside it; nothing here ever takes a blob away that a row may hold.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import TypeVar

from app.crash import crash_point
from app.errors import CommitUnknown, DataDamaged, StoreFull, StoreUnavailable
from app.index.base import Index
from app.index.rows import Committed
from app.store.blobs import BlobIds
from storage_drivers import errors as driver_errors
from storage_drivers.base import Driver, Source

logger = logging.getLogger("sluice.store")

Timings = dict[str, float]
T = TypeVar("T")


@contextmanager
def driver_calls() -> Iterator[None]:
    """Translate what a driver raises into domain errors, in one place."""
    try:
        yield
    except driver_errors.StoreFull as error:
        raise StoreFull() from error
    except (driver_errors.BlobMissing, driver_errors.BlobDamaged) as error:
        logger.error("integrity alarm: %s: %s", type(error).__name__, error)
        raise DataDamaged() from error
    except driver_errors.DriverError as error:
        raise StoreUnavailable() from error


class Store:
    """The parts that every operation shares: index, driver, blob ids."""

    def __init__(self, index: Index, driver: Driver) -> None:
        self.index = index
        self.driver = driver
        self.ids = BlobIds(index)

    async def write(self, source: Source, timings: Timings, commit: Callable[[str], Awaitable[Committed]]) -> Committed:
        """Write a body as a blob and commit what names it; `commit` gets the blob's locator (empty for 0 bytes).

        When the commit is refused the blob is taken away again; when its outcome is unknown the blob is left to the
        sweep, which asks the index.
        """
        if source.size == 0:
            await source.read()
            source.verify()
            return await timed(commit(""), timings)
        blob_id = await self.ids.take()
        try:
            with driver_calls():
                locator = await self.driver.put(blob_id, source, timings)
        except BaseException:
            await self.ids.settle(blob_id)
            raise
        if source.size == 0:  # known only now: an empty body has no blob
            await self._take_back(blob_id, locator)
            return await timed(commit(""), timings)
        crash_point("store.durable")
        try:
            committed = await timed(commit(locator), timings)
        except CommitUnknown:
            raise
        except BaseException as error:
            if isinstance(error, Exception):
                await self._take_back(blob_id, locator)
            raise
        crash_point("store.committed")
        await self.ids.settle(blob_id)
        return committed

    async def _take_back(self, blob_id: int, locator: str) -> None:
        try:
            await self.driver.discard(locator)
        except driver_errors.DriverError:
            return
        await self.ids.settle(blob_id)


async def timed(commit: Awaitable[T], timings: Timings) -> T:
    """Await a commit and add its seconds to `timings["commit"]`."""
    started = perf_counter()
    try:
        return await commit
    finally:
        timings["commit"] = timings.get("commit", 0.0) + perf_counter() - started
