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
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from io import RawIOBase
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import uvicorn
import uvloop

from sluice_s3.app.index.object_lock import retention_clock
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.scheduling import avoid_preemption
from sluice_s3.app.server.http.access_log import AccessLog, UnwrittenLog
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.server.http.connection import REFUSED_CONNECTIONS
from sluice_s3.app.server.http.interfaces import Served
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.http.sweeper import Sweeper
from sluice_s3.app.server.processes.acceptor import Acceptor, Listener
from sluice_s3.app.server.processes.balancer import Balancer
from sluice_s3.app.server.processes.deaths import Death, read_deaths
from sluice_s3.app.server.processes.handover import NO_INBOXES, Inbox, Inboxes
from sluice_s3.app.server.processes.listen import read_addresses
from sluice_s3.app.server.processes.loop_watch import LoopWatch
from sluice_s3.app.server.processes.parent_death import die_with_parent
from sluice_s3.app.server.processes.process_metrics import render_processes
from sluice_s3.app.server.processes.spawn import set_process_title
from sluice_s3.app.server.shared_memory.bucket_counters import BucketCounters
from sluice_s3.app.server.shared_memory.counters import Counters
from sluice_s3.app.server.shared_memory.oldest_requests import OldestRequests
from sluice_s3.app.server.shared_memory.quota_ledger import QuotaLedger
from sluice_s3.app.server.shared_memory.request_rates import RequestRates
from sluice_s3.app.server.shared_memory.request_tail import TailReader, TailWriter
from sluice_s3.app.server.shared_memory.store_states import StoreStates
from sluice_s3.app.server.shared_memory.worker_loads import WorkerLoads
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.quotas import NoPeers, PeerUsage

if TYPE_CHECKING:
    from sluice_s3.app.server.processes.traces import RequestTraces

logger = logging.getLogger("sluice.server")

DRAIN_SIGNAL = signal.SIGUSR1
"""Stops patiently. Another process has taken the socket over, and clients of old connections must not notice."""
PRE_STOP_SIGNAL = signal.SIGUSR2
"""Announces a stop of the server: balancers must send nothing more here."""
SPARE_DESCRIPTORS = 2048
ALARM = "integrity alarm"
"""The prefix of their log lines."""
COUNTERS = "counters"
BUCKET_COUNTERS = "bucket-counters"
OLDEST = "oldest"
QUOTAS = "quota-shares"
RATES = "request-rates"
WORKER_LOADS = "worker-loads"
READY = b"ready\n"


@dataclass(frozen=True)
class WorkerSpec:
    """What a child process needs to start. `target` is `module:function`."""

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
    """When the server started; see `app.index.object_lock.retention_clock`.

    None from a launcher older than this code.
    """
    read_caches: Mapping[str, int] = field(default_factory=dict)
    """Descriptors of the memory that processes share, by stores: see `app.server.shared_memory.read_caches`."""
    inboxes: Inboxes = NO_INBOXES
    """None from a launcher older than this code."""


