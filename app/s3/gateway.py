"""The S3 application: authenticates and authorizes a request, runs its operation, renders the response."""

from __future__ import annotations

import itertools
import logging
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from sluice_s3.app.access.lookup_cache import LookupCache
from sluice_s3.app.access.principal import principal_of
from sluice_s3.app.errors import DomainError, NoSuchKey, NoSuchVersion, WouldBlock
from sluice_s3.app.index.engine.outbox import emit_events
from sluice_s3.app.index.rows import AccessKey, Bucket, Version
from sluice_s3.app.s3 import handlers, routing
from sluice_s3.app.s3 import iam as iam_endpoint
from sluice_s3.app.s3.auth import authorization, session_tokens, signatures
from sluice_s3.app.s3.cors import rules as cors
from sluice_s3.app.s3.errors import (
    AccessDenied,
    InternalError,
    InvalidAccessKeyId,
    InvalidRequest,
    NotImplemented,
    S3Error,
)
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.journal_failures import require_journals
from sluice_s3.app.s3.logging.collector import Collector
from sluice_s3.app.s3.notifications.event_context import event_builder_for
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.website import serve
from sluice_s3.app.s3.wire import metadata, query_parameters, target
from sluice_s3.app.s3.wire.request import MemoryBudget, Receive, S3Request
from sluice_s3.app.s3.wire.response import Response, render_headers
from sluice_s3.app.s3.wire.response_writer import Send, error_response, finalize, send_response
from sluice_s3.app.s3.wire.unsupported_headers import reject_unsupported_headers
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.notifications import MARK
from sluice_s3.app.store.plain_files.writes import PlainFiles
from sluice_s3.app.store.quotas import Quotas
from sluice_s3.app.store.regions import Regions
from sluice_s3.app.store.store import Store

logger = logging.getLogger("sluice.s3")

REQUEST = "sluice.request"
"""Key of the scope under which the server passes the parsed request."""
Observe = Callable[[S3Request, int, str, int, float], None]
"""Called for every response: request, status, error code (or empty), bytes sent, total seconds."""

handlers.register()


