"""The state shared by all connections of one worker."""

from __future__ import annotations

import asyncio
import logging
import time
from email.utils import formatdate
from typing import Protocol

from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.server.http.interfaces import OpenConnection, RunningRequest
from sluice_s3.app.server.http.trusted_proxies import TrustedProxies
from sluice_s3.app.server.http.unauthenticated import UnauthenticatedBodies
from sluice_s3.app.settings import Settings

logger = logging.getLogger("sluice.server")


class OnRefused(Protocol):
    """Called for every request answered without the application.

    Takes the request id, code, status, bytes sent and client.
    """

    def __call__(self, request_id: str, code: str, status: int, sent: int, client: str) -> None:
        """Take one refused request."""
        ...


class HttpState:
    """The connections, running requests and coarse clock of a worker.

    `now` is the loop's time and `boot_ms` CLOCK_BOOTTIME in milliseconds, both as of the last sweep: reading them costs
    nothing, and the start of a request is never recorded too late.
    """

    def __init__(self, settings: Settings, memory: BodyMemoryBudget, *, on_refused: OnRefused | None = None) -> None:
        self.settings = settings
        self.memory = memory
        # read for every request or even every field: plain attributes cost less than the model's
        self.max_headers = settings.max_headers
        self.max_header_bytes = settings.max_header_bytes
        self.max_requests = settings.max_requests
        self.proxies = TrustedProxies(settings.proxies) if settings.proxies else None
        self.loop = asyncio.get_running_loop()
        self.connections: set[OpenConnection] = set()
        self.running: dict[RunningRequest, int] = {}
        self.live: set[asyncio.Task[None]] = set()
        """Tasks of streams of events, which are not among the running requests: see `leave_running`."""
        self.unauthenticated = UnauthenticatedBodies(settings)
        self.draining = False
        self.patient = False
        """While draining: idle connections may stay a while. Their clients may be about to use them."""
        self.drain_since = 0.0
        self._on_refused = on_refused
        self._second = 0
        self.default_head = b""
        self.read_clocks()

    def leave_running(self, cycle: RunningRequest) -> None:
        """Take a stream of events out of the running requests.

        It lasts for hours and reads no stored data. Otherwise discarded data would wait for it (law 2), background jobs
        would take the server for busy, and a stop would wait for it.
        """
        self.running.pop(cycle, None)
        task = cycle.task
        if task is not None:
            self.live.add(task)
            task.add_done_callback(self.live.discard)
            if self.draining:
                task.cancel()

    def cut_before(self, began: int) -> None:
        """End the running requests that began before `began`, a CLOCK_BOOTTIME in milliseconds."""
        for cycle, begin in list(self.running.items()):
            if begin > began:
                break
            try:
                cycle.cut()
            except Exception:
                logger.exception("the end of a request failed")

    def record_refusal(self, request_id: str, code: str, status: int, sent: int, client: str) -> None:
        """Record an answer of the server without the application."""
        if self._on_refused is not None:
            self._on_refused(request_id, code, status, sent, client)

    def read_clocks(self) -> None:
        """Read the clocks, and render the lines that every head shares."""
        self.now = self.loop.time()
        self.boot_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        second = int(time.time())
        if second != self._second:
            self._second = second
            self.default_head = b"date: %b\r\nserver: Sluice\r\n" % formatdate(second, usegmt=True).encode()
