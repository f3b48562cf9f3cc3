"""The admin listener: metrics, the admin API and its docs, never on the S3 listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Protocol, cast

from fastapi import APIRouter, Depends, FastAPI, Response
from fastapi.openapi.docs import get_swagger_ui_html

from sluice_s3.app import __version__
from sluice_s3.app.access.key_uses import KeyUses
from sluice_s3.app.access.root_credentials import admin_token
from sluice_s3.app.admin import accounts, identities, notifications, stores
from sluice_s3.app.admin.answer_headers import AnswerHeaders
from sluice_s3.app.admin.archives import routes as archives
from sluice_s3.app.admin.bodies import BodyLimits
from sluice_s3.app.admin.bucket_usage import BucketUsage
from sluice_s3.app.admin.buckets import routes as buckets
from sluice_s3.app.admin.buckets.counts import BucketCounts
from sluice_s3.app.admin.console_files import ConsoleFiles, make_router
from sluice_s3.app.admin.error_answers import add_error_answers
from sluice_s3.app.admin.lifecycle import routes as lifecycle
from sluice_s3.app.admin.live import LiveStreams
from sluice_s3.app.admin.load_tests import routes as load_tests
from sluice_s3.app.admin.load_tests.runner import LoadTests
from sluice_s3.app.admin.load_tests.traffic import Traffic
from sluice_s3.app.admin.metrics import JournalLags, store_samples
from sluice_s3.app.admin.operations import routes as operations
from sluice_s3.app.admin.operations.request_watch import Tail
from sluice_s3.app.admin.overview import routes as overview
from sluice_s3.app.admin.overview.monitoring import MonitoredProcesses, Monitoring
from sluice_s3.app.admin.overview.sampler import Counted
from sluice_s3.app.admin.people import routes as people
from sluice_s3.app.admin.previews import routes as previews
from sluice_s3.app.admin.sessions import routes as sessions
from sluice_s3.app.admin.sessions import signatures
from sluice_s3.app.admin.sessions.endpoint import S3_LISTENER
from sluice_s3.app.admin.sessions.guard import API, check_routes, require_token
from sluice_s3.app.admin.sessions.sign_in import KeyCheck
from sluice_s3.app.admin.sessions.store import SessionStore
from sluice_s3.app.admin.sessions.token import AdminToken
from sluice_s3.app.admin.simulation import routes as simulation
from sluice_s3.app.admin.store_health import routes as store_health
from sluice_s3.app.index import Index, open_index
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.availability.breaker_watch import BreakerWatch
from sluice_s3.app.store.regions import Regions
from sluice_s3.app.store.store import Store
from sluice_s3.app.store.stores import make_stores

TITLE = "Sluice admin"


class Rendered(Counted, Protocol):
    """Counters of all processes."""

    def render(self) -> bytes:
        """Return them in the text format of Prometheus."""
        ...


class Processes(MonitoredProcesses, Protocol):
    """The state of all processes of the server."""

    @property
    def counters(self) -> Rendered:
        """Counters of all processes."""
        ...

    @property
    def read_caches(self) -> Mapping[str, int]:
        """Descriptors of the memory in which stores cache reads, by their names."""
        ...

    def addresses(self) -> Mapping[str, str]:
        """Return the URLs that the server listens on, by their names."""
        ...

    def open_tail(self) -> Tail:
        """Return a reader of the requests of all processes. Raises OSError."""
        ...

    def render_processes(self) -> bytes:
        """Return requests by bucket, and what each process uses, in the text format of Prometheus."""
        ...

    def publish_store_state(self, name: str, condition: str, running: int, stuck: int, held_bytes: int) -> None:
        """Publish the state of a store in this process."""
        ...

    def states_of(self, name: str) -> list[tuple[str, int, int, int]]:
        """Return a store's condition, running and stuck calls, and bytes in memory, per process."""
        ...


