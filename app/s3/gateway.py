"""The S3 application: authenticates and authorizes a request, runs its operation, renders the response."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from sluice_s3.app.access.key_uses import S3
from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.engine.outbox import emit_events
from sluice_s3.app.s3 import handlers, routing
from sluice_s3.app.s3 import iam as iam_endpoint
from sluice_s3.app.s3.audit import trail_of
from sluice_s3.app.s3.auth import authentication, authorization
from sluice_s3.app.s3.cors import rules as cors
from sluice_s3.app.s3.cors.console import ConsoleSite
from sluice_s3.app.s3.errors import AccessDenied, NotImplemented, S3Error
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.journal_failures import require_journals
from sluice_s3.app.s3.logging.collector import Collector
from sluice_s3.app.s3.notifications.event_context import event_builder_for
from sluice_s3.app.s3.services import Services
from sluice_s3.app.s3.unsupported_headers import reject_unsupported_headers
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.website import serve
from sluice_s3.app.s3.wire import query_parameters, target
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response, render_headers
from sluice_s3.app.s3.wire.response_writer import error_response, finalize
from sluice_s3.app.store.notifications import MARK

logger = logging.getLogger("sluice.s3")

OWN_PREFIXES = (b"/-/health/", b"/minio/")
"""Paths that may be no object's: those of health checks, and of MinIO's admin API."""
HEALTH_CHECK = "HealthCheck"
"""The operation of health checks, which are neither counted nor logged."""
PREFLIGHT = "Preflight"
"""The operation of preflight requests, which have no name of AWS's."""

Observe = Callable[[S3Request, int, str, int, float], None]
"""Called for every response: request, status, error code (or empty), bytes sent, total seconds."""

handlers.register()