class Gateway:
    """The state that handlers use, and the ASGI application itself."""

    def __init__(
        self, settings: Settings, store: Store, known: LookupCache, observe: Observe, memory: MemoryBudget
    ) -> None:
        self.settings = settings
        self.store = store
        self.index = store.index
        self._known = known
        self.quotas = Quotas(store.index)
        self.regions = Regions(settings.region)
        self.region = self.regions.default
        self.domains = settings.domains
        self._websites = settings.website_domains
        self._observe = observe
        self.memory = memory
        self.logs = Collector(store.index, known)
        self._ids = map("%X".__mod__, itertools.count((1 << 63) + secrets.randbits(62)))
        self._server_timing = settings.server_timing
        self.archives = store.archives
        self._trees = frozenset(name for name, one in store.all.items() if one.tree is not None)
        self._always = {
            name: render_headers([(b"x-sluice-durability", kept.durability.encode())])
            for name, kept in settings.named_stores.items()
            if kept.durability not in (None, "full")
        }
        """Response headers for the buckets of a store, if it has any."""

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        request: S3Request = scope[REQUEST]
        request.receive = receive
        request.memory = self.memory
        code, status, sent = "", 0, 0
        answered, turned = None, started
        try:
            try:
                response = await self._answer(request, started)
                self._add_always(request, response)
            except Exception as error:
                answer = _answer_to(error, request)
                code = answer.code
                response = error_response(request, answer)
            if cors.ORIGIN in request.headers:
                await self._add_cors(request, response)
            finalize(request, response)
            answered, status, turned = response, response.status, time.perf_counter()
            sent = await send_response(response, scope, send)
        finally:
            if request.body is not None:
                request.body.close()
            seconds = time.perf_counter() - started
            self._observe(request, status, code, sent, seconds)
            row = request.bucket_row
            if row is None or row.settings:
                self.logs.note(request, answered, code, sent, seconds, turned - started)

    def try_respond(self, request: S3Request) -> Response | None:
        """Return the response to a GET or HEAD without a body; None when it must wait.

        Then only the request has changed, and `__call__` continues with it. Both paths run the same steps; one awaits
        its lookups, the other needs them at once.
        """
        started = time.perf_counter()
        code = ""
        try:
            response = self._try_respond(request, started)
            self._add_always(request, response)
        except WouldBlock:
            return None
        except Exception as error:
            answer = _answer_to(error, request)
            code = answer.code
            response = error_response(request, answer)
        finalize(request, response)
        body = response.body
        assert isinstance(body, bytes)
        seconds = time.perf_counter() - started
        self._observe(request, response.status, code, len(body), seconds)
        row = request.bucket_row
        if row is None or row.settings:
            self.logs.note(request, response, code, len(body), seconds, seconds)
        return response

    def try_start(self, request: S3Request, body: bytes, done: Callable[[Response], None]) -> bool:
        """Start a PUT or DELETE whose body is complete, or resume `request.coming`.

        Calls `done(response)` when finished. Returns False if the request must be awaited; then only the request has
        changed.
        """
        started = time.perf_counter()
        request.memory = self.memory
        request.receive = _has_come
        finish = partial(self._finish, request, started, done)
        try:
            if request.coming is None:
                operation = self._try_admit(request, started)
                if operation.begin is None or request.undecided or MARK in request.bucket_row.settings:
                    raise WouldBlock
                change = operation.begin(self, request, body)
            else:
                change = request.coming()
        except WouldBlock:
            return False
        except Exception as error:
            finish(_raise(error))
        else:
            change.future.add_done_callback(lambda future: finish(partial(change.answer, future)))
        return True

    def _finish(
        self, request: S3Request, started: float, done: Callable[[Response], None], answer: Callable[[], Response]
    ) -> None:
        code = ""
        try:
            response = answer()
            self._add_always(request, response)
        except Exception as error:
            found = _answer_to(error, request)
            code = found.code
            response = error_response(request, found)
        finalize(request, response)
        done(response)
        assert isinstance(response.body, bytes)
        seconds = time.perf_counter() - started
        self._observe(request, response.status, code, len(response.body), seconds)
        row = request.bucket_row
        if row is None or row.settings:
            self.logs.note(request, response, code, len(response.body), seconds, seconds)

    # the steps to a response, in order
    async def _answer(self, request: S3Request, started: float) -> Response:
        if (self._websites or request.website) and (site := serve.website_bucket(request, self._websites)) is not None:
            return await serve.handle(self, self._known, request, site)
        if request.signature is None:  # else the fast path has done this
            self._read_target(request)
            if iam_endpoint.is_iam_request(request):
                query_parameters.parse_content_length(request)
                return await iam_endpoint.handle(self, request)
            if request.method == "OPTIONS":
                cors.check_preflight(request)
                return cors.preflight(await self._known.bucket(request.bucket or ""), request)
            claim = self._read_claim(request)
            if claim is not None:
                await self.authenticate(request, claim)
        operation = self._find_operation(request)
        bucket = None
        if operation.on_bucket and request.bucket is not None:
            try:
                bucket = target.require_bucket(request.bucket, self._known.try_bucket(request.bucket))
            except WouldBlock:
                bucket = await self.bucket(request.bucket)
        self._admit(request, operation, bucket)
        request.timings["auth"] = time.perf_counter() - started
        if bucket is not None and MARK in bucket.settings:
            with emit_events(event_builder_for(request)):
                return authorization.ensure_authorized(request, await operation.handler(self, request))
        return authorization.ensure_authorized(request, await operation.handler(self, request))

    def _try_respond(self, request: S3Request, started: float) -> Response:
        operation = self._try_admit(request, started)
        if operation.now is None:
            raise WouldBlock
        return authorization.ensure_authorized(request, operation.now(self, request))

    def _try_admit(self, request: S3Request, started: float) -> routing.Operation:
        """Return the authorized operation of a request. Raises WouldBlock when that needs an await."""
        if cors.ORIGIN in request.headers or (
            self._websites and serve.website_bucket(request, self._websites) is not None
        ):
            raise WouldBlock
        self._read_target(request)
        if request.key is None:
            raise WouldBlock
        if request.query and not routing.SUBRESOURCES.isdisjoint(request.query):
            raise WouldBlock
        claim = self._read_claim(request)
        if claim is not None:
            self._authenticate(request, claim, self._known.try_key(claim.access_key))
        operation = self._find_operation(request)
        name = request.bucket
        if (operation.now is None and operation.begin is None) or name is None:
            raise WouldBlock
        bucket = target.require_bucket(name, self._known.try_bucket(name))
        if self._trees and bucket.store in self._trees:
            raise WouldBlock
        self._admit(request, operation, bucket)
        request.timings["auth"] = time.perf_counter() - started
        return operation

    def _read_target(self, request: S3Request) -> None:
        request.request_id = next(self._ids)
        request.timings = {}
        request.amazon = request.names.amazon  # without headers that the fast path added from the query
        host = request.headers.get("host", "")
        request.bucket, request.key, request.virtual_host = target.parse_target(request.raw_path, host, self.domains)
        request.query = target.parse_query(request.raw_query) if request.raw_query else {}

    def _read_claim(self, request: S3Request) -> signatures.RequestSignature | None:
        query_parameters.parse_content_length(request)
        settings = self.settings
        claim = signatures.parse_signature(
            request, now=time.time(), region=self.regions.required, clock_skew=settings.clock_skew, sigv2=settings.sigv2
        )
        if claim is None and not metadata.RESPONSE_OVERRIDES.keys().isdisjoint(request.query):
            raise InvalidRequest("Request specific response headers cannot be used for anonymous GET requests.")
        return claim

    async def authenticate(self, request: S3Request, claim: signatures.RequestSignature) -> None:
        """Verify a signature. Raises InvalidAccessKeyId, SignatureDoesNotMatch, InvalidToken, ExpiredToken."""
        self._authenticate(request, claim, await self.access_key(claim.access_key))

    async def access_key(self, name: str) -> AccessKey | None:
        """Return the access key of that name; None if there is none."""
        try:
            return self._known.try_key(name)
        except WouldBlock:
            return await self._known.key(name)

    def _authenticate(self, request: S3Request, claim: signatures.RequestSignature, key: AccessKey | None) -> None:
        if key is None:
            raise InvalidAccessKeyId(AWSAccessKeyId=claim.access_key[:128])
        claim.verify(key.secret)
        if key.disabled:
            raise InvalidAccessKeyId(AWSAccessKeyId=claim.access_key)
        if key.token or claim.token is not None:
            session_tokens.check(key, claim.token)
        request.signature = claim
        request.secret = key.secret
        request.payload = claim.payload
        request.access_key = key.access_key
        request.account_id = key.account_id
        request.display_name = key.display_name
        if key.holder is not None:
            request.principal = principal_of(key.holder)

    def _find_operation(self, request: S3Request) -> routing.Operation:
        operation = routing.find_operation(request)
        request.operation = operation.name
        if request.payload.startswith("STREAMING-") and not operation.streams:
            raise NotImplemented(Header="x-amz-content-sha256")
        if request.bucket is not None and request.key is not None:
            target.validate_key(request.key)
        if request.query and "versionId" in request.query:
            version_headers.reject_unexpected_version_id(request, operation)
        return operation

    def _admit(self, request: S3Request, operation: routing.Operation, bucket: Bucket | None) -> None:
        try:
            authorization.authorize_request(request, operation, bucket, self.region)
        except AccessDenied:
            request.region = self.region if bucket is None else self.regions.of(bucket)  # clients read it
            raise
        reject_unsupported_headers(request)
        if self.store.journal_failures and bucket is not None:
            require_journals(request, operation.name, self.store.journal_failures.get(bucket.store))
        request.bucket_row = bucket

    def _add_always(self, request: S3Request, response: Response) -> None:
        if self._always:
            row = request.bucket_row
            response.head += self._always.get(self.store.name if row is None else request.placed or row.store, b"")
        if self._server_timing and request.account_id is not None:
            response.headers.append((b"server-timing", _server_timing(request)))
        if request.charged:
            response.headers.append((b"x-amz-request-charged", b"requester"))

    async def _add_cors(self, request: S3Request, response: Response) -> None:
        """Add the headers for browsers, to errors too."""
        if request.bucket is None or request.method == "OPTIONS":
            return
        try:
            bucket = request.bucket_row or await self._known.bucket(request.bucket)
        except DomainError:
            return
        if bucket is not None:
            response.headers += cors.headers(bucket, request)

    # for handlers
    def next_id(self) -> str:
        """Return an id for a request of the gateway's own."""
        return next(self._ids)

    def store_of(self, request: S3Request, storage_class: str = "STANDARD") -> Store:
        """Return the store for a new object of that class in the request's bucket."""
        name = request.bucket_row.store
        if storage_class in self.store.classes and name not in self._trees:
            name = request.placed = self.store.classes[storage_class]
        return self.store.of(name)

    def tree_of(self, bucket: Bucket) -> PlainFiles | None:
        """Return the plain files of a bucket; None for another layout."""
        return self.store.of(bucket.store).tree

    async def find(self, bucket: Bucket, key: str, version_id: str | None) -> Version:
        """Return the current object of a key, or the version of that id. Raises NoSuchKey, NoSuchVersion."""
        tree = self.tree_of(bucket)
        if tree is None:
            return await objects.find(self.store, bucket.id, key, version_id)
        return objects.require_version(await tree.find(bucket, key, version_id), key, version_id)

    async def find_for(self, request: S3Request, bucket: Bucket, key: str, version_id: str | None) -> Version:
        """Return `find`'s version, with the caller's open permissions resolved.

        Raises AccessDenied, also for a missing object whose absence the caller may not know, and MethodNotAllowed for a
        delete marker.
        """
        try:
            version = await self.find(bucket, key, version_id)
        except (NoSuchKey, NoSuchVersion):
            authorization.require_list_permission(request, bucket, key)
            marker = await self.index.current_marker(bucket.id, key) if bucket.versioning and not version_id else None
            if marker is not None:
                raise version_headers.delete_marker_error(request, marker) from None
            if version_id is not None and bucket.versioning:
                raise NoSuchVersion(key=key, version_id=version_id) from None
            raise
        authorization.authorize_found_version(request, bucket, version)
        if version.is_marker:
            raise version_headers.marker_not_allowed_error(request, version)
        return version

    async def bucket(self, name: str) -> Bucket:
        """Return the bucket of that name. Raises InvalidBucketName, NoSuchBucket."""
        return target.require_bucket(name, await self._known.bucket(name))


async def _has_come() -> dict[str, Any]:
    raise RuntimeError("the body was given whole")


def _raise(error: Exception) -> Callable[[], Response]:
    def answer() -> Response:
        raise error

    return answer


def _answer_to(error: Exception, request: S3Request) -> S3Error:
    """Return the S3 error for an exception."""
    if isinstance(error, S3Error):
        return error
    if isinstance(error, DomainError):
        return to_s3_error(error)
    logger.error("request %s failed", request.request_id, exc_info=error)
    return InternalError()


def _server_timing(request: S3Request) -> bytes:
    return ", ".join(f"{phase};dur={seconds * 1000:.3f}" for phase, seconds in request.timings.items()).encode()
