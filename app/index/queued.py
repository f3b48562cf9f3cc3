"""Operations on their way through the queue of the index."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol

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


class Taker(Protocol):
    """Who takes a chained job from any thread: the writer."""

    def take(self, job: Job) -> None:
        """Queue it."""
        ...

    def refuse(self, job: Job, error: Exception) -> None:
        """It will not be queued."""
        ...

    def abandon(self, job: Job) -> bool:
        """Give it up unless it runs already."""
        ...


class ChainedJob(Job):
    """A job that is queued by whoever makes its blob durable; see `app.index.base.Chained`."""

    __slots__ = ("_make", "_writer")

    def __init__(
        self,
        writer: Taker,
        function: Callable[..., Transaction[Any]],
        make: Callable[[str], tuple[Any, ...]],
        future: asyncio.Future[Any],
        deadline: float,
    ) -> None:
        super().__init__(function, (), False, future, deadline)
        self._make = make
        self._writer = writer

    def proceed(self, locator: str) -> None:
        """See `Chained`."""
        try:
            self.arguments = self._make(locator)
        except Exception as error:
            self.fail(error)
        else:
            self._writer.take(self)

    def fail(self, error: Exception) -> None:
        """See `Chained`."""
        self._writer.refuse(self, error)

    def abandon(self) -> bool:
        """See `Chained`."""
        return self._writer.abandon(self)
