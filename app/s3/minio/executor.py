"""Encrypts and decrypts bodies in one thread of its own, for a bounded number of requests.

Each takes 0.1 s of CPU time and 64 MiB of memory. In the threads of the event loop, which open and read files too,
waiting ones would stall all other requests.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from sluice_s3.app.s3.errors import SlowDown

MAX_WAITING, MAX_OF_KEY = 16, 4
"""Bodies that run or wait at most: of all access keys, and of one."""


class BoundedExecutor:
    """Runs one function after the other, and refuses requests when too many wait."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "minio-admin")
        self._waiting: Counter[str] = Counter()
        """Bodies by access key."""

    async def run(self, key: str, work: Callable[[str, bytes], bytes], secret: str, data: bytes) -> bytes:
        """Return the result of `work`. Raises SlowDown when too many of the access key, or of all, wait."""
        if self._waiting[key] >= MAX_OF_KEY or self._waiting.total() >= MAX_WAITING:
            raise SlowDown()
        return await self.run_always(key, work, secret, data)

    async def run_always(self, key: str, work: Callable[[str, bytes], bytes], secret: str, data: bytes) -> bytes:
        """Return the result of `work`, for a request whose change is made: its answer must not be refused."""
        self._waiting[key] += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work, secret, data)
        finally:
            self._waiting[key] -= 1
            self._waiting += Counter()  # drops keys without bodies