class Gateway:
    """The S3 protocol over one worker's services: `respond`, then `record` once the response is sent.

    The server runs `respond` eagerly, in the callback of the parser: a request that never waits has its response there.
    """

    def __init__(
        self,
        services: Services,
        observe: Observe,
        answer_health_check: Callable[[S3Request], Awaitable[Response | None]],
        console: ConsoleSite | None = None,
    ) -> None:
        self.services = services
        self.logs = Collector(services.index)
        self._cache = services.cache
        self._uses = services.key_uses
        self._observe = observe
        self._answer_health_check = answer_health_check
        self._console = console
        settings = services.settings
        self._domains = settings.domains
        self._websites = settings.website_domains
        self._server_timing = settings.server_timing
        self._durability_headers = {
            name: render_headers([(b"x-sluice-durability", store.durability.encode())])
            for name, store in settings.named_stores.items()
            if store.durability not in (None, "full")
        }
        """Response headers for the buckets of a store, if it has any."""

    async def respond(self, request: S3Request) -> Response:
        """Return the finished response to a request, an error document for any Exception."""
        services = self.services
        request.started = time.perf_counter()
        request.request_id, request.timings = services.next_id(), {}
        request.memory = services.memory
        try:
            try:
                own = None
                if request.raw_path.startswith(OWN_PREFIXES) and not request.website:
                    own = await self._answer_own(request)
                if own is not None:
                    response = own
                elif (self._websites or request.website) and (site := serve.website_bucket(request, self._websites)):
                    if services.rates is not None:
                        services.rates.check(request)
                    response = await serve.handle(services, request, site)
                else:
                    response = await self._handle(request)
            except Exception as error:
                response = _error_response(request, error)
            if request.bucket_row is None and request.bucket is not None:
                request.named_bucket = await self._find_bucket(request.bucket)
            self._add_common_headers(request, response)
            finalize(request, response)
        finally:
            if request.body is not None:
                request.body_size = request.body.size
                request.body.close()
                request.body = None  # they refer to each other, as do the request and the contexts of its permissions
            if request.pending_permissions:
                request.pending_permissions = ()
        request.responded = time.perf_counter()
        return response

    def record(self, request: S3Request, response: Response | None, sent: int) -> None:
        """Count an answered request, and add it to its bucket's access log; see `Responder.record`."""
        if request.operation is HEALTH_CHECK:
            return
        seconds = time.perf_counter() - request.started
        code = request.error_code
        self._observe(request, 0 if response is None else response.status, code, sent, seconds)
        row = request.bucket_row
        if row is None or row.settings:
            response_seconds = request.responded - request.started if request.responded else seconds
            self.logs.collect(request, response, code, sent, seconds, response_seconds)

    async def _answer_own(self, request: S3Request) -> Response | None:
        """Answer a request to a path that is no object's; None for one that is S3's all the same."""
        health = await self._answer_health_check(request)
        if health is not None:
            request.operation = HEALTH_CHECK
            return health
        from sluice_s3.app.s3.minio import endpoint as minio  # at its first use: few gateways ever need it

        return await minio.answer(self.services, request)

    # the steps to a response, in order
    async def _handle(self, request: S3Request) -> Response:
        services = self.services
        host = request.headers.get("host", "")
        request.bucket, request.key, request.virtual_host = target.parse_target(request.raw_path, host, self._domains)
        request.query = target.parse_query(request.raw_query) if request.raw_query else {}
        if request.method == "POST" and iam_endpoint.is_iam_request(request):
            query_parameters.parse_content_length(request)
            return await iam_endpoint.handle(services, request)
        if request.method == "OPTIONS":
            request.operation = PREFLIGHT
            if services.rates is not None:
                services.rates.check(request)
            if self._console is not None and self._console.is_origin(request):
                return self._console.preflight(request)
            cors.check_preflight(request)
            return cors.preflight(await self._cache.bucket(request.bucket or ""), request)
        signature = authentication.parse_signature(services, request)
        keys, buckets = self._cache.entries()
        if signature is not None:
            key = keys.get(signature.access_key)
            if key is None:
                key = await self._cache.key(signature.access_key)
                _, buckets = self._cache.entries()  # an epoch may have passed
            key = authentication.verify(request, signature, key)
            if key.access_key not in self._uses.recent:
                self._uses.note(key, S3)
        elif self._console is not None and request.raw_path == b"/" and (way := self._console.redirect(request)):
            return way
        if services.rates is not None:
            services.rates.check(request)
        operation = _find_operation(request)
        bucket = None
        if operation.on_bucket and request.bucket is not None:
            bucket = buckets.get(request.bucket) or await services.bucket(request.bucket)
        self._admit(request, operation, bucket)
        request.timings["auth"] = time.perf_counter() - request.started
        if bucket is not None and MARK in bucket.settings:
            async with emit_events(event_builder_for(request)):
                response = await operation.handler(services, request)
        else:
            response = await operation.handler(services, request)
        authorization.require_authorized(request)
        return response

    def _admit(self, request: S3Request, operation: routing.Operation, bucket: Bucket | None) -> None:
        services = self.services
        try:
            authorization.authorize_request(request, operation, bucket, services.region)
        except AccessDenied:
            request.region = services.region if bucket is None else services.regions.of(bucket)  # clients read it
            if operation.is_audited and request.account_id is not None:
                services.audit.add(trail_of(request, "s3", f"s3:{operation.name}"), AccessDenied.__name__)
            raise
        reject_unsupported_headers(request)
        if services.store.journal_failures and bucket is not None:
            require_journals(request, operation.name, services.store.journal_failures.get(bucket.store))
        request.bucket_row = bucket

    def _add_common_headers(self, request: S3Request, response: Response) -> None:
        """Add what does not depend on the operation."""
        row = request.bucket_row
        if not request.error_code:
            if self._durability_headers:
                name = self.services.store.name if row is None else request.storage_class_store or row.store
                response.head += self._durability_headers.get(name, b"")
            if self._server_timing and request.account_id is not None:
                response.headers.append((b"server-timing", _server_timing(request)))
            if request.charged:
                response.headers.append((b"x-amz-request-charged", b"requester"))
        if cors.ORIGIN in request.headers and request.method != "OPTIONS":
            row = row or request.named_bucket
            if self._console is not None and self._console.is_origin(request):
                response.headers += self._console.headers(request)
            elif row is not None:
                response.headers += cors.headers(row, request)  # to errors too: browsers show them to their pages

    async def _find_bucket(self, name: str) -> Bucket | None:
        """Return the bucket of a request that was refused before its bucket was looked up."""
        try:
            return await self._cache.bucket(name)
        except DomainError:
            return None


def _find_operation(request: S3Request) -> routing.Operation:
    operation = routing.find_operation(request)
    request.operation = operation.name
    if request.payload.startswith("STREAMING-") and not operation.streams:
        raise NotImplemented(Header="x-amz-content-sha256")
    if request.bucket is not None and request.key is not None:
        target.validate_key(request.key)
    if request.query and "versionId" in request.query:
        version_headers.reject_unexpected_version_id(request, operation)
    return operation


def _error_response(request: S3Request, error: Exception) -> Response:
    """Return the response for an exception, and note its code in the request."""
    if not isinstance(error, S3Error | DomainError):
        logger.error("request %s failed", request.request_id, exc_info=error)
    s3_error = to_s3_error(error)
    request.error_code = s3_error.code
    return error_response(request, s3_error)


def _server_timing(request: S3Request) -> bytes:
    return ", ".join(f"{phase};dur={seconds * 1000:.3f}" for phase, seconds in request.timings.items()).encode()
