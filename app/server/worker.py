"""A worker process: one event loop, one slot's socket, one application."""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import pickle
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from io import RawIOBase
from typing import Any, BinaryIO, cast

import uvicorn
import uvloop

from app.index import lock_clock
from app.s3.request import S3Request
from app.server.access_log import AccessLog
from app.server.counters import Counters
from app.server.cycle import Application
from app.server.lane import Begin, Lane
from app.server.lifespan import Lifespan
from app.server.limits import BodyMemory
from app.server.parent import die_with
from app.server.processes import call_myself
from app.server.protocol import REFUSED_CONNECTIONS, Connection
from app.server.quota_shares import QuotaShares
from app.server.shared import OldestRequests
from app.server.state import WorkerState
from app.server.store_states import StoreStates
from app.settings import Settings
from app.store.quotas import Alone, Shares

logger = logging.getLogger("sluice.server")

DRAIN = signal.SIGUSR1
"""Stop, but patiently: another process has taken the socket over, and clients on old connections must not notice."""
LEAVE = signal.SIGUSR2
"""The server stops soon: balancers are to send nothing more here."""
SPARE_DESCRIPTORS = 2048
ALARM = "integrity alarm"
"""How the log's lines of them begin."""
COUNTERS = "counters"
OLDEST = "oldest"
QUOTAS = "quota-shares"
READY = b"ready\n"


@dataclass(frozen=True)
class Spec:
    """What a parent tells a child. `target` is `module:function`, called as `kind` says."""

    settings: Settings
    target: str
    kind: str
    """`worker` or `admin`; both are called as target(settings, WorkerContext)."""
    slot: int
    place: int
    places: int
    sockets: tuple[int, ...]
    ready_fd: int
    parent: int
    tls: bool
    clock: tuple[int, int] | None = None
    """When the server started; see `app.index.lock_clock`. None of a launcher that is older than this code."""


class WorkerContext:
    """What an application may use of the process that it runs in."""

    def __init__(self, spec: Spec) -> None:
        run_dir = spec.settings.run_dir
        self.slot = spec.slot
        self.place = spec.place
        self.counters = Counters.open(run_dir / COUNTERS, spec.places, spec.place)
        self._stores = StoreStates(run_dir, list(spec.settings.named_stores), spec.places)
        self.memory = BodyMemory(spec.settings.max_body_memory)
        """Budget of bytes for request bodies."""
        self._oldest = OldestRequests(run_dir / OLDEST, spec.places)
        self.quotas = _quota_shares(spec)
        self._log = AccessLog() if spec.settings.access_log else None
        self.leaving = False
        """The server stops soon: readiness is `down`."""

    def gather_log(self, defer: Callable[[Callable[[], None]], object]) -> None:
        """Write the access log by calls that `defer` makes a moment later, until `end_log`."""
        if self._log is not None:
            self._log.defer = defer

    def end_log(self) -> None:
        """Write what waits; later lines are written at once."""
        if self._log is not None:
            self._log.defer = None
            self._log.flush()

    def leave(self) -> None:
        """The server stops soon."""
        self.leaving = True

    def oldest_request(self) -> int:
        """CLOCK_BOOTTIME in milliseconds: no request that began before it runs in any process of this server."""
        return self._oldest.oldest()

    def observe(self, request: S3Request, status: int, code: str, sent: int, seconds: float) -> None:
        """Count and log one answered request. `status` is 0 when its connection was lost before an answer."""
        received = request.content_length or 0
        status = status or 499
        self.counters.request(request.operation, status, request.timings, seconds, received, sent, code)
        if self._log is not None:
            self._log.write(
                request.request_id,
                request.method,
                request.operation,
                request.bucket,
                request.key,
                status,
                received,
                sent,
                seconds,
                request.access_key,
                request.client,
                request.timings,
                code,
            )

    def refused(self, request_id: str, code: str, status: int, sent: int, client: str) -> None:
        """Count and log an answer that the server gave without the application."""
        self.counters.request("Unknown", status, {}, 0.0, 0, sent, code)
        if self._log is not None:
            self._log.write(request_id, "", "Unknown", None, None, status, 0, sent, 0.0, None, client, {}, code)

    def tell_store(self, name: str, condition: str, running: int, stuck: int, held: int) -> None:
        """Tell the other processes how a store is in this one."""
        self._stores.publish(self.place, name, condition, running, stuck, held)

    def states_of(self, name: str) -> list[tuple[str, int, int, int]]:
        """Condition, running and stuck calls, and bytes held in memory, of a store in every process."""
        return self._stores.of(name)

    def publish(self, now: int, oldest: int | None, running: int, connections: int) -> None:
        """Tell the other processes how this one is."""
        self._oldest.publish(self.place, now if oldest is None else oldest)
        self.counters.gauges(running, connections)


def _quota_shares(spec: Spec) -> Shares:
    try:
        return QuotaShares(spec.settings.run_dir / QUOTAS, spec.places, spec.place)
    except FileNotFoundError:  # the launcher is older than this code
        return Alone()


