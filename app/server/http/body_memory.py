"""The memory that request bodies may use in one worker (law 9: nothing unbounded)."""

from __future__ import annotations

import asyncio
from collections import deque

from sluice_s3.app.eager_task import enter_task
from sluice_s3.app.errors import Overloaded

MEMORY_WAIT_SECONDS = 20.0
"""Seconds that `acquire` waits before it gives up."""


class BodyMemoryBudget:
    """A budget of bytes, granted in order of arrival.

    Readers of request bodies `take` the bytes that they hold and `release` them. While the budget is `short` they first
    `acquire` a share, so that each exceeds it by one read of its socket at most. `buffered` counts the bytes that
    connections hold and no reader has taken yet; they are not part of the budget. Above a quarter of the budget
    connections stop reading ahead, and above all of it new bodies are refused.
    """

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.used_bytes = 0
        self.buffered = 0
        self.tight_at = budget // 4
        """Bytes in `buffered` above which connections do not read ahead."""
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @property
    def short(self) -> bool:
        """The budget is used up, or other readers wait for it."""
        return self.used_bytes >= self.budget or bool(self._waiting)

    def take(self, size: int) -> None:
        """Count `size` bytes that are held already."""
        self.used_bytes += size

    async def acquire(self, size: int, timeout: float = MEMORY_WAIT_SECONDS) -> None:
        """Take `size` bytes of the budget, or all of it if `size` is more.

        Raises Overloaded after `timeout` seconds.
        """
        size = min(size, self.budget)
        if not self._waiting and self.used_bytes + size <= self.budget:
            self.used_bytes += size
            return
        future = asyncio.get_running_loop().create_future()
        entry = (size, future)
        self._waiting.append(entry)
        try:
            await enter_task()
            async with asyncio.timeout(timeout):
                await future
        except BaseException as error:
            if not future.cancelled() and future.done():
                self.release(size)
            elif entry in self._waiting:
                self._waiting.remove(entry)
                self._grant()
            if isinstance(error, TimeoutError):
                raise Overloaded(limit="max_body_memory") from None
            raise

    def release(self, size: int) -> None:
        """Return the bytes of `acquire(size)` or `take(size)`."""
        self.used_bytes -= min(size, self.budget)
        self._grant()

    def _grant(self) -> None:
        while self._waiting:
            size, future = self._waiting[0]
            if future.cancelled():
                self._waiting.popleft()
                continue
            if self.used_bytes + size > self.budget:
                return
            self._waiting.popleft()
            self.used_bytes += size
            future.set_result(None)
