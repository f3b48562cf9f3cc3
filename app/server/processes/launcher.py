"""The parent process of `sluice serve`: binds the sockets; starts, replaces and stops the workers.

The listening sockets stay open here as long as the server lives, and pass from worker to worker. So connections queued
on them survive a worker's death and a rolling restart: another worker accepts them.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import closing, suppress
from functools import partial
from typing import Any

from sluice_s3.app.private_files import describe_failure, make_directories
from sluice_s3.app.server.processes.child import Child, ChildFailed, Inherited, Role, start_child
from sluice_s3.app.server.processes.context import (
    BUCKET_COUNTERS,
    COUNTERS,
    OLDEST,
    QUOTAS,
    WORKER_LOADS,
    open_request_rates,
)
from sluice_s3.app.server.processes.deaths import note_death
from sluice_s3.app.server.processes.handover import Inboxes
from sluice_s3.app.server.processes.instance_lock import InstanceLock, acquire
from sluice_s3.app.server.processes.isolated_call import run_in_child
from sluice_s3.app.server.processes.listen import ADMIN as ADMIN_LISTENER
from sluice_s3.app.server.processes.listen import S3, WEBSITES, CannotListen, Listeners, write_addresses
from sluice_s3.app.server.processes.service_manager import notify, take_sockets
from sluice_s3.app.server.shared_memory.bucket_counters import BucketCounters
from sluice_s3.app.server.shared_memory.counters import Counters
from sluice_s3.app.server.shared_memory.oldest_requests import OldestRequests
from sluice_s3.app.server.shared_memory.quota_ledger import QuotaLedger
from sluice_s3.app.server.shared_memory.read_caches import ReadCaches
from sluice_s3.app.server.shared_memory.store_states import StoreStates
from sluice_s3.app.server.shared_memory.worker_loads import WorkerLoads
from sluice_s3.app.settings import Settings

logger = logging.getLogger("sluice.launcher")

Hook = Callable[[Settings], None]

APP = "sluice_s3.app.main:create_app"
ADMIN = "sluice_s3.app.admin.app:create_admin"
LOCK_WAIT_SECONDS = 3.0
"""Seconds to wait for the lock. The workers of a killed launcher die a moment after it."""
BACK_OFF_SECONDS = (0.0, 0.25, 0.5, 1.0, 2.0, 5.0)
"""Seconds before a role's process is restarted, by its deaths in a row."""
STABLE_AFTER_SECONDS = 10.0
"""Seconds after which a death no longer counts as a failed start."""
SLOTS_PER_ROLE = 3
"""Slots of the shared files for each role: one runs, one starts, one drains."""
DEAD_AFTER_SECONDS = 5.0
"""Seconds that a killed process has to die. One that hangs in the kernel stays until its mount answers."""
KILL_AFTER_SECONDS = 10.0
"""Seconds beyond the graceful time until a process is killed."""


def run(
    settings: Settings,
    *,
    before_workers: Hook | None = None,
    after_death: Hook | None = None,
    app: str = APP,
    admin: str | None = ADMIN,
) -> int:
    """Serve until SIGTERM or SIGINT, and return the exit code.

    SIGHUP replaces every process, one by one. `before_workers` runs once before any process starts, under the lock of
    the data directory, and its exceptions are raised here. It runs in a child, so that no thread of this process ever
    hangs with a mount. `after_death` runs in a thread for each process that died unexpectedly, before the next one
    starts.
    """
    try:
        make_directories(settings.home, settings.run_dir)
        lock = acquire(settings.run_dir, LOCK_WAIT_SECONDS)
        if lock is None:
            return _fail("another sluice serves this data directory")
        with closing(lock):
            if before_workers is not None:
                run_in_child(partial(before_workers, settings))
            return _serve(settings, lock, after_death, app, admin)
    except CannotListen as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(describe_failure(error, settings.home))


def _fail(message: str) -> int:
    print(f"sluice: {message}", file=sys.stderr, flush=True)
    return 1


def _serve(settings: Settings, lock: InstanceLock, after_death: Hook | None, app: str, admin: str | None) -> int:
    listeners = Listeners(take_sockets())
    tls = settings.tls_cert is not None
    scheme = "https" if tls else "http"
    try:
        workers, shared = settings.workers, settings.gather_connections
        fds, address = listeners.open(S3, settings.host, settings.port, workers, shared=shared)
        of_slot: list[tuple[int, ...]] = [(fd,) for fd in fds]
        addresses = {S3: f"{scheme}://{address}"}
        if has_sites := settings.website_port >= 0 or WEBSITES in listeners.given:
            site_address = settings.host, settings.website_port
            fds, websites_address = listeners.open(WEBSITES, *site_address, workers, shared=shared)
            of_slot = [(*one, site) for one, site in zip(of_slot, fds, strict=True)]
        roles = [Role("worker", slot, app, one, tls) for slot, one in enumerate(of_slot)]
        if admin is not None and (settings.admin_port >= 0 or ADMIN_LISTENER in listeners.given):
            fds, address = listeners.open(ADMIN_LISTENER, settings.admin_host, settings.admin_port, 1)
            roles.append(Role("admin", workers, admin, fds, tls))
            addresses[ADMIN_LISTENER] = f"{scheme}://{address}"
        if has_sites:
            addresses[WEBSITES] = f"{scheme}://{websites_address}"
        write_addresses(settings.run_dir, addresses)
        launcher = Launcher(settings, roles, lock, listeners.sockets, after_death)
        launcher.fork_all()
        lines = (f"sluice: {'ready' if name == S3 else name} on {url}" for name, url in addresses.items())
        return asyncio.run(launcher.run("\n".join(lines)))
    finally:
        for listener in listeners.sockets:
            listener.close()