class Alarms(logging.Handler):
    """Counts integrity alarms where they are told to the operator, whichever part found the damage."""

    def __init__(self, count: Callable[[], None]) -> None:
        super().__init__(logging.ERROR)
        self._count = count

    def emit(self, record: logging.LogRecord) -> None:
        """One line of the log."""
        if str(record.msg).startswith(ALARM):
            self._count()


class Server(uvicorn.Server):
    """uvicorn's server with our connections: an end that loses no request, and no polling."""

    def __init__(self, config: uvicorn.Config, spec: Spec, context: WorkerContext, ready: RawIOBase) -> None:
        super().__init__(config)
        self._ready = ready
        self._spec = spec
        self._context = context

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Run until told to stop by SIGTERM, or by DRAIN (the same, patiently)."""
        assert sockets is not None
        settings = self._spec.settings
        stopping: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()

        def stop(patient: bool) -> None:
            if not stopping.done():
                stopping.set_result(patient)

        loop.add_signal_handler(signal.SIGTERM, stop, False)
        loop.add_signal_handler(DRAIN, stop, True)
        loop.add_signal_handler(LEAVE, self._context.leave)
        state = WorkerState(
            settings, self._context.memory, refused=self._context.refused, publish=self._context.publish
        )
        application = cast(Application, self.config.loaded_app)
        self.lifespan = cast(Any, Lifespan(application))
        lane: Lane | None = getattr(application, "answer_now", None)
        begin: Begin | None = getattr(application, "begin_now", None)
        self.config.http_protocol_class = cast(Any, lambda **_: Connection(state, application, lane, begin))
        self._context.gather_log(loop.call_soon)
        await self.startup(sockets=sockets[:1])
        await self._serve_websites(state, application, sockets[1:])
        state.start()
        # what is there now stays: the collector need not look at it again and again
        gc.collect()
        gc.freeze()
        with self._ready:
            self._ready.write(READY)
        patient = await stopping
        for server in self.servers:
            server.close()
        for listener in sockets:
            listener.close()
        await self._drain(state, patient)
        await self.lifespan.shutdown()
        state.stop()

    async def _serve_websites(self, state: WorkerState, application: Application, sockets: list[socket.socket]) -> None:
        """Listen where there are websites only: no lane takes a request there."""
        if not sockets:
            return
        website: Application = application.website  # type: ignore[attr-defined]
        for listener in sockets:
            make = partial(Connection, state, website)
            loop = asyncio.get_running_loop()
            self.servers.append(
                await loop.create_server(make, sock=listener, ssl=self.config.ssl, backlog=self.config.backlog)
            )

    async def _drain(self, state: WorkerState, patient: bool) -> None:
        """Wait until all connections are closed and all requests done, at most the graceful time."""
        state.drain(patient)
        deadline = state.loop.time() + self._spec.settings.graceful_timeout
        while (state.connections or state.running) and state.loop.time() < deadline:  # noqa: ASYNC110 - two sets
            await asyncio.sleep(0.02)
        tasks = [cycle.task for cycle in state.running if cycle.task is not None]
        for connection in list(state.connections):
            connection.abort()
        for task in tasks:
            task.cancel()
        if tasks:
            logger.warning("%d requests were cut off after the graceful time", len(tasks))
            await asyncio.wait(tasks, timeout=5)


def _resolve(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    return cast(Callable[..., Any], getattr(importlib.import_module(module), name))


def _serve(spec: Spec, ready: RawIOBase) -> None:
    settings = spec.settings
    _raise_descriptor_limit(settings)
    context = WorkerContext(spec)
    logging.getLogger("sluice").addHandler(Alarms(context.counters.alarm))
    factory = _resolve(spec.target)
    application = factory(settings, context)
    config = uvicorn.Config(
        application,
        interface="asgi3",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        ws="none",
        backlog=2048,
        ssl_certfile=settings.tls_cert if spec.tls else None,
        ssl_keyfile=settings.tls_key if spec.tls else None,
    )
    config.load()
    sockets = [socket.socket(fileno=fd) for fd in spec.sockets]
    try:
        uvloop.run(Server(config, spec, context, ready).serve(sockets))
    finally:
        context.end_log()


def _raise_descriptor_limit(settings: Settings) -> None:
    """Two descriptors a connection (zero-copy duplicates it), and some for files: the usual soft limit is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * (settings.max_connections + REFUSED_CONNECTIONS) + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main(pipe: BinaryIO) -> None:
    """Entry of a child process that was started anew: it reads its `Spec` from a pipe of its parent."""
    with pipe:
        spec: Spec = pickle.load(pipe)  # noqa: S301 - our own parent wrote it
    play(spec)


def play(spec: Spec) -> None:
    """Be the process that the parent asked for, until told to stop."""
    die_with(spec.parent)
    call_myself(f"sluice {spec.kind}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # what is wrong in a form is its sender's affair
    ready = os.fdopen(spec.ready_fd, "wb", buffering=0)
    if spec.clock is not None:
        lock_clock.clock.began = spec.clock
    try:
        _serve(spec, ready)
    except Exception as error:
        if ready.closed:
            raise
        ready.write(_reason(error))
        sys.exit(1)


def _reason(error: Exception) -> bytes:
    """Why this process did not start, in one line."""
    lines = str(error).strip().splitlines()
    message = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return message.encode("utf-8", "replace")[:2000]
