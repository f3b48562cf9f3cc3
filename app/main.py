"""create_app(settings): the assembly of all parts, nothing else."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from fastapi import FastAPI

from sluice_s3.app.access.lookup_cache import MAX_AGE_SECONDS, LookupCache
from sluice_s3.app.index import Index, open_index
from sluice_s3.app.jobs.integrity.capacity import CapacityMonitor
from sluice_s3.app.jobs.integrity.scrub import Scrubber
from sluice_s3.app.jobs.journals.writer import RETAINED_MS, JournalWriter, other_stores_watermark
from sluice_s3.app.jobs.leader_election import FlockElection, LeaseElection
from sluice_s3.app.jobs.lifecycle import Lifecycle
from sluice_s3.app.jobs.notifications.sender import NotificationSender
from sluice_s3.app.jobs.plain_files.scan import PlainFileScanner
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.relocation.bucket_migration import BucketMigrator
from sluice_s3.app.jobs.relocation.restores import RestoreRunner
from sluice_s3.app.jobs.rename_tokens import RenameTokenExpiry
from sluice_s3.app.jobs.runner import Job, Jobs, StoreJobs
from sluice_s3.app.s3.gateway import Gateway
from sluice_s3.app.s3.inventory.delivery import InventoryDelivery
from sluice_s3.app.s3.logging.delivery import LogDelivery
from sluice_s3.app.s3.services import Services
from sluice_s3.app.s3.wire import checksums
from sluice_s3.app.s3.wire.request import REQUEST, S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.s3.wire.target import bucket_of_host
from sluice_s3.app.server.processes.health import health_router
from sluice_s3.app.server.processes.worker import WorkerContext
from sluice_s3.app.server.shared_memory.oldest_requests import boottime_ms
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import start_store
from sluice_s3.app.store.journals.wakeup import JournalWakeup
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.store import Store
from sluice_s3.app.store.stores import make_stores

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

logger = logging.getLogger("sluice.server")

HEALTH = frozenset({b"/-/health/live", b"/-/health/ready"})
"""Paths of health checks. No bucket name has one character, so none of these is an object."""
MINIO_HEALTH = b"/minio/health/live"


class WorkerApp:
    """The S3 listener of one worker.

    It passes requests to the S3 plane, and health checks and the process's lifespan to FastAPI. It chooses itself,
    because FastAPI's routing costs more than a whole HEAD.
    """

    def __init__(self, settings: Settings, context: WorkerContext) -> None:
        self._settings = settings
        self._takes_fast_path = settings.fast_lane
        self._context = context
        self._index: Index = open_index(settings, lost=_end)
        self._reads_synchronously = settings.fast_lane and self._index.at_once
        self._store = make_stores(self._index, settings)
        """The default store, which references the others."""
        self._services = Services(settings, self._store, LookupCache(self._index), context.memory)
        self._services.quotas.shares = context.quotas
        self._gateway = Gateway(self._services, context.observe)
        self._shell = FastAPI(
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            lifespan=self._lifespan,
            telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        )
        self._shell.include_router(health_router(self._ready))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI call."""
        if scope["type"] != "http":
            await self._shell(scope, receive, send)
            return
        path: bytes = scope["raw_path"]
        if (path in HEALTH or path == MINIO_HEALTH) and await self._is_health(scope, path):
            await self._shell(scope, receive, send)
            return
        await self._gateway(scope, receive, send)

    async def website(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle an ASGI call on a listener for websites only."""
        scope[REQUEST].website = True
        await self._gateway(scope, receive, send)

    def try_respond(self, request: S3Request) -> Response | None:
        """Answer on the fast path: see `Gateway.try_respond`."""
        path = request.raw_path
        if not self._reads_synchronously or path in HEALTH or path == MINIO_HEALTH:
            return None
        return self._gateway.try_respond(request)

    def try_start(self, request: S3Request, body: bytes, on_response: Callable[[Response], None]) -> bool:
        """Start a small change on the fast path: see `Gateway.try_start`."""
        path = request.raw_path
        if not self._takes_fast_path or path in HEALTH or path == MINIO_HEALTH:
            return False
        return self._gateway.try_start(request, body, on_response)

    async def _is_health(self, scope: Scope, path: bytes) -> bool:
        headers = dict(scope["headers"])
        if bucket_of_host(headers.get(b"host", b"").decode("latin-1"), self._settings.domains) is not None:
            return False
        if path in HEALTH:
            return True
        is_signed = b"authorization" in headers or b"Signature=" in scope["query_string"]
        return not is_signed and await self._index.bucket("minio") is None

    async def _ready(self) -> bool:
        """Return whether index, some store and this server are usable.

        It touches no disk of a store.
        """
        if self._context.leaving:
            return False
        await self._index.check()
        failing = self._store.journal_failures
        return any(store.up and store.name not in failing for store in self._store.all.values())

    @asynccontextmanager
    async def _lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        checksums.preload()
        await self._index.start()
        stores = list(self._store.all.values())
        identities = await self._index.identities()
        breakers = {}
        for store in stores:
            if store.driver.capabilities.one_process:  # created here, and the index binds it to this process
                await start_store(store, identities)
            elif store.breaker is not None:
                breakers[store.name] = store.breaker
        await asyncio.gather(*(breaker.start(identities.get(name)) for name, breaker in breakers.items()))
        watching = asyncio.gather(*(breaker.run(self._context.publish_store_state) for breaker in breakers.values()))
        for store in stores:
            store.journal_wakeup = JournalWakeup(self._settings.run_dir, store.name)
            store.open_packs()
        election = (
            LeaseElection(self._index)
            if self._index.many_hosts
            else FlockElection(self._settings.run_dir / "jobs.lock")
        )
        oldest = self._index.across(self._context.oldest_request)
        pieces = GarbageCollector(self._store, oldest, boottime_ms, self._settings.discard_grace, blobs=False)
        notify = self._settings
        events = NotificationSender(
            self._index, notify.notify_targets, notify.notify_retention, refusals=notify.notify_refusals
        )
        jobs = {
            "pieces": pieces.run_once,
            "moves": BucketMigrator(self._store, oldest, boottime_ms, round(MAX_AGE_SECONDS * 1000)).run_once,
            "lifecycle": self._lifecycle().run_once,
            **self._restores(),
            "logs": LogDelivery(self._services).run_once,
            "tokens": RenameTokenExpiry(self._index).run_once,
            "events": events.run_once,
            "inventories": InventoryDelivery(self._services).run_once,
        }
        make = partial(self._jobs, oldest)
        task = asyncio.create_task(Jobs(election, self._store, self._index.is_writer_dead, make, jobs).run())
        task.add_done_callback(_end_without_jobs)
        collecting = asyncio.create_task(self._gateway.logs.run())
        try:
            yield
        finally:
            task.remove_done_callback(_end_without_jobs)
            task.cancel()
            collecting.cancel()
            await asyncio.gather(task, collecting, return_exceptions=True)
            await events.close()
            await asyncio.gather(*(store.close_packs() for store in stores))
            await asyncio.gather(*(store.tree.finish() for store in stores if store.tree is not None))
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await self._store.ids.close()
            await self._index.close()
            for store in stores:
                if store.journal_wakeup is not None:
                    store.journal_wakeup.close()
                await store.close()

    def _lifecycle(self) -> Lifecycle:
        settings = self._settings
        day = LifecycleCalendar(settings.lifecycle_day_seconds)
        rate, pace = settings.lifecycle_rate, settings.transition_rate
        return Lifecycle(self._store, day, rate, self._context.counters.count_expiry, pace=pace)

    def _restores(self) -> dict[str, Job]:
        day = LifecycleCalendar(self._settings.lifecycle_day_seconds)
        runner = RestoreRunner(self._store, day, self._settings.transition_rate)
        return {"restores": runner.run_once} if self._store.archives else {}

    def _jobs(self, oldest: Callable[[], int], store: Store) -> StoreJobs:
        settings = self._settings
        journal_writer = JournalWriter(store, retained=max(RETAINED_MS, int(settings.commit_timeout * 3000)))
        rate, grace = settings.scrub_rate, settings.discard_grace
        scrubber = Scrubber(store, rate, journal_writer.request_snapshot) if rate else None
        elsewhere = partial(other_stores_watermark, store)
        garbage = GarbageCollector(
            store, oldest, boottime_ms, grace, journal_writer.bound, pieces=False, elsewhere=elsewhere
        )
        compactor = Compactor(store, settings.compaction_rate, grace, self._context.counters.count_compaction)
        space = CapacityMonitor(store, settings.named_stores[store.name])
        tree = None if store.tree is None else PlainFileScanner(store, store.tree, settings.tree_scan_interval)
        return StoreJobs(store, garbage, journal_writer, scrubber, compactor, space, tree)


def _end() -> None:
    """End this worker, which was declared dead and can commit nothing: another takes its place."""
    logger.error("this worker was declared dead: it ends")
    os.kill(os.getpid(), signal.SIGTERM)


def _end_without_jobs(task: asyncio.Task[None]) -> None:
    """End this worker, whose background jobs have ended: its successor runs them again."""
    if not task.cancelled():  # cancelled when the loop ends
        logger.error("the background jobs ended: this worker ends", exc_info=task.exception())
        os.kill(os.getpid(), signal.SIGTERM)


def create_app(settings: Settings, context: WorkerContext) -> WorkerApp:
    """Create the application of one worker."""
    return WorkerApp(settings, context)
