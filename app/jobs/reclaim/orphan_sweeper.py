"""The orphan sweeper: it removes blobs that dead writers never committed (law 5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sluice_s3.app.crash import crash_point
from sluice_s3.app.index.cluster.rows import IdRange, Writer
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.jobs")

CONCURRENCY = 64
"""Ids with possible orphans that are checked concurrently, since on some mounts each check is slow."""


class OrphanSweeper:
    """The orphan sweeper of all stores.

    Each store is swept independently, so a store that hangs delays no other. A writer is deleted once every store is
    swept of its blobs; progress is held in memory here.
    """

    def __init__(self, store: Store, is_dead: Callable[[Writer], bool]) -> None:
        self._store = store
        self._index = store.index
        self._is_dead = is_dead
        self._swept: dict[int, set[str]] = {}
        """By dead writer, the stores without anything of it."""
        self._swept_ranges: set[tuple[str, IdRange]] = set()

    async def run_once(self) -> int:
        """Sweep every dead writer incarnation; return how many blobs were removed.

        It sweeps all stores that are in service. Raises an error of one of them after the others are swept.
        """
        await self.declare_dead()
        results = await asyncio.gather(*map(self.sweep, self._store.all.values()), return_exceptions=True)
        await self.forget_swept_writers()
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return sum(result for result in results if isinstance(result, int))

    async def declare_dead(self) -> None:
        """Declare writers dead whose process is gone, each in its own transaction.

        From then on they cannot commit, and only then are their blobs touched. What they were doing in the index alone
        is ended.
        """
        for writer in await self._index.writers():
            if writer.state == "live":
                if not self._is_dead(writer):
                    continue
                await self._index.declare_dead(writer.incarnation)
                crash_point("sweep.declared")
            for intent in await self._index.intents_of(writer.incarnation):
                if not is_plain_file(intent.body):  # a delete of an object that was no plain file
                    await self._index.commit_intent(intent.id)
                    crash_point("sweep.recovered")

    async def sweep(self, store: Store) -> int:
        """Sweep one store, if it is in service; return how many blobs were removed.

        Raises DomainError.
        """
        swept = 0
        for writer in await self._index.writers():
            if writer.state != "live" and store.up and store.name not in self._swept.get(writer.incarnation, ()):
                swept += await self._sweep_writer(store, writer.incarnation)
        if swept:
            of = "" if len(store.all) == 1 else f" on store {store.name}"
            logger.info("swept %d blobs that dead writers left%s", swept, of)
        return swept

    async def _sweep_writer(self, store: Store, incarnation: int) -> int:
        await _recover_intents(store, incarnation)
        # One sequence numbers ids and rows: no row older than a range can reference a blob of it, unless its bucket
        # moved.
        any_moved = await self._index.ever_moved()
        swept = 0
        for ids in await self._index.ranges(incarnation):
            if (store.name, ids) not in self._swept_ranges:
                swept += await _sweep_range(store, ids, 0 if any_moved else ids.first)
                self._swept_ranges.add((store.name, ids))
        for pack in await self._index.packs_of(incarnation):
            if pack.store == store.name and not pack.sealed:
                await _seal(store, pack.id)
        crash_point("sweep.swept")
        self._swept.setdefault(incarnation, set()).add(store.name)
        return swept

    async def forget_swept_writers(self) -> None:
        """Delete writers that have left nothing on any store."""
        if not self._swept:
            return
        orphaned = {writer.incarnation for writer in await self._index.writers() if self._index.is_orphaned(writer)}
        for incarnation, stores in list(self._swept.items()):
            if incarnation in orphaned or stores < self._store.all.keys() or await self._has_leftovers(incarnation):
                continue
            await self._index.forget_writer(incarnation)
            del self._swept[incarnation]
            self._swept_ranges = {(name, ids) for name, ids in self._swept_ranges if ids.incarnation != incarnation}

    async def _has_leftovers(self, incarnation: int) -> bool:
        """Return whether something of it is on a store that the settings do not name."""
        packs = await self._index.packs_of(incarnation)
        return any(not pack.sealed for pack in packs) or bool(await self._index.intents_of(incarnation))


async def sweep(store: Store, is_dead: Callable[[Writer], bool]) -> int:
    """Sweep once: see `OrphanSweeper.run_once`."""
    return await OrphanSweeper(store, is_dead).run_once()


async def _recover_intents(store: Store, incarnation: int) -> None:
    """Finish or undo a dead writer's changes of plain files, before its temporary files go."""
    for intent in await store.index.intents_of(incarnation):
        if is_plain_file(intent.body) and store_of_locator(intent.body) == store.name:
            await store.tree_at(intent.body).recover(intent)
            crash_point("sweep.recovered")


async def _seal(store: Store, pack_id: int) -> None:
    """Seal a dead writer's pack. Compaction finds what was never committed there."""
    with translate_driver_errors():
        file = await store.driver.pack_file(pack_id)
    if file is None:
        await store.index.forget_pack(pack_id)
    else:
        await store.index.seal_pack(pack_id, file.size, swept=True)


async def _sweep_range(store: Store, ids: IdRange, since: int) -> int:
    locators = {store.driver.locator(blob_id): blob_id for blob_id in range(ids.first, ids.last + 1)}
    referenced = await store.index.find_referenced(list(locators), since)
    orphans = [blob_id for locator, blob_id in locators.items() if locator not in referenced]
    swept = 0
    with translate_driver_errors():
        for first in range(0, len(orphans), CONCURRENCY):
            swept += sum(await asyncio.gather(*map(store.driver.discard_id, orphans[first : first + CONCURRENCY])))
        if store.tree is not None:
            unstage = store.tree.files.unstage
            for first in range(ids.first, ids.last + 1, CONCURRENCY):
                batch = range(first, min(first + CONCURRENCY, ids.last + 1))
                swept += sum(await asyncio.gather(*map(unstage, batch)))
    return swept
