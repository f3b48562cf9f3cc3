"""The state shared by all connections of one worker, and the timer that sweeps them."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Protocol

from sluice_s3.app.s3.wire.response_writer import RENDERED, ZERO_COPY
from sluice_s3.app.server.http.limits import BodyMemoryBudget
from sluice_s3.app.server.http.timeouts import close_if_idle, enforce_timeouts
from sluice_s3.app.server.http.trusted_proxies import TrustedProxies
from sluice_s3.app.server.http.unauthenticated import UnauthenticatedBodies
from sluice_s3.app.settings import Settings

if TYPE_CHECKING:
    from sluice_s3.app.server.http.connection import Connection
    from sluice_s3.app.server.http.cycle import RequestCycle

logger = logging.getLogger("sluice.server")

TLS_EXTENSIONS: dict[str, dict[str, Any]] = {RENDERED: {}}
EXTENSIONS: dict[str, dict[str, Any]] = {ZERO_COPY: {}, RENDERED: {}}
SWEEP_SECONDS = 1.0
"""Seconds between two sweeps of all connections; time limits are exact to this."""


class OnRefused(Protocol):
    """Called for every request answered without the application.

    Takes the request id, code, status, bytes sent and client.
    """

    def __call__(self, request_id: str, code: str, status: int, sent: int, client: str) -> None:
        """Take one refused request."""
        ...


class PublishLoad(Protocol):
    """Called at every sweep with the load.

    Takes the time, the start of the oldest running request, and the numbers of running requests and connections.
    """

    def __call__(self, now: int, oldest: int | None, running: int, connections: int) -> None:
        """Take the load of one sweep."""
        ...


class HttpState:
    """The connections, running requests and coarse clock of a worker.

    `now` is the loop's time and `boot_ms` CLOCK_BOOTTIME in milliseconds, both as of the last sweep: reading them costs
    nothing, and the start of a request is never recorded too late.
    """

    def __init__(
        self,
        settings: Settings,
        memory: BodyMemoryBudget,
        *,
        refused: OnRefused | None = None,
        publish: PublishLoad | None = None,
    ) -> None:
        self.settings = settings
        self.memory = memory
        # read for every request or even every field: plain attributes cost less than the model's
        self.max_headers = settings.max_headers
        self.max_header_bytes = settings.max_header_bytes
        self.max_requests = settings.max_requests
        self.proxies = TrustedProxies(settings.proxies) if settings.proxies else None
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.running: dict[RequestCycle, int] = {}
        self.unauthenticated = UnauthenticatedBodies(settings)
        self.draining = False
        self.patient = False
        """While draining: idle connections may stay a while. Their clients may be about to use them."""
        self.drain_since = 0.0
        self.pool = ThreadPoolExecutor(settings.io_threads, "sendfile")
        self._refused = refused
        self._publish = publish
        limits = (
            settings.header_timeout,
            settings.body_timeout,
            settings.document_timeout,
            settings.keep_alive_timeout,
            settings.request_max_age,
        )
        self.interval = min(SWEEP_SECONDS, *(limit / 4 for limit in limits))
        self._timer: asyncio.TimerHandle | None = None
        self._second = 0
        self.default_head = b""
        self._tick()

    def start(self) -> None:
        """Start the sweeps."""
        self._sweep()

    def stop(self) -> None:
        """Stop the sweeps and the threads."""
        if self._timer is not None:
            self._timer.cancel()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def drain(self, patient: bool) -> None:
        """Answer with `connection: close` from now on; close idle connections (at once, unless `patient`)."""
        self.draining = True
        self.patient = patient
        self.drain_since = self.now = self.loop.time()
        for connection in list(self.connections):
            close_if_idle(connection, self.now)

    def refused(self, request_id: str, code: str, status: int, sent: int, client: str) -> None:
        """Record an answer of the server without the application."""
        if self._refused is not None:
            self._refused(request_id, code, status, sent, client)

    def _tick(self) -> None:
        self.now = self.loop.time()
        self.boot_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        second = int(time.time())
        if second != self._second:
            self._second = second
            self.default_head = b"date: %b\r\nserver: Sluice\r\n" % formatdate(second, usegmt=True).encode()

    def _sweep(self) -> None:
        self._tick()
        self._timer = self.loop.call_later(self.interval, self._sweep)
        for connection in list(self.connections):
            try:
                enforce_timeouts(connection, self.now)
            except Exception:
                logger.exception("sweep of a connection failed")
        eldest = self.boot_ms - int(self.settings.request_max_age * 1000)
        for cycle, began in list(self.running.items()):
            if began > eldest:
                break
            cycle.cut()
        if self._publish is not None:
            oldest = next(iter(self.running.values()), None)
            self._publish(self.boot_ms, oldest, len(self.running), len(self.connections))


def scope_template(transport: asyncio.BaseTransport) -> dict[str, Any]:
    """Return the parts that every scope of a connection shares."""
    peer = transport.get_extra_info("peername")
    own = transport.get_extra_info("sockname")
    tls = transport.get_extra_info("sslcontext") is not None
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "root_path": "",
        "scheme": "https" if tls else "http",
        "client": peer[:2] if isinstance(peer, tuple) else None,
        "server": own[:2] if isinstance(own, tuple) else None,
        "extensions": TLS_EXTENSIONS if tls else EXTENSIONS,
    }
