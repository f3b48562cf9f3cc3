"""Group commit: what is queued in one tick of the loop is committed together, several groups at a time.

Operations whose locks a running group of this process holds wait for it; those of one group run in their order. So the
groups of one process never wait for each other in the server, and keep the order in which a key's changes came.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from app.errors import DomainError, Overloaded, StoreUnavailable
from app.index.postgres.committing import Committer
from app.index.postgres.fast import Kind, kind_of
from app.index.postgres.locks import EVERYTHING, MOST, Locks, locks_of
from app.index.queued import ChainedJob, Job, State
from app.index.steps import Transaction

logger = logging.getLogger("sluice.index")

LARGEST_GROUP = 256
LOOKED_AT = 1024
"""Operations of the queue that are looked at for one group."""


class Locked(Job):
    """An operation with its locks; None: alone."""

    __slots__ = ("kind", "locks")

    kind: Kind
    locks: Locks | None


class LockedLater(ChainedJob):
    """The same for one that is queued once its blob is durable."""

    __slots__ = ("kind", "locks")

    kind: Kind
    locks: Locks | None


Queued = Locked | LockedLater


class Writer:
    """Runs operations in groups. All of it on the event loop, but for what says that it is called in any thread."""

    def __init__(self, committer: Committer, *, slots: int, timeout: float, queue_limit: int) -> None:
        self._committer = committer
        self._slots = slots
        self._timeout = timeout
        self._queue_limit = queue_limit
        self._queue: deque[Queued] = deque()
        self._pending: deque[Job] = deque()
        self._arrived: deque[Queued] = deque()
        self._woken = False
        self._claim = threading.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False
        self._soon = False
        self._held: set[int] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()

    def submit(
        self,
        function: Callable[..., Transaction[Any]],
        arguments: tuple[Any, ...],
        *,
        locks: Locks | None,
        notifies: bool = False,
    ) -> asyncio.Future[Any]:
        """Queue an operation that runs under these locks (`locks_of`). Raises Overloaded when the queue is full.

        So does the future when it waited too long.
        """
        self._admit()
        job = Locked(function, arguments, notifies, self._loop.create_future(), time.monotonic() + self._timeout)
        job.locks = locks
        job.kind = kind_of(function, arguments)
        self._expect(job)
        self._put(job)
        return job.future

    def begin(self, function: Callable[..., Transaction[Any]], make: Callable[[str], tuple[Any, ...]]) -> ChainedJob:
        """An operation that is queued later, from any thread. Its time to wait begins now. Raises as `submit`."""
        self._admit()
        job = LockedLater(self, function, make, self._loop.create_future(), time.monotonic() + self._timeout)
        self._expect(job)
        return job

    def _admit(self) -> None:
        if self._stopping:
            raise StoreUnavailable(reason="the index is closed")
        if len(self._queue) >= self._queue_limit:
            raise Overloaded(reason="commit queue")

    def _expect(self, job: Job) -> None:
        self._pending.append(job)
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout, self._expire)

    def _put(self, job: Queued) -> None:
        self._queue.append(job)
        if not self._soon:
            self._soon = True
            self._loop.call_soon(self._dispatch)

    def take(self, job: Job) -> None:
        """Queue a job that `begin` made. Called in any thread."""
        assert isinstance(job, LockedLater)
        self._arrived.append(job)
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._arrive)
            except RuntimeError:
                pass  # the loop is closed: nobody waits any more

    def _arrive(self) -> None:
        # in this order: what is appended behind it wakes us again
        self._woken = False
        while self._arrived:
            job = self._arrived.popleft()
            job.locks = locks_of(job.function, job.arguments)
            job.kind = kind_of(job.function, job.arguments)
            self._queue.append(job)
        self._dispatch()

    def refuse(self, job: Job, error: Exception) -> None:
        """A job that `begin` made will not be queued. Called in any thread."""
        with self._claim:
            if job.state is not State.QUEUED:
                return
            job.state = State.RUNNING
        job.error = error
        try:
            self._loop.call_soon_threadsafe(self._deliver, [job])
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more

    def abandon(self, job: Job) -> bool:
        """Give up a job that does not run yet; True when it never will."""
        with self._claim:
            if job.state is State.QUEUED:
                job.state = State.ABANDONED
            return job.state is State.ABANDONED

    async def close(self) -> None:
        """Finish what is queued."""
        self._stopping = True
        self._arrive()
        while self._running:
            await asyncio.wait(self._running, timeout=self._timeout)
            self._dispatch()
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        """Abandon what waits for too long; come back when the next could."""
        self._timer = None
        now = time.monotonic()
        pending = self._pending
        while pending:
            job = pending[0]
            if job.state is State.QUEUED:
                if job.deadline > now:
                    break
                if self.abandon(job) and not job.future.done():
                    job.future.set_exception(Overloaded(reason="commit timeout"))
            pending.popleft()
        if pending:
            self._timer = self._loop.call_later(max(pending[0].deadline - now, 0.01), self._expire)

    def _dispatch(self) -> None:
        self._soon = False
        while self._queue and len(self._running) < self._slots:
            group, locks, kind = self._take()
            if not group:
                return
            self._held.update(locks)
            task = self._loop.create_task(self._run(group, locks, kind))
            self._running.add(task)

    def _take(self) -> tuple[list[Queued], set[int], Kind]:
        """The next group: the first that can run, and those of its kind behind it that can run with it."""
        group: list[Queued] = []
        skipped: list[Queued] = []
        locks: set[int] = set()
        met: set[int] = set()
        """Locks of those that were skipped: nothing behind may pass them by."""
        kind = Kind.ANY
        looked = 0
        while self._queue and len(group) < LARGEST_GROUP and looked < LOOKED_AT:
            job = self._queue.popleft()
            looked += 1
            if job.state is not State.QUEUED:
                continue
            wanted = (EVERYTHING,) if job.locks is None else job.locks
            refused = not self._fits(group, locks, kind, job)
            if refused or any(lock in self._held or lock in met for lock in wanted):
                skipped.append(job)
                met.update(wanted)
                continue
            if not self._claimed(job):
                continue
            group.append(job)
            locks.update(wanted)
            kind = job.kind
            if job.locks is None:
                break
        self._queue.extendleft(reversed(skipped))
        return group, locks, kind

    @staticmethod
    def _fits(group: list[Queued], locks: set[int], kind: Kind, job: Queued) -> bool:
        if not group:
            return True
        if job.locks is None or job.kind is not kind or len(locks) + len(job.locks) > MOST:
            return False
        # a call of the server may meet a key once
        return kind is Kind.ANY or locks.isdisjoint(job.locks)

    def _claimed(self, job: Job) -> bool:
        with self._claim:
            if job.state is State.QUEUED:
                job.state = State.RUNNING
            return job.state is State.RUNNING

    async def _run(self, jobs: list[Queued], locks: set[int], kind: Kind) -> None:
        try:
            await self._committer.commit(jobs, None if EVERYTHING in locks else tuple(sorted(locks)), kind)
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

    def _deliver(self, jobs: list[Any]) -> None:
        for job in jobs:
            job.state = State.DONE
            if job.future.done():
                continue  # whoever waited was cancelled
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
        pending = self._pending
        while pending and pending[0].state >= State.ABANDONED:
            pending.popleft()
