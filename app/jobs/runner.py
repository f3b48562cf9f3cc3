"""The runner of background jobs: one worker at a time, another when it dies.

The worker is elected (`app.jobs.leader_election`). Each store has loops of its own, so that a store that hangs stops no
other; so have jobs of no store or of all stores. With several gateways there are several elections, and every process
checks for dead writers: only then can their leases pass on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.rows import Writer
from sluice_s3.app.jobs.integrity.capacity import CapacityMonitor
from sluice_s3.app.jobs.integrity.scrub import Scrubber
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.leader_election import Election, Leadership
from sluice_s3.app.jobs.plain_files.scan import PlainFileScanner
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import OrphanSweeper
from sluice_s3.app.store.driver_errors import translate_driver_errors
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.jobs")

ROUND_SECONDS = 1.0
"""Seconds between rounds."""
LAST_ROUND_SECONDS = 10.0
"""Seconds that a stopping worker may take to journal its last commits."""

Job = Callable[[], Awaitable[object]]


class StoreJobs:
    """The jobs of one store."""

    def __init__(
        self,
        store: Store,
        garbage: GarbageCollector,
        decisions: JournalWriter | None = None,
        scrubber: Scrubber | None = None,
        compactor: Compactor | None = None,
        space: CapacityMonitor | None = None,
        tree: PlainFileScanner | None = None,
    ) -> None:
        self._store = store
        self._tree = tree
        self._decisions = decisions
        self._scrubber = scrubber
        self._everywhere: list[Job] = [store.report_rejected_records, self._forget_unlinked]
        if decisions is not None:
            self._everywhere.append(decisions.health.look)
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

    async def run(self, turn: Leadership) -> None:
        """Run until cancelled or until a leadership is lost, which voids the state in memory."""
        long: list[asyncio.Task[None]] = []
        had = False
        try:
            while True:
                for job in self._everywhere if self._store.up else ():
                    await run_logged(self._store.name, job)
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
                            await run_logged(self._store.name, job)
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

    async def _pause(self, turn: Leadership, *, had: bool) -> None:
        """Wait for the next round. Meanwhile journal on request, if this process is the leader."""
        bell, decisions = self._store.bell, self._decisions
        if bell is None or decisions is None or not had:
            await asyncio.sleep(ROUND_SECONDS)
            return
        until = monotonic() + ROUND_SECONDS
        while (left := until - monotonic()) > 0:
            if await bell.wait(left) and self._store.up:
                with turn.using():
                    await run_logged(self._store.name, decisions.run_once)

    def _long(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield the jobs that run beside the others and must not delay them."""
        if self._scrubber is not None:
            yield self._scrubber.run()
        if self._tree is not None:
            yield self._repeat_tree(self._tree)
            yield self._tree.watch()

    async def _repeat_tree(self, tree: PlainFileScanner) -> None:
        while True:
            if self._store.up:
                await run_logged(self._store.name, tree.run_once)
            await asyncio.sleep(ROUND_SECONDS)

    async def _last_round(self) -> None:
        """Journal the last commits."""
        if self._decisions is None or not self._store.up:
            return
        try:
            async with asyncio.timeout(LAST_ROUND_SECONDS):
                await run_logged(self._store.name, self._decisions.run_once)
        except TimeoutError:
            logger.warning("jobs of store %s: what was decided last is not written down", self._store.name)

    async def _forget_unlinked(self) -> None:
        with translate_driver_errors():
            await self._store.driver.forget_unlinked()


class Jobs:
    """The jobs of all stores.

    `make` creates a store's jobs at each leadership. Some jobs belong to no single store.
    """

    def __init__(
        self,
        turns: Election,
        store: Store,
        is_gone: Callable[[Writer], bool],
        make: Callable[[Store], StoreJobs],
        others: Mapping[str, Job] | None = None,
    ) -> None:
        self._turns = turns
        self._stores = list(store.all.values())
        self._make = make
        self._sweep = OrphanSweeper(store, is_gone)
        self._others = others or {}

    async def run(self) -> None:
        """Run until cancelled."""
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
            await asyncio.sleep(ROUND_SECONDS)

    async def _repeat(self, name: str | None, job: Job, store: str = "") -> None:
        """Repeat a job, under the leadership of that name or without one."""
        turn = None if name is None else self._turns.turn(name)
        while True:
            if turn is None:
                await run_logged(store, job)
            elif await _is_mine(turn):
                with turn.using():
                    await run_logged(store, job)
            await asyncio.sleep(ROUND_SECONDS)


async def _is_mine(turn: Leadership) -> bool | None:
    """Return whether this process is the leader; None when the index cannot say."""
    try:
        return await turn.mine()
    except DomainError:
        return None


async def run_logged(store: str, job: Job) -> None:
    """Run a job once and log its error, since it is tried again."""
    of = f" of store {store}" if store else ""
    try:
        await job()
    except DomainError as error:
        logger.warning("jobs%s: %s, to be tried again", of, type(error).__name__)
    except Exception:
        logger.exception("jobs%s failed, to be tried again", of)
