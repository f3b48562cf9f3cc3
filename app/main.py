"""create_app(settings): the assembly of all parts, nothing else."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import orjson

from sluice_s3.app.access.lookup_cache import LookupCache
from sluice_s3.app.background_jobs import BackgroundJobs
from sluice_s3.app.gateway_identity import describe_gateway
from sluice_s3.app.index import Index, open_index
from sluice_s3.app.index.cluster.gateways import WRITER_NOTE
from sluice_s3.app.s3.cors.console import ConsoleSite
from sluice_s3.app.s3.gateway import Gateway
from sluice_s3.app.s3.request_rates import RequestRateLimits
from sluice_s3.app.s3.services import Services
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.http.interfaces import Responder
from sluice_s3.app.server.processes.context import WorkerContext
from sluice_s3.app.server.processes.health import HealthChecks
from sluice_s3.app.server.processes.listen import ADMIN
from sluice_s3.app.server.processes.minio_metrics import MinioMetrics
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import start_store
from sluice_s3.app.store.availability.breaker_watch import BreakerWatch
from sluice_s3.app.store.journals.wakeup import JournalWakeup
from sluice_s3.app.store.stores import make_stores

logger = logging.getLogger("sluice.server")


class WebsiteListener:
    """Answers the requests of the listener for websites only."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self.record = gateway.record

    def respond(self, request: S3Request) -> Coroutine[Any, Any, Response]:
        """See `Responder`."""
        request.website = True
        return self._gateway.respond(request)


class WorkerApp:
    """The application of one worker; `gateway` and `websites` answer the requests of its listeners."""

    application = None

    def __init__(self, settings: Settings, context: WorkerContext) -> None:
        self._settings = settings
        self._context = context
        self._index: Index = open_index(settings, lost=_end, cut=context.cut_requests)
        self._store = make_stores(self._index, settings, read_caches=context.read_caches)
        """The default store, which references the others."""
        self._stores = list(self._store.all.values())
        limits = None if context.rates is None else RequestRateLimits(settings, context.rates)
        self._services = Services(settings, self._store, LookupCache(self._index), context.memory, limits)
        self._services.quotas.shares = context.quotas
        context.thread_share = self._find_thread_share
        metrics = MinioMetrics(settings, self._index, self._services.cache)
        health = HealthChecks(self._is_ready, self._index, metrics.answer, settings.domains, settings.website_domains)
        self.gateway = Gateway(self._services, context.observe, health.answer, _find_console(settings, context))
        self.websites: Responder = WebsiteListener(self.gateway)

    def _find_thread_share(self) -> float:
        """Return the share of its threads that the busiest store uses."""
        settings = self._settings.named_stores
        return max(len(store.driver.running()) / (settings[store.name].io_threads or 1) for store in self._stores)

    async def _is_ready(self) -> bool:
        """Return whether index, some store and this server are usable.

        It touches no disk of a store.
        """
        if self._context.leaving:
            return False
        await self._index.check()
        failing = self._store.journal_failures
        return any(store.up and store.name not in failing for store in self._stores)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Run what answers need: index, stores and background jobs."""
        await self._index.start()
        breakers = await self._start_stores()
        for store in self._stores:
            store.journal_wakeup = JournalWakeup(self._settings.run_dir, store.name)
            store.open_packs()
        await self._introduce()
        jobs = BackgroundJobs(self._index, self._services, self._context)
        jobs.start()
        collecting = asyncio.create_task(self.gateway.logs.run())
        noting = asyncio.create_task(self._services.key_uses.run())
        recording = asyncio.create_task(self._services.audit.run())
        try:
            yield
        finally:
            collecting.cancel()
            for task in (noting, recording):
                task.cancel()
            await jobs.stop()
            await asyncio.gather(collecting, noting, recording, return_exceptions=True)
            await self._stop_stores(breakers)

    async def _introduce(self) -> None:
        """Note in a shared index which gateway this worker belongs to. Raises DomainError."""
        index = self._index
        if index.many_hosts:
            found = {**describe_gateway(self._context.addresses()), "pid": os.getpid()}
            await index.set_note(f"{WRITER_NOTE}{index.incarnation}", orjson.dumps(found).decode())

    async def _start_stores(self) -> BreakerWatch:
        identities = await self._index.identities()
        watched = []
        for store in self._stores:
            if store.driver.capabilities.one_process:  # created here, and the index binds it to this process
                await start_store(store, identities)
            else:
                watched.append(store)
        breakers = BreakerWatch(watched, self._context.publish_store_state)
        await breakers.start(identities)
        return breakers

    async def _stop_stores(self, breakers: BreakerWatch) -> None:
        """Finish what the stores have begun, while they are watched; then close them and the index."""
        stores = self._stores
        await asyncio.gather(*(store.close_packs() for store in stores))
        await asyncio.gather(*(store.tree.finish() for store in stores if store.tree is not None))
        await breakers.stop()
        await self._store.ids.close()
        await self._index.close()
        for store in stores:
            if store.journal_wakeup is not None:
                store.journal_wakeup.close()
            await store.close()


def _find_console(settings: Settings, context: WorkerContext) -> ConsoleSite | None:
    listener = context.addresses().get(ADMIN) if settings.console else None
    return None if listener is None else ConsoleSite(settings.console_url, listener)


def _end() -> None:
    """End this worker, which was declared dead and can commit nothing: another takes its place."""
    logger.error("this worker was declared dead: it ends")
    os.kill(os.getpid(), signal.SIGTERM)


def create_app(settings: Settings, context: WorkerContext) -> WorkerApp:
    """Create the application of one worker."""
    return WorkerApp(settings, context)
