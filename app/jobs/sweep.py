"""Takes away what dead writers left: blobs that were written but never committed (DESIGN §4, law 5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from app.crash import crash_point
from app.index.rows import IdRange, Writer, is_tree
from app.store.calls import driver_calls
from app.store.place import owner
from app.store.store import Store

logger = logging.getLogger("sluice.jobs")

AT_ONCE = 64
"""Ids under which something may be left that are looked at together, since on some mounts each look takes a while."""


class Sweep:
    """Of all stores. Each is swept for itself, so that one that hangs holds up no other.

    A writer is forgotten once every store is swept of what it left; what of that is done is remembered here.
    """

    def __init__(self, store: Store, is_gone: Callable[[Writer], bool]) -> None:
        self._store = store
        self._index = store.index
        self._is_gone = is_gone
        self._swept: dict[int, set[str]] = {}
        """Of each dead writer the stores where nothing of it is left."""
        self._done: set[tuple[str, IdRange]] = set()

    async def run_once(self) -> int:
        """Sweep every writer incarnation whose process is gone; returns how many blobs were taken away.

        On all stores, but for those out of service. Raises what one of them did, after the others are swept.
        """
        await self.declare()
        found = await asyncio.gather(*map(self.sweep, self._store.all.values()), return_exceptions=True)
        await self.forget()
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return sum(one for one in found if isinstance(one, int))

    async def declare(self) -> None:
        """Declare dead whose process is gone, each in a transaction of its own: from then on it cannot commit.

        Before anything of its is touched. What it was doing that is in the index alone is ended.
        """
        for writer in await self._index.writers():
            if writer.state == "live":
                if not self._is_gone(writer):
                    continue
                await self._index.declare_dead(writer.incarnation)
                crash_point("sweep.declared")
            for intent in await self._index.intents_of(writer.incarnation):
                if not is_tree(intent.body):  # a delete of what was no plain file
                    await self._index.commit_intent(intent.id)
                    crash_point("sweep.recovered")

    async def sweep(self, store: Store) -> int:
        """Take away what dead writers left on one store, if it is in service; returns how many blobs. DomainError."""
        swept = 0
        for writer in await self._index.writers():
            if writer.state != "live" and store.up and store.name not in self._swept.get(writer.incarnation, ()):
                swept += await self._sweep_writer(store, writer.incarnation)
        if swept:
            of = "" if len(store.all) == 1 else f" on store {store.name}"
            logger.info("swept %d blobs that dead writers left%s", swept, of)
        return swept

    async def _sweep_writer(self, store: Store, incarnation: int) -> int:
        await _end_intents(store, incarnation)
        # ids and rows are numbered by one sequence: no row older than a range can hold a blob of it, unless its bucket
        # was moved
        old = await self._index.ever_moved()
        swept = 0
        for ids in await self._index.ranges(incarnation):
            if (store.name, ids) not in self._done:
                swept += await _sweep_range(store, ids, 0 if old else ids.first)
                self._done.add((store.name, ids))
        for pack in await self._index.packs_of(incarnation):
            if pack.store == store.name and not pack.sealed:
                await _seal(store, pack.id)
        crash_point("sweep.swept")
        self._swept.setdefault(incarnation, set()).add(store.name)
        return swept

    async def forget(self) -> None:
        """Forget the writers of which nothing is left on any store."""
        for incarnation, stores in list(self._swept.items()):
            if stores < self._store.all.keys() or await self._left(incarnation):
                continue
            await self._index.forget_writer(incarnation)
            del self._swept[incarnation]
            self._done = {(name, ids) for name, ids in self._done if ids.incarnation != incarnation}

    async def _left(self, incarnation: int) -> bool:
        """Something of it is on a store that the settings do not name."""
        packs = await self._index.packs_of(incarnation)
        return any(not pack.sealed for pack in packs) or bool(await self._index.intents_of(incarnation))


async def sweep(store: Store, is_gone: Callable[[Writer], bool]) -> int:
    """Sweep once: see `Sweep.run_once`."""
    return await Sweep(store, is_gone).run_once()


async def _end_intents(store: Store, incarnation: int) -> None:
    """What a dead writer was doing to plain files is done or undone, before what it wrote aside goes."""
    for intent in await store.index.intents_of(incarnation):
        if is_tree(intent.body) and owner(intent.body) == store.name:
            await store.tree_at(intent.body).recover(intent)
            crash_point("sweep.recovered")


async def _seal(store: Store, pack_id: int) -> None:
    """Nothing is added any more to a dead writer's pack. What it never committed there, compaction finds."""
    with driver_calls():
        file = await store.driver.pack_file(pack_id)
    if file is None:
        await store.index.forget_pack(pack_id)
    else:
        await store.index.seal_pack(pack_id, file.size, swept=True)


async def _sweep_range(store: Store, ids: IdRange, since: int) -> int:
    locators = {store.driver.locator(blob_id): blob_id for blob_id in range(ids.first, ids.last + 1)}
    held = await store.index.held(list(locators), since)
    left = [blob_id for locator, blob_id in locators.items() if locator not in held]
    swept = 0
    with driver_calls():
        for first in range(0, len(left), AT_ONCE):
            swept += sum(await asyncio.gather(*map(store.driver.discard_id, left[first : first + AT_ONCE])))
        if store.tree is not None:
            unstage = store.tree.files.unstage
            for first in range(ids.first, ids.last + 1, AT_ONCE):
                some = range(first, min(first + AT_ONCE, ids.last + 1))
                swept += sum(await asyncio.gather(*map(unstage, some)))
    return swept