class AdminListener:
    """What the admin process serves."""

    gateway = websites = None

    def __init__(self, application: FastAPI) -> None:
        self.application = application

    def lifespan(self) -> AbstractAsyncContextManager[None]:
        """Run the stores that the pages read."""
        return cast(AbstractAsyncContextManager[None], self.application.router.lifespan_context(self.application))


def create_admin(settings: Settings, context: Processes) -> AdminListener:
    """Create what the admin process serves. Launchers of earlier versions know this function by its name."""
    return AdminListener(create_application(settings, context))


def create_application(settings: Settings, context: Processes) -> FastAPI:
    """Create the application of the admin listener.

    `/metrics` is open to everybody who reaches it; all else needs the token, or a session of the console.
    """
    index = open_index(settings, writer=False)
    store = make_stores(index, settings, read_caches=context.read_caches)
    usage = BucketUsage(index, settings.metrics_buckets)
    app = FastAPI(
        title=TITLE,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=partial(_run_stores, index, store, context, usage),
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.state.index = index
    app.state.store = store
    app.state.settings = settings
    app.state.token = AdminToken(admin_token(settings))
    app.state.sessions = SessionStore(index, settings)
    app.state.key_check = KeyCheck(index)
    app.state.key_uses = KeyUses(index, Regions(settings.region).default)
    app.state.live = LiveStreams()
    app.state.monitoring = Monitoring(store, settings, context)
    app.state.load_tests = LoadTests(settings, Traffic(context.counters.render))
    app.state.s3_listener = context.addresses()[S3_LISTENER]
    app.state.bucket_counts = BucketCounts(index)
    app.state.tests_sent = {}
    operations.prepare(app, context.addresses, context.open_tail)
    app.add_middleware(BodyLimits, timeout=settings.document_timeout)
    app.add_middleware(AnswerHeaders)
    add_error_answers(app)
    for part in (
        accounts,
        archives,
        buckets,
        identities,
        lifecycle,
        load_tests,
        notifications,
        operations,
        overview,
        people,
        previews,
        sessions,
        signatures,
        simulation,
        store_health,
        stores,
    ):
        app.include_router(part.router, prefix=API)
    app.include_router(_pages(app), dependencies=[Depends(require_token)])
    if settings.console:
        app.include_router(make_router(ConsoleFiles()))

    lags = JournalLags()

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(
            context.counters.render()
            + context.render_processes()
            + await usage.samples()
            + await store_samples(store, context.states_of, lags)
            + await notifications.target_samples(index, settings),
            media_type="text/plain; version=0.0.4; charset=utf-8",
        )

    check_routes(app)
    return app


@asynccontextmanager
async def _run_stores(
    index: Index, store: Store, context: Processes, usage: BucketUsage, app: FastAPI
) -> AsyncIterator[None]:
    await index.start()
    noting = asyncio.create_task(app.state.key_uses.run())
    breakers = BreakerWatch(store.all.values(), context.publish_store_state)
    await breakers.start(await index.identities())
    monitoring: Monitoring = app.state.monitoring
    await monitoring.start()
    load_tests: LoadTests = app.state.load_tests
    load_tests.start()
    try:
        yield
    finally:
        noting.cancel()
        await asyncio.gather(noting, return_exceptions=True)
        await operations.close(app)
        await monitoring.stop()
        await load_tests.close()
        await usage.close()
        await app.state.bucket_counts.close()
        await breakers.stop()
        await index.close()
        for one in store.all.values():
            await one.driver.close()


def _pages(app: FastAPI) -> APIRouter:
    """Return the routes of the API's own description."""
    router = APIRouter(include_in_schema=False)

    @router.get("/openapi.json")
    async def openapi() -> dict[str, object]:
        return app.openapi()

    @router.get("/docs")
    async def docs() -> Response:
        return get_swagger_ui_html(openapi_url="/openapi.json", title=TITLE)

    return router
