"""The S3 application: authenticates and authorizes a request, runs its operation, renders the response."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sluice_s3.app.errors import DomainError, WouldBlock
from sluice_s3.app.index.engine.outbox import emit_events
from sluice_s3.app.index.rows import Bucket
from sluice_s3.app.s3 import handlers, routing
from sluice_s3.app.s3 import iam as iam_endpoint
from sluice_s3.app.s3.auth import authentication, authorization
from sluice_s3.app.s3.cors import rules as cors
from sluice_s3.app.s3.errors import AccessDenied, InternalError, NotImplemented, S3Error
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.journal_failures import require_journals
from sluice_s3.app.s3.logging.collector import Collector
from sluice_s3.app.s3.notifications.event_context import event_builder_for
from sluice_s3.app.s3.services import Services
from sluice_s3.app.s3.unsupported_headers import reject_unsupported_headers
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.website import serve
from sluice_s3.app.s3.wire import query_parameters, target
from sluice_s3.app.s3.wire.request import REQUEST, Receive, S3Request
from sluice_s3.app.s3.wire.response import Response, render_headers
from sluice_s3.app.s3.wire.response_writer import Send, error_response, finalize, send_response
from sluice_s3.app.store.notifications import MARK

logger = logging.getLogger("sluice.s3")

Observe = Callable[[S3Request, int, str, int, float], None]
"""Called for every response: request, status, error code (or empty), bytes sent, total seconds."""

handlers.register()


class Gateway:
    """The ASGI application, and its fast path: both run the same steps.

    `__call__` awaits its lookups. `try_respond` and `try_start` need theirs at once.
    """

    def __init__(self, services: Services, observe: Observe) -> None:
        self.services = services
        self.logs = Collector(services.index, services.cache)
        self._cache = services.cache
        self._observe = observe
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

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        request: S3Request = scope[REQUEST]
        request.receive = receive
        request.memory = self.services.memory
        code, status, sent = "", 0, 0
        answered, responded_at = None, started
        try:
            try:
                response = await self._answer(request, started)
                self._add_common_headers(request, response)
            except Exception as error:
                response, code = _error_response(request, error)
            if cors.ORIGIN in request.headers:
                await self._add_cors(request, response)
            finalize(request, response)
            answered, status, responded_at = response, response.status, time.perf_counter()
            sent = await send_response(response, scope, send)
        finally:
            if request.body is not None:
                request.body.close()
            seconds = time.perf_counter() - started
            self._record(request, answered, (status, code, sent), seconds, responded_at - started)

    def try_respond(self, request: S3Request) -> Response | None:
        """Return the response to a GET or HEAD without a body; None when it must wait.

        Then only the request has changed, and `__call__` continues with it.
        """
        started = time.perf_counter()
        code = ""
        try:
            operation = self._try_admit(request, started)
            if operation.try_handler is None:
                raise WouldBlock
            response = authorization.ensure_authorized(request, operation.try_handler(self.services, request))
            self._add_common_headers(request, response)
        except WouldBlock:
            return None
        except Exception as error:
            response, code = _error_response(request, error)
        return self._complete(request, response, code, started)

    def try_start(self, request: S3Request, body: bytes, on_response: Callable[[Response], None]) -> bool:
        """Start a PUT or DELETE whose body is complete, or resume `request.start_pending`.

        Calls `done(response)` when finished. Returns False if the request must be awaited; then only the request has
        changed.
        """
        started = time.perf_counter()
        request.memory = self.services.memory
        request.receive = _receive_nothing
        finish = partial(self._finish, request, started, on_response)
        try:
            if request.start_pending is None:
                operation = self._try_admit(request, started)
                if (
                    operation.start_handler is None
                    or request.authorization_pending
                    or MARK in request.bucket_row.settings
                ):
                    raise WouldBlock
                change = operation.start_handler(self.services, request, body)
            else:
                change = request.start_pending()
        except WouldBlock:
            return False
        except Exception as error:
            finish(_raise(error))
        else:
            change.future.add_done_callback(lambda future: finish(partial(change.answer, future)))
        return True

    def _finish(
        self,
        request: S3Request,
        started: float,
        on_response: Callable[[Response], None],
        answer: Callable[[], Response],
    ) -> None:
        code = ""
        try:
            response = answer()
            self._add_common_headers(request, response)
        except Exception as error:
            response, code = _error_response(request, error)
        on_response(self._complete(request, response, code, started))

    # the steps to a response, in order
    async def _answer(self, request: S3Request, started: float) -> Response:
        services = self.services
        if (self._websites or request.website) and (site := serve.website_bucket(request, self._websites)) is not None:
            return await serve.handle(services, request, site)
        if request.signature is None:  # else the fast path has done this
            self._parse_target(request)
            if iam_endpoint.is_iam_request(request):
                query_parameters.parse_content_length(request)
                return await iam_endpoint.handle(services, request)
            if request.method == "OPTIONS":
                cors.check_preflight(request)
                return cors.preflight(await self._cache.bucket(request.bucket or ""), request)
            signature = authentication.parse_signature(services, request)
            if signature is not None:
                await authentication.authenticate(services, request, signature)
        operation = _find_operation(request)
        bucket = None
        if operation.on_bucket and request.bucket is not None:
            try:
                bucket = target.require_bucket(request.bucket, self._cache.try_bucket(request.bucket))
            except WouldBlock:
                bucket = await services.bucket(request.bucket)
        self._admit(request, operation, bucket)
        request.timings["auth"] = time.perf_counter() - started
        if bucket is not None and MARK in bucket.settings:
            with emit_events(event_builder_for(request)):
                return authorization.ensure_authorized(request, await operation.handler(services, request))
        return authorization.ensure_authorized(request, await operation.handler(services, request))

    def _try_admit(self, request: S3Request, started: float) -> routing.Operation:
        """Return the authorized operation of a request. Raises WouldBlock when that needs an await."""
        if cors.ORIGIN in request.headers or (
            self._websites and serve.website_bucket(request, self._websites) is not None
        ):
            raise WouldBlock
        self._parse_target(request)
        if request.key is None:
            raise WouldBlock
        if request.query and not routing.SUBRESOURCES.isdisjoint(request.query):
            raise WouldBlock
        signature = authentication.parse_signature(self.services, request)
        if signature is not None:
            authentication.verify(request, signature, self._cache.try_key(signature.access_key))
        operation = _find_operation(request)
        name = request.bucket
        if (operation.try_handler is None and operation.start_handler is None) or name is None:
            raise WouldBlock
        bucket = target.require_bucket(name, self._cache.try_bucket(name))
        if bucket.store in self.services.plain_file_stores:
            raise WouldBlock
        self._admit(request, operation, bucket)
        request.timings["auth"] = time.perf_counter() - started
        return operation

    def _parse_target(self, request: S3Request) -> None:
        request.request_id = self.services.next_id()
        request.timings = {}
        request.amazon = request.names.amazon  # without headers that the fast path added from the query
        host = request.headers.get("host", "")
        request.bucket, request.key, request.virtual_host = target.parse_target(request.raw_path, host, self._domains)
        request.query = target.parse_query(request.raw_query) if request.raw_query else {}

    def _admit(self, request: S3Request, operation: routing.Operation, bucket: Bucket | None) -> None:
        services = self.services
        try:
            authorization.authorize_request(request, operation, bucket, services.region)
        except AccessDenied:
            request.region = services.region if bucket is None else services.regions.of(bucket)  # clients read it
            raise
        reject_unsupported_headers(request)
        if services.store.journal_failures and bucket is not None:
            require_journals(request, operation.name, services.store.journal_failures.get(bucket.store))
        request.bucket_row = bucket

    # what every response gets
    def _add_common_headers(self, request: S3Request, response: Response) -> None:
        if self._durability_headers:
            row = request.bucket_row
            name = self.services.store.name if row is None else request.storage_class_store or row.store
            response.head += self._durability_headers.get(name, b"")
        if self._server_timing and request.account_id is not None:
            response.headers.append((b"server-timing", _server_timing(request)))
        if request.charged:
            response.headers.append((b"x-amz-request-charged", b"requester"))

    async def _add_cors(self, request: S3Request, response: Response) -> None:
        """Add the headers for browsers, to errors too."""
        if request.bucket is None or request.method == "OPTIONS":
            return
        try:
            bucket = request.bucket_row or await self._cache.bucket(request.bucket)
        except DomainError:
            return
        if bucket is not None:
            response.headers += cors.headers(bucket, request)

    def _complete(self, request: S3Request, response: Response, code: str, started: float) -> Response:
        """Return the finished response of the fast path, and record it."""
        finalize(request, response)
        assert isinstance(response.body, bytes)
        seconds = time.perf_counter() - started
        self._record(request, response, (response.status, code, len(response.body)), seconds, seconds)
        return response

    def _record(
        self,
        request: S3Request,
        response: Response | None,
        outcome: tuple[int, str, int],
        seconds: float,
        response_seconds: float,
    ) -> None:
        """Count an answered request, and add it to its bucket's access log."""
        status, code, sent = outcome
        self._observe(request, status, code, sent, seconds)
        row = request.bucket_row
        if row is None or row.settings:
            self.logs.collect(request, response, code, sent, seconds, response_seconds)


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


async def _receive_nothing() -> dict[str, Any]:
    raise RuntimeError("the body was given whole")


def _raise(error: Exception) -> Callable[[], Response]:
    def answer() -> Response:
        raise error

    return answer


def _error_response(request: S3Request, error: Exception) -> tuple[Response, str]:
    """Return the response for an exception, and its code."""
    if isinstance(error, DomainError):
        error = to_s3_error(error)
    if not isinstance(error, S3Error):
        logger.error("request %s failed", request.request_id, exc_info=error)
        error = InternalError()
    return error_response(request, error), error.code


def _server_timing(request: S3Request) -> bytes:
    return ", ".join(f"{phase};dur={seconds * 1000:.3f}" for phase, seconds in request.timings.items()).encode()
