"""The runner of background jobs: one worker at a time, another when it dies.

The worker is elected (`app.jobs.leader_election`). Each store has loops of its own, so that a store that hangs stops no
other; so have jobs of no store or of all stores. With several gateways there are several elections, and every process
checks for dead writers: only then can their leases pass on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Any

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.cluster.rows import Writer
from sluice_s3.app.jobs.board import Job, JobBoard, run_logged
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


class StoreJobs:
    """The jobs of one store."""

    def __init__(
        self,
        store: Store,
        garbage_collector: GarbageCollector,
        journal_writer: JournalWriter | None = None,
        scrubber: Scrubber | None = None,
        compactor: Compactor | None = None,
        capacity_monitor: CapacityMonitor | None = None,
        tree: PlainFileScanner | None = None,
        board: JobBoard | None = None,
    ) -> None:
        self._store = store
        self._board = board or JobBoard(store.index)
        self._tree = tree
        self._journal_writer = journal_writer
        self._scrubber = scrubber
        self._worker_jobs: list[Job] = [store.report_rejected_records, self._forget_unlinked]
        if journal_writer is not None:
            self._worker_jobs.append(journal_writer.health.look)
        if capacity_monitor is not None:
            self._worker_jobs.append(capacity_monitor.look)
        if store.tree is not None:
            self._worker_jobs.append(store.tree.finish_interrupted)
        self._leader_jobs: list[Job] = [] if journal_writer is None else [journal_writer.run_once]
        self._repeated_jobs: dict[str, Job] = {"garbage": garbage_collector.run_once}
        if compactor is not None:
            self._repeated_jobs["compaction"] = compactor.run_once
        if tree is not None:
            self._repeated_jobs["files"] = tree.run_once
            self._board.add(self._name("files"), tree.run_again)
        if scrubber is not None:
            self._board.add(self._name("scrub"), scrubber.run_again)
        if capacity_monitor is not None:
            self._leader_jobs.append(partial(self._run, "count", capacity_monitor.count))
            self._board.add(self._name("count"), capacity_monitor.count_again)

    def _name(self, job: str) -> str:
        return f"{job}:{self._store.name}"

    async def _run(self, name: str, job: Job) -> None:
        await self._board.run(self._name(name), self._store.name, job)

    async def run(self, leadership: Leadership) -> None:
        """Run until cancelled or until a leadership is lost, which voids the state in memory."""
        background: list[asyncio.Task[None]] = []
        was_leader = False
        try:
            while True:
                for job in self._worker_jobs if self._store.up else ():
                    await run_logged(self._store.name, job)
                if was_leader and leadership.can_release and not self._store.up:
                    return  # others may reach the store
                if self._store.up and (is_leader := await _try_acquire(leadership)) is not None:
                    lost, was_leader = was_leader and not is_leader, is_leader
                    if lost:
                        return
                if was_leader and self._store.up:
                    with leadership.fence():
                        if not background:
                            background = [asyncio.create_task(job) for job in self._background_jobs()]
                        for job in self._leader_jobs:
                            await run_logged(self._store.name, job)
                await self._pause(leadership, is_leader=was_leader)
        finally:
            if self._store.journal_wakeup is not None:
                self._store.journal_wakeup.stop_listening()
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            if was_leader:
                with leadership.fence():
                    await self._last_round()
                with suppress(DomainError):
                    await leadership.release()

    async def _pause(self, leadership: Leadership, *, is_leader: bool) -> None:
        """Wait for the next round. Meanwhile journal on request, if this process is the leader."""
        wakeup, journal_writer = self._store.journal_wakeup, self._journal_writer
        if wakeup is None or journal_writer is None or not is_leader:
            await asyncio.sleep(ROUND_SECONDS)
            return
        until = monotonic() + ROUND_SECONDS
        while (remaining := until - monotonic()) > 0:
            if await wakeup.wait(remaining) and self._store.up:
                with leadership.fence():
                    await run_logged(self._store.name, journal_writer.run_once)

    def _background_jobs(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield the jobs that run beside the others and must not delay them."""
        if self._scrubber is not None:
            yield self._scrub(self._scrubber)
        if self._tree is not None:
            yield self._tree.watch()
        yield from (self._repeat(name, job) for name, job in self._repeated_jobs.items())

    async def _scrub(self, scrubber: Scrubber) -> None:
        while True:
            await scrubber.wait()
            await self._run("scrub", scrubber.go_on)

    async def _repeat(self, name: str, job: Job) -> None:
        while True:
            if self._store.up:
                await self._run(name, job)
            await asyncio.sleep(ROUND_SECONDS)

    async def _last_round(self) -> None:
        """Journal the last commits."""
        if self._journal_writer is None or not self._store.up:
            return
        try:
            async with asyncio.timeout(LAST_ROUND_SECONDS):
                await run_logged(self._store.name, self._journal_writer.run_once)
        except TimeoutError:
            logger.warning("jobs of store %s: what was decided last is not written down", self._store.name)

    async def _forget_unlinked(self) -> None:
        with translate_driver_errors():
            await self._store.driver.close_unlinked()


class Jobs:
    """The jobs of all stores.

    `make` creates a store's jobs at each leadership. Some jobs belong to no single store.
    """

    def __init__(
        self,
        election: Election,
        store: Store,
        is_dead: Callable[[Writer], bool],
        make_store_jobs: Callable[[Store], StoreJobs],
        other_jobs: Mapping[str, Job] | None = None,
        board: JobBoard | None = None,
    ) -> None:
        self._board = board or JobBoard(store.index)
        self._election = election
        self._stores = list(store.all.values())
        self._make_store_jobs = make_store_jobs
        self._orphan_sweeper = OrphanSweeper(store, is_dead)
        self._other_jobs = other_jobs or {}

    async def run(self) -> None:
        """Run until cancelled."""
        loops = [self._run_while_leader(store) for store in self._stores]
        loops += [
            self._repeat("sweep", partial(self._orphan_sweeper.sweep, store), store.name) for store in self._stores
        ]
        loops += [self._repeat("sweep", self._orphan_sweeper.forget_swept_writers)]
        loops += [self._repeat(None if self._election.many_hosts else "sweep", self._orphan_sweeper.declare_dead)]
        loops += [self._repeat(name, partial(self._board.run, name, "", job)) for name, job in self._other_jobs.items()]
        loops += [self._board.publish()]
        try:
            async with asyncio.TaskGroup() as group:  # cancels each once: a second time would cut off the last round
                for loop in loops:
                    group.create_task(loop)
        finally:
            await self._election.close()

    async def _run_while_leader(self, store: Store) -> None:
        leadership = self._election.get_leadership(f"store:{store.name}")
        while True:
            await self._make_store_jobs(store).run(leadership)
            await asyncio.sleep(ROUND_SECONDS)

    async def _repeat(self, name: str | None, job: Job, store: str = "") -> None:
        """Repeat a job, under the leadership of that name or without one."""
        leadership = None if name is None else self._election.get_leadership(name)
        while True:
            if leadership is None:
                await run_logged(store, job)
            elif await _try_acquire(leadership):
                with leadership.fence():
                    await run_logged(store, job)
            await asyncio.sleep(ROUND_SECONDS)


async def _try_acquire(leadership: Leadership) -> bool | None:
    """Return whether this process is the leader; None when the index cannot say."""
    try:
        return await leadership.try_acquire()
    except DomainError:
        return None
