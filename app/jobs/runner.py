"""One worker at a time runs what happens later; when it dies another takes its turn (`app.jobs.turns`).

Each store has loops of its own, so that one that hangs stops nothing of the others. So has what belongs to no store or
to all of them. With several gateways there are several turns, too, and everybody looks who is dead: only then can the
turns of the dead be taken.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from app.errors import DomainError
from app.index.rows import Writer
from app.jobs.compaction import Compactor
from app.jobs.decisions import Decisions
from app.jobs.garbage import Garbage
from app.jobs.scrub import Scrubber
from app.jobs.space import Space
from app.jobs.sweep import Sweep
from app.jobs.tree import TreeJobs
from app.jobs.turns import Turn, Turns
from app.store.calls import driver_calls
from app.store.store import Store

logger = logging.getLogger("sluice.jobs")

PERIOD = 1.0
"""Seconds between rounds."""
LAST_ROUND = 10.0
"""Seconds that a stopping worker may take to write down what was decided last."""

Job = Callable[[], Awaitable[object]]


class StoreJobs:
    """What is done for one store."""

    def __init__(
        self,
        store: Store,
        garbage: Garbage,
        decisions: Decisions | None = None,
        scrubber: Scrubber | None = None,
        compactor: Compactor | None = None,
        space: Space | None = None,
        tree: TreeJobs | None = None,
    ) -> None:
        self._store = store
        self._tree = tree
        self._decisions = decisions
        self._scrubber = scrubber
        self._everywhere: list[Job] = [store.write_down_refused, self._forget_unlinked]
        if space is not None:
            self._everywhere.append(space.look)
        if store.tree is not None:
            self._everywhere.append(store.tree.settle)
        self._elected: list[Job] = [] if decisions is None else [decisions.run_once]
        self._elected.append(garbage.run_once)
        if compactor is not None:
            self._elected.append(compactor.run_once)
        if space is not None:
            self._elected.append(space.count)

    async def run(self, turn: Turn) -> None:
        """Until cancelled, or until a turn that was had is over: what is kept in memory here is worth nothing then."""
        long: list[asyncio.Task[None]] = []
        had = False
        try:
            while True:
                for job in self._everywhere if self._store.up else ():
                    await attempt(self._store.name, job)
                if had and turn.can_leave and not self._store.up:
                    return  # others may reach the store
                if self._store.up and (mine := await _is_mine(turn)) is not None:
                    lost, had = had and not mine, mine
                    if lost:
                        return
                if had and self._store.up:
                    with turn.using():
                        if not long:
                            long = [asyncio.create_task(job) for job in self._long()]
                        for job in self._elected:
                            await attempt(self._store.name, job)
                await self._pause(turn, had=had)
        finally:
            if self._store.bell is not None:
                self._store.bell.deafen()
            for task in long:
                task.cancel()
            await asyncio.gather(*long, return_exceptions=True)
            if had:
                with turn.using():
                    await self._last_round()
                with suppress(DomainError):
                    await turn.leave()

    async def _pause(self, turn: Turn, *, had: bool) -> None:
        """Until the next round. What somebody waits for is written down meanwhile, if this process has the turn."""
        bell, decisions = self._store.bell, self._decisions
        if bell is None or decisions is None or not had:
            await asyncio.sleep(PERIOD)
            return
        until = monotonic() + PERIOD
        while (left := until - monotonic()) > 0:
            if await bell.wait(left) and self._store.up:
                with turn.using():
                    await attempt(self._store.name, decisions.run_once)

    def _long(self) -> Iterator[Coroutine[Any, Any, None]]:
        """What goes on beside the others, which must not wait for it."""
        if self._scrubber is not None:
            yield self._scrubber.run()
        if self._tree is not None:
            yield self._repeat_tree(self._tree)
            yield self._tree.watch()

    async def _repeat_tree(self, tree: TreeJobs) -> None:
        while True:
            if self._store.up:
                await attempt(self._store.name, tree.run_once)
            await asyncio.sleep(PERIOD)

    async def _last_round(self) -> None:
        """Write down what was decided last."""
        if self._decisions is None or not self._store.up:
            return
        try:
            async with asyncio.timeout(LAST_ROUND):
                await attempt(self._store.name, self._decisions.run_once)
        except TimeoutError:
            logger.warning("jobs of store %s: what was decided last is not written down", self._store.name)

    async def _forget_unlinked(self) -> None:
        with driver_calls():
            await self._store.driver.forget_unlinked()


class Jobs:
    """Runs the jobs of all stores, each of which `make` makes anew for a turn, and some that belong to no one store."""

    def __init__(
        self,
        turns: Turns,
        store: Store,
        is_gone: Callable[[Writer], bool],
        make: Callable[[Store], StoreJobs],
        others: Mapping[str, Job] | None = None,
    ) -> None:
        self._turns = turns
        self._stores = list(store.all.values())
        self._make = make
        self._sweep = Sweep(store, is_gone)
        self._others = others or {}

    async def run(self) -> None:
        """Until cancelled."""
        loops = [self._turn_by_turn(store) for store in self._stores]
        loops += [self._repeat("sweep", partial(self._sweep.sweep, store), store.name) for store in self._stores]
        loops += [self._repeat("sweep", self._sweep.forget)]
        loops += [self._repeat(None if self._turns.many_hosts else "sweep", self._sweep.declare)]
        loops += [self._repeat(name, job) for name, job in self._others.items()]
        try:
            async with asyncio.TaskGroup() as group:  # cancels each once: a second time would cut off the last round
                for loop in loops:
                    group.create_task(loop)
        finally:
            await self._turns.close()

    async def _turn_by_turn(self, store: Store) -> None:
        turn = self._turns.turn(f"store:{store.name}")
        while True:
            await self._make(store).run(turn)
            await asyncio.sleep(PERIOD)

    async def _repeat(self, name: str | None, job: Job, store: str = "") -> None:
        """Again and again, in the turn of that name, or without one."""
        turn = None if name is None else self._turns.turn(name)
        while True:
            if turn is None:
                await attempt(store, job)
            elif await _is_mine(turn):
                with turn.using():
                    await attempt(store, job)
            await asyncio.sleep(PERIOD)


async def _is_mine(turn: Turn) -> bool | None:
    """Whether this process has the turn; None when the index cannot say so now."""
    try:
        return await turn.mine()
    except DomainError:
        return None


async def attempt(store: str, job: Job) -> None:
    """Run a job once; what it raises is logged, since it is tried again."""
    of = f" of store {store}" if store else ""
    try:
        await job()
    except DomainError as error:
        logger.warning("jobs%s: %s, to be tried again", of, type(error).__name__)
    except Exception:
        logger.exception("jobs%s failed, to be tried again", of)
