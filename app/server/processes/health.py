"""Health for balancers and orchestrators: nothing but up or down."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Response

from sluice_s3.app.errors import DomainError

logger = logging.getLogger("sluice.server")

READY_CHECK_SECONDS = 5.0
"""Seconds that a readiness check may take."""


def health_router(ready: Callable[[], Awaitable[bool]]) -> APIRouter:
    """Return the routes `/-/health/live`, `/-/health/ready` and MinIO's `/minio/health/live`."""
    router = APIRouter()

    async def live() -> Response:
        return Response("up\n", media_type="text/plain")

    async def is_ready() -> Response:
        try:
            async with asyncio.timeout(READY_CHECK_SECONDS):
                up = await ready()
        except DomainError as error:
            logger.warning("not ready: %s", error)
            up = False
        except Exception:
            logger.exception("not ready")
            up = False
        return Response("up\n" if up else "down\n", 200 if up else 503, media_type="text/plain")

    for path in ("/-/health/live", "/minio/health/live"):
        router.add_api_route(path, live, methods=["GET", "HEAD"])
    router.add_api_route("/-/health/ready", is_ready, methods=["GET", "HEAD"])
    return router
