"""The admin listener: metrics, the admin API, its docs. Never on the S3 listener."""

from __future__ import annotations

import asyncio
import base64
import errno
import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html

from app import __version__
from app.access.credentials import read_or_write
from app.admin import accounts, buckets, identities, notifications, stores
from app.admin.bodies import Bounded
from app.admin.metrics import of_stores
from app.index import open_index
from app.settings import Settings
from app.store.driver import make_stores

TOKEN_FILE = "admin-token"  # noqa: S105 - a file's name


def admin_token(settings: Settings) -> str:
    """The token of the settings, or that of `DATA/admin-token`, which is made (mode 0600, synced) when missing.

    Raises OSError for a file without one, which a request without one would match.
    """
    if settings.admin_token is not None:
        return settings.admin_token.get_secret_value()
    file = settings.home / TOKEN_FILE
    token = read_or_write(file, secrets.token_urlsafe(30) + "\n").strip()
    if not token:
        raise OSError(errno.ENODATA, "there is no token in this file (remove it, and it is made anew)", str(file))
    return token


def _given_token(request: Request) -> bytes:
    """The token of a request: `Bearer TOKEN`, or the password of Basic, which is what a browser can send."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode("latin-1")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except ValueError:  # bytes that are not ASCII, too
            return b""
    return b""


class Rendered(Protocol):
    """What all processes counted."""

    def render(self) -> bytes:
        """In the text format of Prometheus."""
        ...


class Processes(Protocol):
    """What is known of all processes of the server."""

    @property
    def counters(self) -> Rendered: ...

    def tell_store(self, name: str, condition: str, running: int, stuck: int, held: int) -> None:
        """How a store is in this process."""
        ...

    def states_of(self, name: str) -> list[tuple[str, int, int, int]]:
        """Condition, running and stuck calls, and bytes held in memory, of a store in every process."""
        ...


def create_admin(settings: Settings, context: Processes) -> FastAPI:
    """The application of the admin listener. `/metrics` is open to whoever reaches it; all else needs the token."""
    index = open_index(settings, writer=False)
    store = make_stores(index, settings)
    token = admin_token(settings).encode()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await index.start()
        known = await index.identities()
        breakers = {one.name: one.breaker for one in store.all.values() if one.breaker is not None}
        await asyncio.gather(*(breaker.start(known.get(name)) for name, breaker in breakers.items()))
        watching = asyncio.gather(*(breaker.run(context.tell_store) for breaker in breakers.values()))
        app.state.index = index
        app.state.store = store
        app.state.settings = settings
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await index.close()
            for one in store.all.values():
                await one.driver.close()

    async def authorised(request: Request) -> None:
        if not hmac.compare_digest(_given_token(request), token):
            raise HTTPException(401, "the admin token is needed", {"www-authenticate": 'Basic realm="sluice admin"'})

    app = FastAPI(
        title="Sluice admin",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=life,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    app.add_middleware(Bounded)
    guarded = [Depends(authorised)]
    for part in (accounts, buckets, identities, stores, notifications):
        app.include_router(part.router, prefix="/api/v1", dependencies=guarded)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(
            context.counters.render()
            + await of_stores(store, context.states_of)
            + await notifications.of_targets(index, settings),
            media_type="text/plain; version=0.0.4; charset=utf-8",
        )

    @app.get("/openapi.json", dependencies=guarded, include_in_schema=False)
    async def openapi() -> dict[str, object]:
        return app.openapi()

    @app.get("/docs", dependencies=guarded, include_in_schema=False)
    async def docs() -> Response:
        return get_swagger_ui_html(openapi_url="/openapi.json", title="Sluice admin")

    return app
