"""Watches all stores from the admin process: their latency, and the changes of their condition.

Each store has a task of its own, so that one that hangs delays no other. While somebody looks, each is probed every few
seconds, else twice a minute.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from sluice_s3.app.admin.store_health.transitions import Transition, TransitionLog
from sluice_s3.app.errors import StoreUnavailable, describe
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.availability.circuit_breaker import Condition
from sluice_s3.app.store.availability.latency_probe import LatencyProbe
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.admin")

WATCHED_SECONDS = 5.0
"""Seconds between two probes of a store while somebody looks."""
UNWATCHED_SECONDS = 30.0
"""Seconds between two probes otherwise."""
WATCHED_FOR_SECONDS = 60.0
"""Seconds after a look in which the next one is expected."""
KEPT_SECONDS = 900.0
"""Seconds for which latencies are kept."""
MAX_POINTS = round(KEPT_SECONDS / WATCHED_SECONDS)
STATE_SECONDS = 1.0
"""Seconds between two readings of what the processes say of their stores."""

States = Callable[[str], list[tuple[Condition, int, int, int]]]
"""Condition, running and stuck calls, and bytes in memory, of a store in every process."""


class LatencyPoint(NamedTuple):
    """One measurement."""

    at: int
    """Milliseconds since the epoch."""
    read: float | None
    """Seconds; None when it failed."""
    sync: float | None


class StoreWatch:
    """The latencies and conditions of all stores."""

    def __init__(self, store: Store, settings: Settings, states: States) -> None:
        self._stores = store.all
        self._settings = settings
        self._states = states
        self._log = TransitionLog(settings.run_dir)
        self._points: dict[str, deque[LatencyPoint]] = {name: deque(maxlen=MAX_POINTS) for name in store.all}
        self._silent_since: dict[str, int | None] = dict.fromkeys(store.all)
        self._problems: dict[str, str] = {}
        """Why the last probe of a store failed."""
        self._looked_at = -WATCHED_FOR_SECONDS
        self._woken = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Start to watch."""
        await asyncio.to_thread(self._log.load)
        self._tasks = [asyncio.create_task(self._probe(one)) for one in self._stores.values()]
        self._tasks.append(asyncio.create_task(self._watch_states()))

    async def stop(self) -> None:
        """Stop watching. No thread that hangs is waited for."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def look(self) -> None:
        """Note that somebody looks now."""
        if time.monotonic() >= self._looked_at + WATCHED_FOR_SECONDS:
            self._woken.set()
        self._looked_at = time.monotonic()

    def latencies(self, store: str) -> list[LatencyPoint]:
        """Return the latest measurements of a store, the oldest first."""
        oldest = _now() - KEPT_SECONDS * 1000
        return [point for point in self._points[store] if point.at >= oldest]

    def silent_since(self, store: str) -> int | None:
        """Return since when a store does not answer its probe, in milliseconds since the epoch; None when it does."""
        return self._silent_since[store]

    def transitions(self, store: str) -> list[Transition]:
        """Return the last changes of a store's condition, the oldest first."""
        return self._log.of(store)

    # each store
    async def _probe(self, store: Store) -> None:
        settings = self._settings.named_stores[store.name]
        assert settings.hang_timeout is not None
        probe = LatencyProbe(store, settings.directory, settings.hang_timeout)
        while True:
            try:
                await self._measure(store.name, probe)
            except Exception:
                logger.exception("store %s: its latency could not be measured", store.name)
            await self._pause()

    async def _measure(self, name: str, probe: LatencyProbe) -> None:
        began = _now()
        try:
            read, sync, refusal = await probe.measure()
        except StoreUnavailable as error:
            self._points[name].append(LatencyPoint(_now(), None, None))
            self._problems[name] = describe(error)
            if self._silent_since[name] is None:
                self._silent_since[name] = began
            return
        self._silent_since[name] = None
        self._problems[name] = "" if refusal is None else str(refusal)
        self._points[name].append(LatencyPoint(_now(), read, sync))

    async def _pause(self) -> None:
        watched = time.monotonic() < self._looked_at + WATCHED_FOR_SECONDS
        self._woken.clear()
        try:
            async with asyncio.timeout(WATCHED_SECONDS if watched else UNWATCHED_SECONDS):
                await self._woken.wait()
        except TimeoutError:
            pass

    # all stores
    async def _watch_states(self) -> None:
        while True:
            for name, store in self._stores.items():
                conditions = [condition for condition, _, _, _ in self._states(name)]
                reason = ("" if store.breaker is None else store.breaker.reason) or self._problems.get(name, "")
                self._log.note(name, conditions, reason, _now())
            await self._log.save()
            await asyncio.sleep(STATE_SECONDS)


def _now() -> int:
    return time.time_ns() // 1_000_000
