"""The timer that sweeps all connections and running requests of a worker, and their drain."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.http.timeouts import close_if_idle, enforce_timeouts

logger = logging.getLogger("sluice.server")

SWEEP_SECONDS = 1.0
"""Seconds between two sweeps of all connections; time limits are exact to this."""


class PublishLoad(Protocol):
    """Called at every sweep with the load.

    Takes the time, the start of the oldest running request, and the numbers of running requests and connections.
    """

    def __call__(self, now: int, oldest: int | None, running: int, connections: int) -> None:
        """Take the load of one sweep."""
        ...


class Sweeper:
    """The sweeps of one worker: they read its clocks and enforce the time limits."""

    def __init__(self, state: HttpState, *, publish: PublishLoad | None = None) -> None:
        self._state = state
        self._publish = publish
        settings = state.settings
        limits = (
            settings.header_timeout,
            settings.body_timeout,
            settings.document_timeout,
            settings.keep_alive_timeout,
            settings.request_max_age,
        )
        self._interval = min(SWEEP_SECONDS, *(limit / 4 for limit in limits))
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start the sweeps."""
        self._sweep()

    def stop(self) -> None:
        """Stop the sweeps."""
        if self._timer is not None:
            self._timer.cancel()

    def drain(self, patient: bool) -> None:
        """Answer with `connection: close` from now on; close idle connections (at once, unless `patient`).

        Streams of events end: browsers open them again.
        """
        state = self._state
        state.draining = True
        state.patient = patient
        state.drain_since = state.now = state.loop.time()
        for connection in list(state.connections):
            close_if_idle(connection, state)
        for task in list(state.live):
            task.cancel()

    def _sweep(self) -> None:
        state = self._state
        state.read_clocks()
        self._timer = state.loop.call_later(self._interval, self._sweep)
        for connection in list(state.connections):
            try:
                enforce_timeouts(connection, state)
            except Exception:
                logger.exception("sweep of a connection failed")
        state.cut_before(state.boot_ms - int(state.settings.request_max_age * 1000))
        if self._publish is not None:
            oldest = next(iter(state.running.values()), None)
            self._publish(state.boot_ms, oldest, len(state.running), len(state.connections))
