"""One worker at a time runs what happens later; when it dies another takes over, because the kernel drops its lock."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from app.errors import DomainError
from app.index.rows import Writer
from app.jobs.compaction import Compactor
from app.jobs.decisions import Decisions
from app.jobs.garbage import Garbage
from app.jobs.scrub import Scrubber
from app.jobs.sweep import sweep
from app.store.store import Store, driver_calls

logger = logging.getLogger("sluice.jobs")

PERIOD = 1.0
"""Seconds between rounds."""
LAST_ROUND = 10.0
"""Seconds that a stopping worker may take to write down what was decided last."""


class Jobs:
    """Runs sweeps, garbage collection, journals and compaction in the worker that holds `lock_path`."""

    def __init__(
        self,
        lock_path: Path,
        store: Store,
        garbage: Garbage,
        is_gone: Callable[[Writer], bool],
        decisions: Decisions | None = None,
        scrubber: Scrubber | None = None,
        compactor: Compactor | None = None,
    ) -> None:
        self._lock_path = lock_path
        self._store = store
        self._garbage = garbage
        self._is_gone = is_gone
        self._decisions = decisions
        self._scrubber = scrubber
        self._scrubbing: asyncio.Task[None] | None = None
        self._compactor = compactor
        self._lock: int | None = None

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                await self._round(self._elected())
                await asyncio.sleep(PERIOD)
        finally:
            if self._scrubbing is not None:
                self._scrubbing.cancel()
                await asyncio.gather(self._scrubbing, return_exceptions=True)
            if self._lock is not None:
                await self._last_round()
                os.close(self._lock)
                self._lock = None

    def _elected(self) -> bool:
        if self._lock is not None:
            return True
        descriptor = os.open(self._lock_path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    async def _round(self, elected: bool) -> None:
        await self._try(self._store.write_down_refused)
        await self._try(self._forget_unlinked)
        if not elected:
            return
        if self._scrubber is not None and self._scrubbing is None:
            self._scrubbing = asyncio.create_task(self._scrubber.run())
        if self._decisions is not None:
            await self._try(self._decisions.run_once)
        await self._try(self._sweep)
        await self._try(self._garbage.run_once)
        if self._compactor is not None:
            await self._try(self._compactor.run_once)

    async def _forget_unlinked(self) -> None:
        with driver_calls():
            await self._store.driver.forget_unlinked()

    async def _sweep(self) -> int:
        return await sweep(self._store, self._is_gone)

    async def _last_round(self) -> None:
        if self._decisions is None:
            return
        try:
            async with asyncio.timeout(LAST_ROUND):
                await self._try(self._decisions.run_once)
        except TimeoutError:
            logger.warning("jobs: what was decided last is not written down beside the data")

    async def _try(self, job: Callable[[], Awaitable[object]]) -> None:
        try:
            await job()
        except DomainError as error:
            logger.warning("jobs: %s, to be tried again", type(error).__name__)
        except Exception:
            logger.exception("jobs failed, to be tried again")
