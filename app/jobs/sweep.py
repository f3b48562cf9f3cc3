"""Takes away what dead writers left: blobs that were written but never committed (DESIGN §4, law 5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from app.crash import crash_point
from app.index.rows import IdRange, Writer, is_tree
from app.store.store import Store, driver_calls

logger = logging.getLogger("sluice.jobs")

AT_ONCE = 64
"""Ids under which something may be left that are looked at together, since on some mounts each look takes a while."""


class Sweep:
    """Remembers what it swept of writers that it could not finish with, because a store is out of service."""

    def __init__(self, store: Store, is_gone: Callable[[Writer], bool]) -> None:
        self._store = store
        self._is_gone = is_gone
        self._done: set[tuple[str, IdRange]] = set()

    async def run_once(self) -> int:
        """See `sweep`."""
        return await sweep(self._store, self._is_gone, self._done)


async def sweep(store: Store, is_gone: Callable[[Writer], bool], done: set[tuple[str, IdRange]] | None = None) -> int:
    """Sweep every writer incarnation whose process is gone, on all stores; returns how many blobs were taken away.

    Each is declared dead in a transaction of its own before anything of its is touched: from then on it cannot commit.
    A writer is left for the next time while a store of its is out of service; `done` is what was swept of others.
    """
    swept = 0
    done = set() if done is None else done
    for writer in await store.index.writers():
        if writer.state == "live":
            if not is_gone(writer):
                continue
            await store.index.declare_dead(writer.incarnation)
            crash_point("sweep.declared")
        ended = await _end_intents(store, writer.incarnation)
        # ids and rows are numbered by one sequence: no row older than a range can hold a blob of it, unless its bucket
        # was moved
        old = await store.index.ever_moved()
        ranges = [(one, ids) for ids in await store.index.ranges(writer.incarnation) for one in store.all.values()]
        packs = [pack for pack in await store.index.packs_of(writer.incarnation) if not pack.sealed]
        for one, ids in ranges:
            if ended and one.up and (one.name, ids) not in done:
                swept += await _sweep_range(one, ids, 0 if old else ids.first)
                done.add((one.name, ids))
        for pack in packs:
            if store.of(pack.store).up:
                await _seal(store.of(pack.store), pack.id)
        crash_point("sweep.swept")
        sealed = all(store.of(pack.store).up for pack in packs)
        if ended and sealed and all((one.name, ids) in done for one, ids in ranges):
            done.difference_update((one.name, ids) for one, ids in ranges)
            await store.index.forget_writer(writer.incarnation)
    if swept:
        logger.info("swept %d blobs that dead writers left", swept)
    return swept


async def _end_intents(store: Store, incarnation: int) -> bool:
    """What a dead writer was doing to plain files is done or undone, before what it wrote aside goes.

    False when a store is out of service, and so not all of it could be.
    """
    whole = True
    for intent in await store.index.intents_of(incarnation):
        if is_tree(intent.body):
            if not store.at(intent.body).up:
                whole = False
                continue
            await store.tree_at(intent.body).recover(intent)
        else:  # a delete of what was no plain file
            await store.index.commit_intent(intent.id)
        crash_point("sweep.recovered")
    return whole


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
