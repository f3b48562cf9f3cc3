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
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import RawIOBase
from typing import Any, BinaryIO, cast

import uvicorn
import uvloop

from sluice_s3.app.index.object_lock import retention_clock
from sluice_s3.app.process_tuning import avoid_preemption, keep_freed_memory
from sluice_s3.app.server.http.connection import REFUSED_CONNECTIONS
from sluice_s3.app.server.http.interfaces import Served
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.http.sweeper import Sweeper
from sluice_s3.app.server.processes.acceptor import Acceptor, Listener
from sluice_s3.app.server.processes.balancer import Balancer
from sluice_s3.app.server.processes.context import WORKER_LOADS, WorkerContext
from sluice_s3.app.server.processes.context import WorkerSpec as WorkerSpec  # where older launchers find it
from sluice_s3.app.server.processes.handover import Inbox
from sluice_s3.app.server.processes.loop_watch import LoopWatch
from sluice_s3.app.server.processes.parent_death import die_with_parent
from sluice_s3.app.server.processes.spawn import set_process_title
from sluice_s3.app.server.shared_memory.worker_loads import WorkerLoads
from sluice_s3.app.settings import Settings

logger = logging.getLogger("sluice.server")

DRAIN_SIGNAL = signal.SIGUSR1
"""Stops patiently. Another process has taken the socket over, and clients of old connections must not notice."""
PRE_STOP_SIGNAL = signal.SIGUSR2
"""Announces a stop of the server: balancers must send nothing more here."""
SPARE_DESCRIPTORS = 2048
ALARM = "integrity alarm"
"""The prefix of their log lines."""
READY = b"ready\n"
EXECUTOR_START_SECONDS = 10.0
"""Longest wait of a thread of the executor for the others: one that cannot be started ends the worker."""


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
        loop.set_default_executor(_make_executor())
        stopping = self._handle_signals(loop)
        state = HttpState(self._spec.settings, self._context.memory, on_refused=self._context.record_refusal)
        self._context.end_before = state.cut_before
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
            await acceptor.end()
            sweeper.drain(patient)
            await self._wait_until_idle(state)
        watch.stop()
        sweeper.stop()

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
        inbox = Inbox(inboxes, spec.slot)
        return Balancer(state, acceptor, inbox, loads, spec.slot, self._context.thread_share)

    async def _wait_until_idle(self, state: HttpState) -> None:
        """Wait until all connections are closed and all requests done, at most the graceful time."""
        deadline = state.loop.time() + self._spec.settings.graceful_timeout
        while (state.connections or state.running) and state.loop.time() < deadline:  # noqa: ASYNC110 - two sets
            await asyncio.sleep(0.02)
        tasks = [cycle.task for cycle in state.running if cycle.task is not None]
        for cycle in list(state.running):
            cycle.cut()
        for connection in list(state.connections):
            connection.abort()
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
    keep_freed_memory()
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


def _make_executor() -> ThreadPoolExecutor:
    """Return the executor of `asyncio.to_thread`, all of whose threads run.

    It would start them on the event loop, which stands still where memory for one lacks (see `BackgroundThread`).
    """
    count = min(32, (os.cpu_count() or 1) + 4)  # as many as that of asyncio has
    executor, all_run = ThreadPoolExecutor(count, "loop"), threading.Barrier(count)
    for _ in range(count):
        executor.submit(all_run.wait, EXECUTOR_START_SECONDS)
    return executor


def _raise_descriptor_limit(settings: Settings) -> None:
    """Raise the soft limit (usually 1024) of descriptors.

    A connection needs three while a file is sent on it: the socket, its duplicate and the file.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptors = 3 * settings.max_connections + REFUSED_CONNECTIONS + SPARE_DESCRIPTORS
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
