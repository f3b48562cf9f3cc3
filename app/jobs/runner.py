"""One worker at a time runs what happens later; when it dies another takes over, because the kernel drops its lock.

Each store has loops of its own, so that one that hangs stops nothing of the others. So has what belongs to no store or
to all of them.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path
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
from app.store.store import Store, driver_calls

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

    async def run(self, elected: Callable[[], bool]) -> None:
        """Until cancelled; `elected` says whether this is the worker that does what only one may do."""
        long: list[asyncio.Task[None]] = []
        try:
            while True:
                for job in self._everywhere if self._store.up else ():
                    await attempt(self._store.name, job)
                if elected() and self._store.up:
                    if not long:
                        long = [asyncio.create_task(job) for job in self._long()]
                    for job in self._elected:
                        await attempt(self._store.name, job)
                await asyncio.sleep(PERIOD)
        finally:
            for task in long:
                task.cancel()
            await asyncio.gather(*long, return_exceptions=True)

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

    async def last_round(self) -> None:
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
    """Runs the jobs of all stores; what only one worker may do in the one that holds `lock_path`."""

    def __init__(
        self,
        lock_path: Path,
        store: Store,
        is_gone: Callable[[Writer], bool],
        stores: Sequence[StoreJobs],
        others: Sequence[Job] = (),
    ) -> None:
        self._lock_path = lock_path
        self._sweep = Sweep(store, is_gone)
        self._all = store.all
        self._stores = stores
        self._others = others
        self._lock: int | None = None

    async def run(self) -> None:
        """Until cancelled."""
        loops = [jobs.run(self._elect) for jobs in self._stores]
        loops += [self._repeat(partial(self._sweep.sweep, store), name) for name, store in self._all.items()]
        loops += [self._repeat(job) for job in (self._sweep.declare, self._sweep.forget, *self._others)]
        tasks = [asyncio.create_task(loop) for loop in loops]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._lock is not None:
                await asyncio.gather(*(jobs.last_round() for jobs in self._stores))
                os.close(self._lock)
                self._lock = None

    async def _repeat(self, job: Job, store: str = "") -> None:
        while True:
            if self._elect():
                await attempt(store, job)
            await asyncio.sleep(PERIOD)

    def _elect(self) -> bool:
        if self._lock is not None:
            return True
        descriptor = os.open(self._lock_path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True


async def attempt(store: str, job: Job) -> None:
    """Run a job once; what it raises is logged, since it is tried again."""
    of = f" of store {store}" if store else ""
    try:
        await job()
    except DomainError as error:
        logger.warning("jobs%s: %s, to be tried again", of, type(error).__name__)
    except Exception:
        logger.exception("jobs%s failed, to be tried again", of)
