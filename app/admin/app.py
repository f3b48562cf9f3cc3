"""The admin listener: metrics, the admin API, its docs. Never on the S3 listener."""

from __future__ import annotations

import base64
import binascii
import hmac
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.openapi.docs import get_swagger_ui_html

from app import __version__
from app.access.credentials import write_private
from app.admin import accounts
from app.admin.metrics import of_packs, undecided
from app.admin.models import StoreOut
from app.index import open_index
from app.settings import Settings
from app.store.driver import make_driver

TOKEN_FILE = "admin-token"  # noqa: S105 - a file's name


def admin_token(settings: Settings) -> str:
    """The token of the settings, or that of `DATA/admin-token`, which is made (mode 0600, synced) when missing."""
    if settings.admin_token is not None:
        return settings.admin_token.get_secret_value()
    path = settings.data / TOKEN_FILE
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        write_private(path, secrets.token_urlsafe(30) + "\n")
        return path.read_text().strip()


def _given_token(request: Request) -> bytes:
    """The token of a request: `Bearer TOKEN`, or the password of Basic, which is what a browser can send."""
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode("latin-1")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).partition(b":")[2]
        except binascii.Error:
            return b""
    return b""


def create_admin(settings: Settings, render_metrics: Callable[[], bytes]) -> FastAPI:
    """The application of the admin listener. `/metrics` is open to whoever reaches it; all else needs the token."""
    index = open_index(settings, writer=False)
    driver = make_driver(settings)
    token = admin_token(settings).encode()

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        await index.start()
        await driver.start()
        app.state.index = index
        try:
            yield
        finally:
            await index.close()
            await driver.close()

    async def pack_bytes(pack_id: int) -> int:
        file = await driver.pack_file(pack_id)
        return 0 if file is None else file.size

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
    guarded = [Depends(authorised)]
    app.include_router(accounts.router, prefix="/api/v1", dependencies=guarded)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        of_index = await of_packs(index, pack_bytes) + await undecided(index)
        return Response(render_metrics() + of_index, media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/api/v1/store", dependencies=guarded, tags=["store"])
    async def store() -> StoreOut:
        """Identity and space of the backing store."""
        assert driver.identity is not None
        usage = await driver.usage()
        return StoreOut(
            store=driver.identity.store,
            generation=driver.identity.generation,
            durability=settings.durability,
            total=usage.total,
            free=usage.free,
            inodes=usage.inodes,
            free_inodes=usage.free_inodes,
        )

    @app.get("/openapi.json", dependencies=guarded, include_in_schema=False)
    async def openapi() -> dict[str, object]:
        return app.openapi()

    @app.get("/docs", dependencies=guarded, include_in_schema=False)
    async def docs() -> Response:
        return get_swagger_ui_html(openapi_url="/openapi.json", title="Sluice admin")

    return app
