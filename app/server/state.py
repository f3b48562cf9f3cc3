"""What all connections of one worker share, and the one timer that watches over them."""

from __future__ import annotations

import asyncio
import logging
import time
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Protocol

from app.s3.send import RENDERED, ZERO_COPY
from app.server.forwarded import Proxies
from app.server.limits import BodyMemory
from app.server.watch import drain, watch
from app.settings import Settings

if TYPE_CHECKING:
    from app.server.cycle import Cycle
    from app.server.protocol import Connection

logger = logging.getLogger("sluice.server")

TLS_EXTENSIONS: dict[str, dict[str, Any]] = {RENDERED: {}}
EXTENSIONS: dict[str, dict[str, Any]] = {ZERO_COPY: {}, RENDERED: {}}
SWEEP = 1.0
"""Seconds between two looks at all connections; limits of time are exact to this."""


class Refusals(Protocol):
    """Told of every request that was answered without the application: code, status, bytes in and out, client."""

    def __call__(self, request_id: str, code: str, status: int, sent: int, client: str) -> None: ...


class Publisher(Protocol):
    """Told at every sweep: the time, when the oldest running request began, how many run, how many connections."""

    def __call__(self, now: int, oldest: int | None, running: int, connections: int) -> None: ...


class WorkerState:
    """Connections, running requests and the coarse clock of a worker.

    `now` is the loop's time and `boot_ms` CLOCK_BOOTTIME in milliseconds, both as of the last sweep: reading them
    costs nothing, and a start of a request is never noted too late.
    """

    def __init__(
        self,
        settings: Settings,
        memory: BodyMemory,
        *,
        refused: Refusals | None = None,
        publish: Publisher | None = None,
    ) -> None:
        self.settings = settings
        self.memory = memory
        # looked at for every request, or even every field: plain attributes cost less than the model's
        self.max_headers = settings.max_headers
        self.max_header_bytes = settings.max_header_bytes
        self.max_requests = settings.max_requests
        self.proxies = Proxies(settings.proxies) if settings.proxies else None
        self.loop = asyncio.get_running_loop()
        self.connections: set[Connection] = set()
        self.running: dict[Cycle, int] = {}
        self.draining = False
        self.patient = False
        """While draining: idle connections may stay a while, because their clients may be about to use them."""
        self.drain_since = 0.0
        self.pool = ThreadPoolExecutor(settings.io_threads, "sendfile")
        self._refused = refused
        self._publish = publish
        limits = (settings.header_timeout, settings.body_timeout, settings.keep_alive_timeout, settings.request_max_age)
        self.interval = min(SWEEP, *(limit / 4 for limit in limits))
        self._timer: asyncio.TimerHandle | None = None
        self._second = 0
        self.default_head = b""
        self._tick()

    def start(self) -> None:
        """Begin to sweep."""
        self._sweep()

    def stop(self) -> None:
        """Stop to sweep and give the threads back."""
        if self._timer is not None:
            self._timer.cancel()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def drain(self, patient: bool) -> None:
        """Answer with `connection: close` from now on, and close what is idle (at once, unless `patient`)."""
        self.draining = True
        self.patient = patient
        self.drain_since = self.now = self.loop.time()
        for connection in list(self.connections):
            drain(connection, self.now)

    def refused(self, request_id: str, code: str, status: int, sent: int, client: str) -> None:
        """Note an answer given without the application."""
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
                watch(connection, self.now)
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
    """What every scope of a connection has in common."""
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
