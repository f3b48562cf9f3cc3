"""Health for balancers and orchestrators: nothing but up or down; and the way to MinIO's path of metrics."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from sluice_s3.app.eager_task import enter_task
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index import Index
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.s3.wire.target import bucket_of_host
from sluice_s3.app.server.processes import minio_metrics

logger = logging.getLogger("sluice.server")

READY_CHECK_SECONDS = 5.0
"""Seconds that a readiness check may take."""
LIVE = frozenset({b"/-/health/live", b"/minio/health/live"})
READY = frozenset({b"/-/health/ready", b"/minio/health/ready", b"/minio/health/cluster", b"/minio/health/cluster/read"})
"""Those of MinIO as in its "Healthcheck API" page. A write and a read quorum are the same here."""
HEALTH_PATHS = LIVE | READY
"""No bucket name has one character, so those of `/-/` are no objects."""
METHODS = ("GET", "HEAD")
MINIO_BUCKET = "minio"
"""A bucket of that name hides MinIO's paths."""
TEXT = (b"content-type", b"text/plain; charset=utf-8")


class HealthChecks:
    """Answers the health checks on the S3 listener; `is_ready` is the readiness of its worker."""

    def __init__(
        self,
        is_ready: Callable[[], Awaitable[bool]],
        index: Index,
        metrics: Callable[[S3Request], Awaitable[Response | None]],
        *domains: tuple[str, ...],
    ) -> None:
        self._is_ready = is_ready
        self._index = index
        self._metrics = metrics
        self._domains = domains
        """Those of buckets and those of websites."""

    async def answer(self, request: S3Request) -> Response | None:
        """Return the answer to a health check; None for a request that is none."""
        path = request.raw_path
        if path == minio_metrics.PATH and request.method == "GET" and await self._is_ours(request):
            return await self._metrics(request)
        if path not in HEALTH_PATHS or request.method not in METHODS or not await self._is_ours(request):
            return None
        if not path.startswith(b"/-/") and ("authorization" in request.headers or b"Signature=" in request.raw_query):
            return None
        up = path in LIVE or await self._is_up()
        return Response(200 if up else 503, [TEXT], b"up\n" if up else b"down\n")

    async def _is_ours(self, request: S3Request) -> bool:
        """Return whether no bucket takes the path of a request."""
        host = request.headers.get("host", "")
        if any(bucket_of_host(host, domains) is not None for domains in self._domains):
            return False
        if request.raw_path.startswith(b"/-/"):
            return True
        return await self._index.bucket(MINIO_BUCKET) is None

    async def _is_up(self) -> bool:
        await enter_task()
        try:
            async with asyncio.timeout(READY_CHECK_SECONDS):
                return await self._is_ready()
        except DomainError as error:
            logger.warning("not ready: %s", error)
        except Exception:
            logger.exception("not ready")
        return False
