"""Times a small read and a small sync of a store, now and then, in a thread that nothing waits for.

Requests have no part in it: what they do is timed by their phases, for all stores together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.errors import DriverError, StoreGone, map_errors
from sluice_s3.storage_drivers.health import CallTimes, time_calls
from sluice_s3.storage_drivers.threads import BackgroundThread

logger = logging.getLogger("sluice.store")

POLL_SECONDS = 0.05
"""Longest seconds between two looks at whether the thread has ended; a quick mount is seen at once."""
FIRST_POLL_SECONDS = 0.002


class _Thread:
    """One measurement in a thread, which may hang."""

    def __init__(self, measure: Callable[[], CallTimes]) -> None:
        self.done = False
        self.times: CallTimes | None = None
        self.error: DriverError | None = None
        BackgroundThread(lambda: self._run(measure))

    def _run(self, measure: Callable[[], CallTimes]) -> None:
        try:
            with map_errors():
                self.times = measure()
        except DriverError as error:
            self.error = error
        except Exception as error:
            logger.exception("the latency of a store could not be measured")
            self.error = StoreGone(type(error).__name__)
        self.done = True


class LatencyProbe:
    """The probe of one store; `directory` is None for one without a mount, of which only a read is timed.

    At most one thread of it hangs: until that one returns, no other is started.
    """

    def __init__(self, store: Store, directory: Path | None, limit: float) -> None:
        """`limit`: seconds that a measurement may take."""
        self._store = store
        self._directory = directory
        self._limit = limit
        self._thread: _Thread | None = None

    async def measure(self) -> CallTimes:
        """Return how long the calls took. Raises StoreUnavailable with the reason, also when they hang."""
        if self._thread is None:
            if not self._store.up:
                raise StoreUnavailable(reason="it is out of service")
            self._thread = _Thread(self._calls())
        thread, pause = self._thread, FIRST_POLL_SECONDS
        deadline = time.monotonic() + self._limit
        while not thread.done:
            if time.monotonic() >= deadline:
                raise StoreUnavailable(reason="it does not answer")
            await asyncio.sleep(pause)
            pause = min(2 * pause, POLL_SECONDS)
        self._thread = None
        if thread.error is not None:
            raise StoreUnavailable(reason=str(thread.error)) from thread.error
        assert thread.times is not None
        return thread.times

    def _calls(self) -> Callable[[], CallTimes]:
        """Return what a thread runs: it reads nothing of this object, which goes on without it."""
        directory, driver, identity = self._directory, self._store.driver, self._store.driver.identity
        if directory is not None:
            return lambda: time_calls(directory)
        if identity is None:
            raise StoreUnavailable(reason="it was never in service here")

        def look() -> CallTimes:
            started = time.perf_counter()
            driver.look(identity, write=False)
            return CallTimes(time.perf_counter() - started, None, None)

        return look