class WorkerContext:
    """The parts of its process that an application may use."""

    def __init__(self, spec: WorkerSpec) -> None:
        run_dir = spec.settings.run_dir
        self.slot = spec.slot
        self.shared_slot = spec.place
        self.counters = Counters.open(run_dir / COUNTERS, spec.places, spec.place)
        most = spec.settings.metrics_buckets
        self._buckets = BucketCounters(run_dir / BUCKET_COUNTERS, most, spec.places, spec.place) if most else None
        self._run_dir = run_dir
        self._stores = StoreStates(run_dir, list(spec.settings.named_stores), spec.places)
        self.memory = BodyMemoryBudget(spec.settings.max_body_memory)
        """The budget of bytes for request bodies."""
        self._oldest = OldestRequests(run_dir / OLDEST, spec.places)
        self.quotas = _quota_shares(spec)
        self.rates = open_request_rates(spec.settings)
        self.read_caches = getattr(spec, "read_caches", {})  # a launcher older than this code has none
        self._kind, self._places = spec.kind, spec.places
        self._logs = spec.settings.access_log
        self._log = AccessLog() if self._logs else None
        self._ring: TailWriter | None = None
        self._tail: TailWriter | None = None
        """Where answered requests are written; None while nobody watches."""
        self._traces = _open_traces(spec)
        self.leaving = False
        """The server stops soon: readiness is `down`."""

    def gather_log(self, defer: Callable[[Callable[[], None]], object]) -> None:
        """Buffer the access log, and write it in calls scheduled by `defer`, until `end_log`."""
        if self._log is not None:
            self._log.defer = defer

    def end_log(self) -> None:
        """Write the buffered lines, and send the last spans; later lines are written at once."""
        if self._traces is not None:
            self._traces.close()
        if self._log is not None:
            self._log.defer = None
            self._log.flush()

    def leave(self) -> None:
        """Announce that the server stops soon."""
        self.leaving = True

    def oldest_request(self) -> int:
        """Return the CLOCK_BOOTTIME in milliseconds before which no running request of this server began."""
        return self._oldest.oldest()

    def observe(self, request: S3Request, status: int, code: str, sent: int, seconds: float) -> None:
        """Count and log an answered request. `status` is 0 when its connection was lost before an answer."""
        received = request.content_length or 0
        status = status or 499
        self.counters.count_request(request.operation, status, request.timings, seconds, received, sent, code)
        if self._buckets is not None and (row := request.bucket_row or request.named_bucket) is not None:
            self._buckets.count(row.name, status, received, sent)
        if self._traces is not None:
            self._traces.record(request, status, code, received, sent, seconds)
        log = self._log
        if log is not None:
            line = log.write(
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
            if self._tail is not None:
                self._tail.append(line, request.timings)

    def record_refusal(self, request_id: str, code: str, status: int, sent: int, client: str) -> None:
        """Count and log an answer of the server without the application."""
        self.counters.count_request("Unknown", status, {}, 0.0, 0, sent, code)
        if self._log is not None:
            line = self._log.write(request_id, "", "Unknown", None, None, status, 0, sent, 0.0, None, client, {}, code)
            if self._tail is not None:
                self._tail.append(line, {})

    def publish_store_state(self, name: str, condition: str, running: int, stuck: int, held_bytes: int) -> None:
        """Publish this process's state of a store to the others."""
        self._stores.publish(self.shared_slot, name, condition, running, stuck, held_bytes)

    def states_of(self, name: str) -> list[tuple[str, int, int, int]]:
        """Return condition, running and stuck calls, and bytes held, of a store in every process."""
        return self._stores.find(name)

    def addresses(self) -> Mapping[str, str]:
        """Return the URLs that the server listens on, by their names; none for a process without a launcher."""
        try:
            return read_addresses(self._run_dir)
        except FileNotFoundError:
            return {}

    def read_deaths(self) -> list[Death]:
        """Return the processes of this server that died lately, the oldest first. Raises OSError."""
        return read_deaths(self._run_dir)

    def render_processes(self) -> bytes:
        """Return requests by bucket, and what each process uses, in the text format of Prometheus."""
        by_bucket = b"" if self._buckets is None else self._buckets.render()
        return by_bucket + render_processes(self._run_dir)

    def publish(self, now: int, oldest: int | None, running: int, connections: int) -> None:
        """Publish the load of this process to the others."""
        self._oldest.publish(self.shared_slot, now if oldest is None else oldest)
        self.counters.set_gauges(running, connections)
        if self._kind == "worker":
            self._look_for_watchers(now)

    def _look_for_watchers(self, now: int) -> None:
        """Write the tail of requests from now on, or no longer."""
        if self._ring is None:
            self._ring = TailWriter.open(self._run_dir, self._places, self.shared_slot)
        self._tail = self._ring if self._ring is not None and self._ring.is_wanted(now) else None
        if not self._logs:
            self._log = None if self._tail is None else self._log or UnwrittenLog()

    def open_tail(self) -> TailReader:
        """Return a reader of the requests of all processes. Raises OSError."""
        return TailReader(self._run_dir, self._places)


def _open_traces(spec: WorkerSpec) -> RequestTraces | None:
    if spec.kind != "worker" or not spec.settings.traces:
        return None
    from sluice_s3.app.server.processes.traces import RequestTraces  # it needs an extra

    return RequestTraces()


def _quota_shares(spec: WorkerSpec) -> PeerUsage:
    try:
        return QuotaLedger(spec.settings.run_dir / QUOTAS, spec.places, spec.place)
    except FileNotFoundError:  # the launcher is older than this code
        return NoPeers()


def open_request_rates(settings: Settings, *, create: bool = False) -> RequestRates | None:
    """Return the rates that all processes share; None without limits of them. Raises OSError."""
    if not (settings.requests_per_second or settings.anonymous_requests_per_second):
        return None
    return RequestRates(settings.run_dir / RATES, create=create)


class AlarmCounter(logging.Handler):
    """Counts integrity alarms in the log, whichever part raised them."""

    def __init__(self, count: Callable[[], None]) -> None:
        super().__init__(logging.ERROR)
        self._count = count

    def emit(self, record: logging.LogRecord) -> None:
        """Count the record if it is an alarm."""
        if str(record.msg).startswith(ALARM):
            self._count()


class Server:
    """Serves one application on the listeners of a worker. Its end loses no request, and it does not poll."""

    def __init__(
        self, served: Served, config: uvicorn.Config, spec: WorkerSpec, context: WorkerContext, ready: RawIOBase
    ) -> None:
        self._served = served
        self._config = config
        self._ready = ready
        self._spec = spec
        self._context = context

    async def serve(self, sockets: list[socket.socket]) -> None:
        """Run until SIGTERM, or the drain signal (the same, patiently).

        The first socket is that of S3 or of the admin listener, the second one that of websites, if there is one.
        """
        loop = asyncio.get_running_loop()
        stopping = self._handle_signals(loop)
        state = HttpState(self._spec.settings, self._context.memory, on_refused=self._context.record_refusal)
        sweeper = Sweeper(state, publish=self._context.publish)
        self._context.gather_log(loop.call_soon)
        async with self._served.lifespan():
            sweeper.start()  # before the first connection: without it none has a time limit
            acceptor = self._make_acceptor(state, sockets)
            await acceptor.open()
            balancer = self._make_balancer(state, acceptor)
            if balancer is not None:
                balancer.start()
            watch = LoopWatch(self._context.counters.count_loop_hold)
            watch.start()
            # what exists now stays: the collector need not scan it again
            gc.collect()
            gc.freeze()
            with self._ready:
                self._ready.write(READY)
            patient = await stopping
            if balancer is not None:
                balancer.stop()
            acceptor.end()
            sweeper.drain(patient)
            await self._wait_until_idle(state)
        watch.stop()
        sweeper.stop()
        state.close()

    def _handle_signals(self, loop: asyncio.AbstractEventLoop) -> asyncio.Future[bool]:
        """Return what the signals that stop this worker complete: with True for the patient one."""
        stopping: asyncio.Future[bool] = loop.create_future()

        def stop(patient: bool) -> None:
            if not stopping.done():
                stopping.set_result(patient)

        loop.add_signal_handler(signal.SIGTERM, stop, False)
        loop.add_signal_handler(DRAIN_SIGNAL, stop, True)
        loop.add_signal_handler(PRE_STOP_SIGNAL, self._context.leave)
        return stopping

    def _make_acceptor(self, state: HttpState, sockets: list[socket.socket]) -> Acceptor:
        served, eager = self._served, self._spec.settings.fast_lane
        listeners = [Listener(*one) for one in zip(sockets, (served.gateway, served.websites), strict=False)]
        return Acceptor(state, listeners, served.application, self._config, starts_eagerly=eager)

    def _make_balancer(self, state: HttpState, acceptor: Acceptor) -> Balancer | None:
        spec, inboxes = self._spec, self._spec.inboxes
        if spec.kind != "worker" or not inboxes.receiving:
            return None
        loads = WorkerLoads(spec.settings.run_dir / WORKER_LOADS, len(inboxes.receiving))
        return Balancer(state, acceptor, Inbox(inboxes, spec.slot), loads, spec.slot)

    async def _wait_until_idle(self, state: HttpState) -> None:
        """Wait until all connections are closed and all requests done, at most the graceful time."""
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


def _serve(spec: WorkerSpec, ready: RawIOBase) -> None:
    settings = spec.settings
    _raise_descriptor_limit(settings)
    avoid_preemption()  # with warp and 16 clients, a GET of 4 KiB takes a tenth less CPU
    context = WorkerContext(spec)
    logging.getLogger("sluice").addHandler(AlarmCounter(context.counters.count_alarm))
    factory = _resolve(spec.target)
    served: Served = factory(settings, context)
    config = uvicorn.Config(
        cast(Any, served.application),
        interface="asgi3",
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
        uvloop.run(Server(served, config, spec, context, ready).serve(sockets))
    finally:
        context.end_log()


def _raise_descriptor_limit(settings: Settings) -> None:
    """Raise the soft limit (usually 1024) of descriptors.

    Each connection needs two, since zero-copy duplicates it; files need some more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = 2 * (settings.max_connections + REFUSED_CONNECTIONS) + SPARE_DESCRIPTORS
    if hard != resource.RLIM_INFINITY:
        descriptors = min(descriptors, hard)
    if soft != resource.RLIM_INFINITY and soft < descriptors:
        resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, hard))


def main(pipe: BinaryIO) -> None:
    """Read the `WorkerSpec` of a fresh process from its parent's pipe, and run it."""
    with pipe:
        spec: WorkerSpec = pickle.load(pipe)  # noqa: S301 - our own parent wrote it
    run_worker(spec)


def run_worker(spec: WorkerSpec) -> None:
    """Run as the process that `spec` describes, until it is stopped."""
    die_with_parent(spec.parent)
    set_process_title(f"sluice {spec.kind}")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # a malformed form concerns its sender only
    ready = os.fdopen(spec.ready_fd, "wb", buffering=0)
    if spec.clock is not None:
        retention_clock.clock.began = spec.clock
    try:
        _serve(spec, ready)
    except Exception as error:
        if ready.closed:
            raise
        ready.write(_reason(error))
        sys.exit(1)


def _reason(error: Exception) -> bytes:
    """Return why this process did not start, in one line."""
    lines = str(error).strip().splitlines()
    message = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return message.encode("utf-8", "replace")[:2000]
