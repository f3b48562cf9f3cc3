"""Operations on their way through the queue of the index."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

from app.errors import Overloaded, StoreUnavailable
from app.index.steps import Transaction


class State(IntEnum):
    """Of a queued operation. It leaves QUEUED once, to RUNNING or to ABANDONED."""

    QUEUED = 0
    RUNNING = 1
    ABANDONED = 2
    DONE = 3


class Job:
    """One operation on its way through the queue."""

    __slots__ = ("arguments", "deadline", "error", "function", "future", "notifies", "result", "state")

    def __init__(
        self,
        function: Callable[..., Transaction[Any]],
        arguments: tuple[Any, ...],
        notifies: bool,
        future: asyncio.Future[Any],
        deadline: float,
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.notifies = notifies
        """Other processes must be told of the change."""
        self.future = future
        self.deadline = deadline
        self.state = State.QUEUED
        self.result: Any = None
        self.error: Exception | None = None


class ChainedJob(Job):
    """A job that is queued by whoever makes its blob durable; see `app.index.base.Chained`."""

    __slots__ = ("make", "queue")

    make: Callable[[str], tuple[Any, ...]]
    queue: JobQueue

    def proceed(self, locator: str) -> None:
        """See `Chained`."""
        try:
            self.arguments = self.make(locator)
        except Exception as error:
            self.fail(error)
        else:
            self.queue.take(self)

    def fail(self, error: Exception) -> None:
        """See `Chained`."""
        self.queue.refuse(self, error)

    def abandon(self) -> bool:
        """See `Chained`."""
        return self.queue.abandon(self)


class JobQueue:
    """How operations wait and are answered, the same for every engine. Made and used on the loop, but where it says so.

    `length` tells how many are queued; `timeout` is the seconds that one may wait.
    """

    chained: type[ChainedJob] = ChainedJob

    def __init__(self, length: Callable[[], int], *, timeout: float, limit: int) -> None:
        self._length = length
        self._timeout = timeout
        self._limit = limit
        self._pending: deque[Job] = deque()
        self._claim = threading.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False
        self._loop = asyncio.get_running_loop()

    def begin(self, function: Callable[..., Transaction[Any]], make: Callable[[str], tuple[Any, ...]]) -> ChainedJob:
        """An operation that is queued later, from any thread. Its time to wait begins now.

        Raises Overloaded when the queue is full; so does the future when it waited too long.
        """
        job = self.chained(function, (), False, self._loop.create_future(), time.monotonic() + self._timeout)
        job.make = make
        job.queue = self
        self._enter(job, self._length())
        return job

    def _enter(self, job: Job, length: int) -> None:
        """Its time runs from now on, unless as many as may are queued. Raises Overloaded, StoreUnavailable."""
        if self._stopping:
            raise StoreUnavailable(reason="the index is closed")
        if length >= self._limit:
            raise Overloaded(reason="commit queue")
        self._pending.append(job)
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout, self._expire)

    def take(self, job: ChainedJob) -> None:
        """Queue a job that `begin` made. Called in any thread."""
        raise NotImplementedError

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
        """Give up a job that does not run yet; True when it never will. Called in any thread."""
        with self._claim:
            if job.state is State.QUEUED:
                job.state = State.ABANDONED
            return job.state is State.ABANDONED

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

    def _deliver(self, jobs: Sequence[Job]) -> None:
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
