"""create_app(settings): puts the parts together, nothing else."""

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

from app.access.known import MAX_AGE, Known
from app.index import Index, open_index
from app.jobs.compaction import Compactor
from app.jobs.decisions import RETAINED_MS, Decisions, told_elsewhere
from app.jobs.events import Events
from app.jobs.garbage import Garbage
from app.jobs.lifecycle import Lifecycle
from app.jobs.move import Mover
from app.jobs.restores import Restores
from app.jobs.runner import Job, Jobs, StoreJobs
from app.jobs.scrub import Scrubber
from app.jobs.space import Space
from app.jobs.tokens import Tokens
from app.jobs.tree import TreeJobs
from app.jobs.turns import FileTurns, LeaseTurns
from app.s3 import checksums
from app.s3.gateway import REQUEST, Gateway
from app.s3.inventory.delivery import Inventories
from app.s3.logs.delivery import LogDelivery
from app.s3.request import S3Request
from app.s3.response import Response
from app.s3.target import bucket_of_host
from app.server.health import health_router
from app.server.shared import boottime_ms
from app.server.worker import WorkerContext
from app.settings import Settings
from app.startup import start
from app.store.bell import Bell
from app.store.driver import make_stores
from app.store.lifecycle import Day
from app.store.store import Store

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

logger = logging.getLogger("sluice.server")

HEALTH = frozenset({b"/-/health/live", b"/-/health/ready"})
"""No bucket name is one character long, so none of these is an object."""
MINIO_HEALTH = b"/minio/health/live"


class App:
    """The S3 listener of one worker: the S3 plane, and FastAPI for health and for the life of the process.

    The choice between them is made here and not by FastAPI's routing, which costs more than the whole of a HEAD.
    """

    def __init__(self, settings: Settings, context: WorkerContext) -> None:
        self._settings = settings
        self._fast_lane = settings.fast_lane
        self._context = context
        self._index: Index = open_index(settings, lost=_end)
        self._reads_now = settings.fast_lane and self._index.at_once
        self._store = make_stores(self._index, settings)
        """The default one, which knows the others."""
        self._gateway = Gateway(settings, self._store, Known(self._index), context.observe, context.memory)
        self._gateway.quotas.shares = context.quotas
        self._shell = FastAPI(
            docs_url=None,
            redoc_url=None,
            openapi_url=None,
            lifespan=self._life,
            telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        )
        self._shell.include_router(health_router(self._ready))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._shell(scope, receive, send)
            return
        path: bytes = scope["raw_path"]
        if (path in HEALTH or path == MINIO_HEALTH) and await self._is_health(scope, path):
            await self._shell(scope, receive, send)
            return
        await self._gateway(scope, receive, send)

    async def website(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI where there are websites only."""
        scope[REQUEST].website = True
        await self._gateway(scope, receive, send)

    def answer_now(self, request: S3Request) -> Response | None:
        """The fast lane: see `Gateway.answer_now`."""
        path = request.raw_path
        if not self._reads_now or path in HEALTH or path == MINIO_HEALTH:
            return None
        return self._gateway.answer_now(request)

    def begin_now(self, request: S3Request, body: bytes, done: Callable[[Response], None]) -> bool:
        """The fast lane of small changes: see `Gateway.begin_now`."""
        path = request.raw_path
        if not self._fast_lane or path in HEALTH or path == MINIO_HEALTH:
            return False
        return self._gateway.begin_now(request, body, done)

    async def _is_health(self, scope: Scope, path: bytes) -> bool:
        headers = dict(scope["headers"])
        if bucket_of_host(headers.get(b"host", b"").decode("latin-1"), self._settings.domains) is not None:
            return False
        if path in HEALTH:
            return True
        signed = b"authorization" in headers or b"Signature=" in scope["query_string"]
        return not signed and await self._index.bucket("minio") is None

    async def _ready(self) -> bool:
        """The index answers, a store is in service, and this server goes on. No disk of a store is touched for it."""
        if self._context.leaving:
            return False
        await self._index.identities()
        return any(store.up for store in self._store.all.values())

    @asynccontextmanager
    async def _life(self, _: FastAPI) -> AsyncIterator[None]:
        checksums.preload()
        await self._index.start()
        stores = list(self._store.all.values())
        known = await self._index.identities()
        breakers = {}
        for store in stores:
            if store.driver.capabilities.one_process:  # made here, and the index holds it to this process
                await start(store, known)
            elif store.breaker is not None:
                breakers[store.name] = store.breaker
        await asyncio.gather(*(breaker.start(known.get(name)) for name, breaker in breakers.items()))
        watching = asyncio.gather(*(breaker.run(self._context.tell_store) for breaker in breakers.values()))
        for store in stores:
            store.bell = Bell(self._settings.run_dir, store.name)
            store.open_packs()
        turns = LeaseTurns(self._index) if self._index.many_hosts else FileTurns(self._settings.run_dir / "jobs.lock")
        oldest = self._index.across(self._context.oldest_request)
        pieces = Garbage(self._store, oldest, boottime_ms, self._settings.discard_grace, blobs=False)
        events = Events(self._index, self._settings.notify_targets, self._settings.notify_retention)
        others = {
            "pieces": pieces.run_once,
            "moves": Mover(self._store, oldest, boottime_ms, round(MAX_AGE * 1000)).run_once,
            "lifecycle": self._lifecycle().run_once,
            **self._restores(),
            "logs": LogDelivery(self._gateway).run_once,
            "tokens": Tokens(self._index).run_once,
            "events": events.run_once,
            "inventories": Inventories(self._gateway).run_once,
        }
        make = partial(self._jobs, oldest)
        task = asyncio.create_task(Jobs(turns, self._store, self._index.writer_is_gone, make, others).run())
        collecting = asyncio.create_task(self._gateway.logs.run())
        try:
            yield
        finally:
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
                if store.bell is not None:
                    store.bell.close()
                await store.close()

    def _lifecycle(self) -> Lifecycle:
        settings = self._settings
        day = Day(settings.lifecycle_day_seconds)
        rate, pace = settings.lifecycle_rate, settings.transition_rate
        return Lifecycle(self._store, day, rate, self._context.counters.expired, pace=pace)

    def _restores(self) -> dict[str, Job]:
        day = Day(self._settings.lifecycle_day_seconds)
        made = Restores(self._store, day, self._settings.transition_rate)
        return {"restores": made.run_once} if self._store.archives else {}

    def _jobs(self, oldest: Callable[[], int], store: Store) -> StoreJobs:
        settings = self._settings
        decisions = Decisions(store, retained=max(RETAINED_MS, int(settings.commit_timeout * 3000)))
        rate, grace = settings.scrub_rate, settings.discard_grace
        scrubber = Scrubber(store, rate, decisions.renew) if rate else None
        elsewhere = partial(told_elsewhere, store)
        garbage = Garbage(store, oldest, boottime_ms, grace, decisions.bound, pieces=False, elsewhere=elsewhere)
        compactor = Compactor(store, settings.compaction_rate, grace, self._context.counters.compacted)
        space = Space(store, settings.named_stores[store.name])
        tree = None if store.tree is None else TreeJobs(store, store.tree, settings.tree_scan_interval)
        return StoreJobs(store, garbage, decisions, scrubber, compactor, space, tree)


def _end() -> None:
    """This worker was declared dead and can commit nothing any more: another one takes its place."""
    logger.error("this worker was declared dead: it ends")
    os.kill(os.getpid(), signal.SIGTERM)


def create_app(settings: Settings, context: WorkerContext) -> App:
    """The application of one worker."""
    return App(settings, context)
