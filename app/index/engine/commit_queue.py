"""The queue of operations that wait for their commit."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from sluice_s3.app.errors import DomainError, Overloaded, StoreUnavailable
from sluice_s3.app.index.engine.declared import Write
from sluice_s3.app.index.sql.transaction import Transaction

RETRY_SECONDS = 0.02
"""Pause of a thread that finds no memory."""


class State(IntEnum):
    """State of a queued operation.

    It leaves QUEUED once, to RUNNING or to ABANDONED, unless the event loop passes it on to the thread.
    """

    QUEUED = 0
    RUNNING = 1
    ABANDONED = 2
    DONE = 3


class Job:
    """An operation in the queue."""

    __slots__ = ("arguments", "deadline", "error", "function", "future", "notifies", "result", "state", "write")

    def __init__(
        self,
        write: Write[..., Any],
        function: Callable[..., Transaction[Any]],
        arguments: tuple[Any, ...],
        future: asyncio.Future[Any],
        deadline: float,
    ) -> None:
        self.write = write
        self.function = function
        """The function to run: that of `write`, or a wrapper of it."""
        self.arguments = arguments
        self.notifies = write.invalidates
        """Whether other processes must see the change."""
        self.future = future
        self.deadline = deadline
        self.state = State.QUEUED
        self.result: Any = None
        self.error: Exception | None = None


def fail_jobs(jobs: Sequence[Job], error: DomainError) -> None:
    """Fail each job with its own copy of the error.

    An exception that several tasks raise collects all their tracebacks.
    """
    for job in jobs:
        job.error = type(error)(**error.detail)


class QueuedDeferredCommit(Job):
    """A job that enters the queue once its blob is durable; see `app.index.engine.declared.DeferredCommit`."""

    __slots__ = ("make", "queue")

    make: Callable[[str], tuple[Any, ...]]
    queue: CommitQueue

    def proceed(self, locator: str) -> None:
        """See `DeferredCommit`."""
        try:
            self.arguments = self.make(locator)
        except Exception as error:
            self.fail(error)
        else:
            self.queue.take(self)

    def fail(self, error: Exception) -> None:
        """See `DeferredCommit`."""
        self.queue.refuse(self, error)

    def abandon(self) -> bool:
        """See `DeferredCommit`."""
        return self.queue.abandon(self)


class CommitQueue:
    """The queue of operations and their results, the same for every engine.

    Created and used on the event loop unless a method says otherwise. `length` returns the number of queued operations,
    `limit` is its maximum. `timeout` is the maximum wait of an operation in seconds.
    """

    chained: type[QueuedDeferredCommit] = QueuedDeferredCommit

    def __init__(self, length: Callable[[], int], *, timeout: float, limit: int) -> None:
        self._length = length
        self._timeout = timeout
        self._limit = limit
        self._pending: deque[Job] = deque()
        self._state_lock = threading.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False
        self._loop = asyncio.get_running_loop()

    def begin(self, write: Write[..., Any], make: Callable[[str], tuple[Any, ...]]) -> QueuedDeferredCommit:
        """Start an operation that enters the queue later, from any thread.

        Its wait begins now. Raises StoreUnavailable when the index is closed, Overloaded when the queue is full. The
        future raises Overloaded when the wait was too long.
        """
        deadline = time.monotonic() + self._timeout
        job = self.chained(write, write.transaction(), (), self._loop.create_future(), deadline)
        job.make = make
        job.queue = self
        self._enter(job, self._length())
        return job

    def _enter(self, job: Job, length: int) -> None:
        """Start the wait of a job, unless the queue is full.

        Raises Overloaded, StoreUnavailable.
        """
        if self._stopping:
            raise StoreUnavailable(reason="the index is closed")
        if length >= self._limit:
            raise Overloaded(reason="commit queue")
        self._pending.append(job)
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout, self._expire)

    def take(self, job: QueuedDeferredCommit) -> None:
        """Queue a job that `begin` returned.

        Called in any thread.
        """
        raise NotImplementedError

    def refuse(self, job: Job, error: Exception) -> None:
        """Drop a job of `begin` that will not be queued.

        Called in any thread.
        """
        with self._state_lock:
            if job.state is not State.QUEUED:
                return
            job.state = State.RUNNING
        job.error = error
        try:
            self._loop.call_soon_threadsafe(self._deliver, [job])
        except MemoryError:
            job.state = State.QUEUED  # its wait ends it
        except RuntimeError:
            pass  # the loop is closed: no task waits

    def _deliver_soon(self, jobs: Sequence[Job]) -> bool:
        """Deliver jobs from another thread; return False when the event loop is closed, and no task waits."""
        while True:
            try:
                self._loop.call_soon_threadsafe(self._deliver, jobs)
                return True
            except RuntimeError:
                return False
            except MemoryError:
                time.sleep(RETRY_SECONDS)  # nothing else ends these jobs

    def abandon(self, job: Job) -> bool:
        """Abandon a job that is not running.

        Returns True when it will never run. Called in any thread.
        """
        with self._state_lock:
            if job.state is State.QUEUED:
                job.state = State.ABANDONED
            return job.state is State.ABANDONED

    def _expire(self) -> None:
        """Abandon jobs that waited too long, and schedule the next check."""
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

    def _deliver(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            job.state = State.DONE
            if job.future.done():
                continue  # the waiting task was cancelled
            if job.error is not None:
                job.future.set_exception(job.error)
            else:
                job.future.set_result(job.result)
        pending = self._pending
        while pending and pending[0].state >= State.ABANDONED:
            pending.popleft()