class Launcher:
    """Starts, watches, replaces and stops the processes of the roles."""

    def __init__(
        self,
        settings: Settings,
        roles: list[Role],
        lock: InstanceLock,
        sockets: list[socket.socket],
        after_death: Hook | None,
    ) -> None:
        self._settings = settings
        self._roles = roles
        self._lock = lock
        self._sockets = sockets
        self._after_death = after_death
        self._slot_count = SLOTS_PER_ROLE * len(roles)
        self._counters = Counters(settings.run_dir / COUNTERS, self._slot_count, create=True)
        if settings.metrics_buckets:
            BucketCounters(settings.run_dir / BUCKET_COUNTERS, settings.metrics_buckets, self._slot_count, create=True)
        self._oldest = OldestRequests(settings.run_dir / OLDEST, self._slot_count, create=True)
        self._quotas = QuotaLedger(settings.run_dir / QUOTAS, self._slot_count, create=True)
        open_request_rates(settings, create=True)
        self._stores = StoreStates(settings.run_dir, list(settings.named_stores), self._slot_count, create=True)
        self._read_caches = ReadCaches(settings)
        balanced = settings.workers if settings.gather_connections else 1
        WorkerLoads(settings.run_dir / WORKER_LOADS, balanced, create=True)
        self._inboxes = Inboxes.open(balanced)
        self._inherited = Inherited(lock.fd, self._read_caches.fds, self._inboxes)
        self._children: set[Child] = set()
        self._forked: dict[str, Child] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._rolling: asyncio.Task[None] | None = None
        self._roll_pending = False
        """A rolling restart is requested and has not begun."""
        self._freed = asyncio.Event()
        self._leaving = False
        self._signals: asyncio.Queue[signal.Signals] = asyncio.Queue()

    def fork_all(self) -> None:
        """Fork the first process of every role from this one, which imports for all.

        That halves the cost and saves memory. Call it before there is an event loop. Later processes are fresh ones, so
        that SIGHUP loads new code.
        """
        for module in {role.target.partition(":")[0] for role in self._roles}:
            with suppress(ImportError):  # the process that needs it reports it
                importlib.import_module(module)
        gc.collect()
        gc.freeze()  # a collection in a child then copies no memory shared with the others
        for role in self._roles:
            slot = self._oldest.find_free_slot()
            assert slot is not None
            self._forked[str(role)] = self._start_process(role, slot, forked=True)

    async def run(self, ready: str) -> int:
        """Run until a stop signal, and return the exit code. Prints `ready` once every process is."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._signals.put_nowait, number)
        starting = asyncio.gather(*(self._start(role) for role in self._roles))
        stop_signal = asyncio.create_task(self._wait_for_stop())
        either: set[asyncio.Future[Any]] = {starting, stop_signal}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        code = 0
        if starting.done() and starting.exception() is not None:
            code = _fail(str(starting.exception()))
            stop_signal.cancel()
        elif not stop_signal.done():
            print(ready, flush=True)
            notify("READY=1")
            await stop_signal
            notify("STOPPING=1")
            print("sluice: stopping once the requests in progress are done; a second signal stops at once", flush=True)
            await self._leave()
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await self._stop()
        return code

    async def _wait_for_stop(self) -> None:
        while await self._signals.get() is signal.SIGHUP:
            if all(role.child is not None for role in self._roles):
                self._roll_pending = True
                if self._rolling is None or self._rolling.done():
                    self._rolling = self._background(self._roll())

    def _background(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # one process
    async def _start(self, role: Role, dead: Child | None = None) -> Child | None:
        """Start a process for a role; return its predecessor once the new one serves.

        With `dead`, replaces that child only, and returns None if another has replaced it. Raises ChildFailed.
        """
        async with role.lock:
            if dead is not None and role.child is not dead:
                return None
            child = self._forked.pop(str(role), None) or await self._start_fresh(role)
            self._background(self._watch(child))
            try:
                await child.wait_ready()
            except ChildFailed as error:
                raise ChildFailed(f"{role} did not start: {error}") from None
            before, role.child = role.child, child
            if self._leaving:
                child.leave()
            return before

    async def _start_fresh(self, role: Role) -> Child:
        while (slot := self._oldest.find_free_slot()) is None:
            self._freed.clear()
            await self._freed.wait()
        try:
            return self._start_process(role, slot, forked=False)
        except OSError as error:  # no memory for a process, or Python is being reinstalled
            raise ChildFailed(f"{role} did not start: {error.strerror}") from error

    def _start_process(self, role: Role, slot: int, *, forked: bool) -> Child:
        self._oldest.reserve(slot)
        try:
            child = start_child(self._settings, role, slot, self._slot_count, self._inherited, forked=forked)
        except BaseException:
            self._oldest.release(slot)
            raise
        self._children.add(child)
        self._lock.note([os.getpid(), *(one.process.pid for one in self._children)])
        return child

    async def _watch(self, child: Child) -> None:
        role = child.role
        code = await child.wait_until_dead()
        if child.process.returncode is None:
            # it reads no more, but holds the server's lock
            logger.error("%s was killed and hangs in the kernel, with a mount that does not answer", role)
            self._background(self._reap(child))
        else:
            self._children.discard(child)
        self._counters.clear_gauges(child.shared_slot)
        self._stores.clear(child.shared_slot)
        self._quotas.clear(child.shared_slot)
        self._oldest.release(child.shared_slot)
        self._freed.set()
        if child.retired or role.child is not child:
            return
        lived = time.monotonic() - child.started
        role.failures = 1 if lived > STABLE_AFTER_SECONDS else role.failures + 1
        reason = f"signal {-code}" if code < 0 else f"code {code}"
        logger.warning("%s died (%s), starting another", role, reason)
        with suppress(OSError):  # the log has it
            note_death(self._settings.run_dir, str(role), reason)
        if self._after_death is not None:
            try:
                await asyncio.to_thread(self._after_death, self._settings)
            except Exception:
                logger.exception("what is done after a death failed")
        await self._restart(role, child)

    async def _reap(self, child: Child) -> None:
        await child.process.wait()
        self._children.discard(child)

    async def _restart(self, role: Role, dead: Child) -> None:
        while role.child is dead:  # else a rolling restart has replaced it
            await asyncio.sleep(BACK_OFF_SECONDS[min(role.failures, len(BACK_OFF_SECONDS)) - 1])
            try:
                await self._start(role, dead)
            except ChildFailed as error:
                role.failures += 1
                logger.error("%s, trying again", error)

    # all of them
    async def _roll(self) -> None:
        while self._roll_pending:  # again if requested meanwhile: the first replacements may lack the newest code
            self._roll_pending = False
            await self._replace_all()

    async def _replace_all(self) -> None:
        for role in self._roles:
            try:
                old = await self._start(role)
            except ChildFailed as error:
                logger.error("%s; the rolling restart ends here and the old processes stay", error)
                return
            if old is not None:
                old.retire()
                self._background(self._kill_later(old))
        logger.info("rolling restart done")

    async def _kill_later(self, child: Child) -> None:
        try:
            async with asyncio.timeout(self._settings.graceful_timeout + KILL_AFTER_SECONDS):
                await child.process.wait()
        except TimeoutError:
            logger.error("%s did not stop in time and is killed", child.role)
            child.kill()

    async def _leave(self) -> None:
        """Serve for `stop_delay` while readiness answers down; a second signal ends the delay."""
        if not self._settings.stop_delay:
            return
        self._leaving = True
        for role in self._roles:
            if role.child is not None:  # processes that are starting get the signal when they have started
                role.child.leave()
        try:
            async with asyncio.timeout(self._settings.stop_delay):
                await self._another_signal()
        except TimeoutError:
            pass

    async def _stop(self) -> None:
        """Stop every process; a second signal or the time limit kills the rest."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listener in self._sockets:
            listener.close()  # once the workers close theirs, new clients are refused and can go elsewhere
        self._read_caches.close()
        self._inboxes.close()
        for child in self._children:
            child.stop()
        ends = [asyncio.create_task(child.process.wait()) for child in self._children]
        impatient = asyncio.create_task(self._another_signal())
        ended = asyncio.gather(*ends)
        either: set[asyncio.Future[Any]] = {ended, impatient}
        await asyncio.wait(
            either, timeout=self._settings.graceful_timeout + KILL_AFTER_SECONDS, return_when=asyncio.FIRST_COMPLETED
        )
        impatient.cancel()
        for child in self._children:
            if child.process.returncode is None:
                child.kill()
        await asyncio.wait({ended}, timeout=DEAD_AFTER_SECONDS)
        left = [str(child.process.pid) for child in self._children if child.process.returncode is None]
        if left:
            logger.error("processes %s hang in the kernel, with a mount that does not answer", ", ".join(left))
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)

    async def _another_signal(self) -> None:
        while await self._signals.get() is signal.SIGHUP:
            pass
