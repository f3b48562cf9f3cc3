"""Parts of an answer that are read apart from each other: one that hangs delays only itself."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from pydantic import BaseModel, Field

from sluice_s3.app.errors import DomainError

logger = logging.getLogger("sluice.admin")

T = TypeVar("T")

LIMIT_SECONDS = 2.0
"""Seconds that an answer waits for a part."""
FRESH_SECONDS = 4.0
"""Seconds for which a part is not read again, however many look at it."""


class Part(BaseModel, Generic[T]):
    """A part of an answer. When it could not be read, it is the last one that could, if there was one."""

    value: T | None = None
    read: int | None = Field(None, description="When it was read, in milliseconds since the epoch.")
    silent_since: int | None = Field(
        None, description="Since when it cannot be read, in milliseconds since the epoch; null when it can."
    )


class TimedPart(Generic[T]):
    """A part that `load` reads, one call at a time.

    `load` raises DomainError, or TimeoutError, when it cannot. Any other error is a fault: the log has it.
    """

    def __init__(
        self, load: Callable[[], Awaitable[T]], limit: float = LIMIT_SECONDS, fresh: float = FRESH_SECONDS
    ) -> None:
        self._load = load
        self._limit = limit
        self._fresh = fresh
        self._task: asyncio.Task[None] | None = None
        self._read_at = float("-inf")
        self._part: Part[T] = Part()

    async def get(self) -> Part[T]:
        """Return the part, at most `limit` seconds later."""
        task = self._task
        if task is None or task.done():
            if time.monotonic() < self._read_at + self._fresh:
                return self._part
            task = self._task = asyncio.create_task(self._run())
        began = _now()
        done, _ = await asyncio.wait({task}, timeout=self._limit)
        if not done:
            self._fail(began)
        return self._part

    async def close(self) -> None:
        """End a call that runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        began = _now()
        try:
            self._part = Part(value=await self._load(), read=_now())
        except (DomainError, TimeoutError):
            self._fail(began)
        except Exception:
            logger.exception("a part of a page could not be read")
            self._fail(began)
        self._read_at = time.monotonic()

    def _fail(self, began: int) -> None:
        if self._part.silent_since is None:
            self._part = self._part.model_copy(update={"silent_since": began})


def _now() -> int:
    return time.time_ns() // 1_000_000
