"""Group commit: commits the operations of one event-loop tick together, several groups in parallel.

An operation waits while a running group of this process holds one of its locks. Operations of one group run in queue
order. So groups of one process never wait for each other in the server, and changes of one key keep their order.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from sluice_s3.app.errors import DomainError, StoreUnavailable
from sluice_s3.app.index.engine.commit_queue import CommitQueue, Job, QueuedDeferredCommit, State
from sluice_s3.app.index.engine.declared import Write
from sluice_s3.app.index.engine.procedures import Procedure
from sluice_s3.app.index.postgres.advisory_locks import GLOBAL_LOCK, MAX_LOCKS, Locks, locks_of
from sluice_s3.app.index.postgres.group_commit import GroupCommitter, fail
from sluice_s3.app.index.postgres.procedure_calls import procedure_of
from sluice_s3.app.index.sql.transaction import Transaction

logger = logging.getLogger("sluice.index")

LARGEST_GROUP = 256
SCAN_LIMIT = 1024
"""Maximum number of queued operations to examine for one group."""


class LockedCommit(Job):
    """An operation with its locks.

    `locks` is None for an operation that must run alone.
    """

    __slots__ = ("kind", "locks")

    kind: Procedure
    locks: Locks | None


class DeferredLockedCommit(QueuedDeferredCommit):
    """A `LockedCommit` that is queued once its blob is durable."""

    __slots__ = ("kind", "locks")

    kind: Procedure
    locks: Locks | None


Queued = LockedCommit | DeferredLockedCommit


class CommitScheduler(CommitQueue):
    """Runs operations in groups.

    All methods run on the event loop, except those documented for any thread.
    """

    chained = DeferredLockedCommit

    def __init__(self, committer: GroupCommitter, *, slots: int, timeout: float, queue_limit: int) -> None:
        self._queue: deque[Queued] = deque()
        super().__init__(self._queue.__len__, timeout=timeout, limit=queue_limit)
        self._committer = committer
        self._slots = slots
        self._arrived: deque[Queued] = deque()
        self._woken = False
        self._scheduled = False
        self._held: set[int] = set()
        self._running: set[asyncio.Task[None]] = set()

    def submit(
        self,
        write: Write[..., Any],
        function: Callable[..., Transaction[Any]],
        arguments: tuple[Any, ...],
        locks: Locks | None,
    ) -> asyncio.Future[Any]:
        """Queue an operation that runs under `locks` (see `locks_of`).

        Raises Overloaded when the queue is full. The future raises Overloaded when the operation waited too long.
        """
        job = LockedCommit(write, function, arguments, self._loop.create_future(), time.monotonic() + self._timeout)
        job.locks = locks
        job.kind = procedure_of(job)
        self._enter(job, len(self._queue))
        self._queue.append(job)
        if not self._scheduled:
            self._loop.call_soon(self._dispatch)
            self._scheduled = True  # not before: without memory nothing would dispatch any more
        return job.future

    def take(self, job: QueuedDeferredCommit) -> None:
        """See `CommitQueue.take`."""
        assert isinstance(job, DeferredLockedCommit)
        self._arrived.append(job)
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._arrive)
            except RuntimeError:
                pass  # the loop is closed: no caller waits
            except MemoryError:
                self._woken = False  # else no later job would be taken
                raise

    def _arrive(self) -> None:
        # reset the flag first: a job that is appended during the loop must schedule another call
        self._woken = False
        while self._arrived:
            job = self._arrived.popleft()
            job.locks = locks_of(job.write, job.arguments)
            job.kind = procedure_of(job)
            self._queue.append(job)
        self._dispatch()

    async def close(self) -> None:
        """Finish all queued operations."""
        self._stopping = True
        self._arrive()
        while self._running:
            await asyncio.wait(self._running, timeout=self._timeout)
            self._dispatch()
        if self._timer is not None:
            self._timer.cancel()

    def _dispatch(self) -> None:
        self._scheduled = False
        while self._queue and len(self._running) < self._slots:
            group, locks, kind = self._next_group()
            if not group:
                return
            try:
                task = self._loop.create_task(self._run(group, locks, kind))
            except Exception as error:
                fail(group, error)
                self._deliver(group)
                return
            self._held.update(locks)
            self._running.add(task)

    def _next_group(self) -> tuple[list[Queued], set[int], Procedure]:
        """Return the next group: the first runnable job, and later ones that can join."""
        group: list[Queued] = []
        skipped: list[Queued] = []
        locks: set[int] = set()
        blocked: set[int] = set()
        """Locks of skipped jobs. A later job that needs one of them must not overtake."""
        kind = Procedure.NONE
        looked = 0
        while self._queue and len(group) < LARGEST_GROUP and looked < SCAN_LIMIT:
            job = self._queue.popleft()
            looked += 1
            if job.state is not State.QUEUED:
                continue
            needed = (GLOBAL_LOCK,) if job.locks is None else job.locks
            refused = not self._fits(group, locks, kind, job)
            if refused or any(lock in self._held or lock in blocked for lock in needed):
                skipped.append(job)
                blocked.update(needed)
                continue
            if not self._claimed(job):
                continue
            group.append(job)
            locks.update(needed)
            kind = job.kind
            if job.locks is None:
                break
        self._queue.extendleft(reversed(skipped))
        return group, locks, kind

    @staticmethod
    def _fits(group: list[Queued], locks: set[int], kind: Procedure, job: Queued) -> bool:
        if not group:
            return True
        if job.locks is None or job.kind is not kind or len(locks) + len(job.locks) > MAX_LOCKS:
            return False
        # one call of a server function can process a key only once
        return kind is Procedure.NONE or locks.isdisjoint(job.locks)

    def _claimed(self, job: Job) -> bool:
        with self._state_lock:
            if job.state is State.QUEUED:
                job.state = State.RUNNING
            return job.state is State.RUNNING

    async def _run(self, jobs: list[Queued], locks: set[int], kind: Procedure) -> None:
        try:
            await self._committer.commit(jobs, None if GLOBAL_LOCK in locks else tuple(sorted(locks)), kind)
        except BaseException as error:
            logger.exception("index: a group of %d failed", len(jobs))
            for job in jobs:
                if job.error is None:
                    job.error = error if isinstance(error, DomainError) else StoreUnavailable(reason="the index failed")
            if not isinstance(error, Exception):
                raise
        finally:
            self._held.difference_update(locks)
            task = asyncio.current_task()
            if task is not None:
                self._running.discard(task)
            self._deliver(jobs)
            self._dispatch()
