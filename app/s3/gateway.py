"""The S3 plane: one ASGI application that parses, verifies, authorises, runs the operation and renders its answer."""

from __future__ import annotations

import itertools
import logging
import secrets
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from app.access.known import Known
from app.access.principal import principal_of
from app.errors import DomainError, NoSuchKey, NoSuchVersion, NotNow
from app.index.rows import AccessKey, Bucket, Version
from app.index.telling import telling
from app.s3 import cors, dispatch, identity, metadata, operations, parameters, rights, signing, target, tokens, versions
from app.s3.domain_errors import from_domain
from app.s3.errors import (
    InternalError,
    InvalidAccessKeyId,
    InvalidBucketName,
    InvalidRequest,
    NoSuchBucket,
    NotImplemented,
    S3Error,
)
from app.s3.events.causes import teller_of
from app.s3.logs.collector import Collector
from app.s3.refused import refuse_unbuilt_headers
from app.s3.request import Memory, Receive, S3Request
from app.s3.response import Response, render
from app.s3.send import Send, complete, error_response, send_response
from app.s3.website import serve
from app.settings import Settings
from app.store import objects
from app.store.events import MARK
from app.store.quotas import Quotas
from app.store.store import Store
from app.store.tree import Tree

logger = logging.getLogger("sluice.s3")

REQUEST = "sluice.request"
"""Key of a scope under which our server gives the request that it has parsed."""
Observe = Callable[[S3Request, int, str, int, float], None]
"""Told of every answer: request, status, error code (or empty), bytes sent, seconds in all."""

operations.load()


class Gateway:
    """What handlers work with, and the ASGI application itself."""

    def __init__(self, settings: Settings, store: Store, known: Known, observe: Observe, memory: Memory) -> None:
        self.settings = settings
        self.store = store
        self.index = store.index
        self._known = known
        self.quotas = Quotas(store.index)
        self.region = settings.region
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
            name: render([(b"x-sluice-durability", kept.durability.encode())])
            for name, kept in settings.named_stores.items()
            if kept.durability not in (None, "full")
        }
        """What answers about a bucket on a store say of it, if anything."""

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
            complete(request, response)
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

    def answer_now(self, request: S3Request) -> Response | None:
        """The answer to a GET or HEAD without a body, complete but for what a server adds; None when it must wait.

        Then nothing is done but to the request, which `__call__` takes on. Both ways run the same steps; only what
        they look up comes by an await in one, and at once or not at all in the other.
        """
        started = time.perf_counter()
        code = ""
        try:
            response = self._answer_now(request, started)
            self._add_always(request, response)
        except NotNow:
            return None
        except Exception as error:
            answer = _answer_to(error, request)
            code = answer.code
            response = error_response(request, answer)
        complete(request, response)
        body = response.body
        assert isinstance(body, bytes)
        seconds = time.perf_counter() - started
        self._observe(request, response.status, code, len(body), seconds)
        row = request.bucket_row
        if row is None or row.settings:
            self.logs.note(request, response, code, len(body), seconds, seconds)
        return response

    def begin_now(self, request: S3Request, body: bytes, done: Callable[[Response], None]) -> bool:
        """Begin a PUT or DELETE whose body is here whole, or what is `coming`; `done` is given its answer now or later.

        False when it must be awaited: then nothing is done but to the request, as in `answer_now`.
        """
        started = time.perf_counter()
        request.memory = self.memory
        request.receive = _has_come
        finish = partial(self._finish, request, started, done)
        try:
            if request.coming is None:
                operation = self._admit_now(request, started)
                if operation.begin is None or MARK in request.bucket_row.settings:
                    raise NotNow
                change = operation.begin(self, request, body)
            else:
                change = request.coming()
        except NotNow:
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
        complete(request, response)
        done(response)
        assert isinstance(response.body, bytes)
        seconds = time.perf_counter() - started
        self._observe(request, response.status, code, len(response.body), seconds)
        row = request.bucket_row
        if row is None or row.settings:
            self.logs.note(request, response, code, len(response.body), seconds, seconds)

    # the steps to an answer, in their order
    async def _answer(self, request: S3Request, started: float) -> Response:
        if (self._websites or request.website) and (site := serve.site_of(request, self._websites)) is not None:
            return await serve.answer(self, self._known, request, site)
        if request.signature is None:  # else the fast lane has come as far as this
            self._read_target(request)
            if identity.is_for(request):
                parameters.read_length(request)
                return await identity.answer(self, request)
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
                bucket = _checked(request.bucket, self._known.bucket_now(request.bucket))
            except NotNow:
                bucket = await self.bucket(request.bucket)
        self._admit(request, operation, bucket)
        request.timings["auth"] = time.perf_counter() - started
        if bucket is not None and MARK in bucket.settings:
            with telling(teller_of(request)):
                return rights.decided(request, await operation.handler(self, request))
        return rights.decided(request, await operation.handler(self, request))

    def _answer_now(self, request: S3Request, started: float) -> Response:
        operation = self._admit_now(request, started)
        if operation.now is None:
            raise NotNow
        return rights.decided(request, operation.now(self, request))

    def _admit_now(self, request: S3Request, started: float) -> dispatch.Operation:
        """The operation that a request asks for and may run. Raises NotNow for one that has no way without an await."""
        if cors.ORIGIN in request.headers or (self._websites and serve.site_of(request, self._websites) is not None):
            raise NotNow
        self._read_target(request)
        if request.key is None:
            raise NotNow
        if request.query and not dispatch.SUBRESOURCES.isdisjoint(request.query):
            raise NotNow
        claim = self._read_claim(request)
        if claim is not None:
            self._authenticate(request, claim, self._known.key_now(claim.access_key))
        operation = self._find_operation(request)
        name = request.bucket
        if (operation.now is None and operation.begin is None) or name is None:
            raise NotNow
        bucket = _checked(name, self._known.bucket_now(name))
        if self._trees and bucket.store in self._trees:
            raise NotNow
        self._admit(request, operation, bucket)
        request.timings["auth"] = time.perf_counter() - started
        return operation

    def _read_target(self, request: S3Request) -> None:
        request.request_id = next(self._ids)
        request.timings = {}
        request.amazon = request.names.amazon  # without what the fast lane may have found in the query
        host = request.headers.get("host", "")
        request.bucket, request.key, request.virtual_host = target.split(request.raw_path, host, self.domains)
        request.query = target.parse_query(request.raw_query) if request.raw_query else {}

    def _read_claim(self, request: S3Request) -> signing.Claim | None:
        parameters.read_length(request)
        settings = self.settings
        claim = signing.parse(
            request, now=time.time(), region=self.region, clock_skew=settings.clock_skew, sigv2=settings.sigv2
        )
        if claim is None and not metadata.OVERRIDES.keys().isdisjoint(request.query):
            raise InvalidRequest("Request specific response headers cannot be used for anonymous GET requests.")
        return claim

    async def authenticate(self, request: S3Request, claim: signing.Claim) -> None:
        """Believe a claim. Raises InvalidAccessKeyId, SignatureDoesNotMatch, InvalidToken, ExpiredToken."""
        self._authenticate(request, claim, await self.access_key(claim.access_key))

    async def access_key(self, name: str) -> AccessKey | None:
        """The access key of that name."""
        try:
            return self._known.key_now(name)
        except NotNow:
            return await self._known.key(name)

    def _authenticate(self, request: S3Request, claim: signing.Claim, key: AccessKey | None) -> None:
        if key is None:
            raise InvalidAccessKeyId(AWSAccessKeyId=claim.access_key[:128])
        claim.verify(key.secret)
        if key.disabled:
            raise InvalidAccessKeyId(AWSAccessKeyId=claim.access_key)
        if key.token or claim.token is not None:
            tokens.check(key, claim.token)
        request.signature = claim
        request.secret = key.secret
        request.payload = claim.payload
        request.access_key = key.access_key
        request.account_id = key.account_id
        request.display_name = key.display_name
        if key.holder is not None:
            request.principal = principal_of(key.holder)

    def _find_operation(self, request: S3Request) -> dispatch.Operation:
        operation = dispatch.find(request)
        request.operation = operation.name
        if request.payload.startswith("STREAMING-") and not operation.streams:
            raise NotImplemented(Header="x-amz-content-sha256")
        if request.bucket is not None and request.key is not None:
            target.check_key(request.key)
        if request.query and "versionId" in request.query:
            versions.check_is_taken(request, operation)
        return operation

    def _admit(self, request: S3Request, operation: dispatch.Operation, bucket: Bucket | None) -> None:
        rights.admit(request, operation, bucket, self.region)
        refuse_unbuilt_headers(request)
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
        """Tell a browser, of errors too, what its page may see."""
        if request.bucket is None or request.method == "OPTIONS":
            return
        try:
            bucket = request.bucket_row or await self._known.bucket(request.bucket)
        except DomainError:
            return
        if bucket is not None:
            response.headers += cors.headers(bucket, request)

    # what handlers ask
    def next_id(self) -> str:
        """An id for a request of the gateway's own."""
        return next(self._ids)

    def store_of(self, request: S3Request, storage_class: str = "STANDARD") -> Store:
        """Where what a request writes into its bucket goes, as an object of that class."""
        name = request.bucket_row.store
        if storage_class in self.store.classes and name not in self._trees:
            name = request.placed = self.store.classes[storage_class]
        return self.store.of(name)

    def tree_of(self, bucket: Bucket) -> Tree | None:
        """The plain files that a bucket is made of, if it is."""
        return self.store.of(bucket.store).tree

    async def find(self, bucket: Bucket, key: str, version_id: str | None) -> Version:
        """The current object of a key, or the version of that id. Raises NoSuchKey, NoSuchVersion."""
        tree = self.tree_of(bucket)
        if tree is None:
            return await objects.find(self.store, bucket.id, key, version_id)
        return objects.found(await tree.find(bucket, key, version_id), key, version_id)

    async def find_for(self, request: S3Request, bucket: Bucket, key: str, version_id: str | None) -> Version:
        """`find`, with what was left open of the caller's right to it decided.

        Raises AccessDenied, also for what is not there when the caller may not know that, and MethodNotAllowed where
        there is a delete marker.
        """
        try:
            version = await self.find(bucket, key, version_id)
        except (NoSuchKey, NoSuchVersion):
            rights.check_may_list(request, bucket, key)
            marker = await self.index.current_marker(bucket.id, key) if bucket.versioning and not version_id else None
            if marker is not None:
                raise versions.deleted(request, marker) from None
            if version_id is not None and bucket.versioning:
                raise NoSuchVersion(key=key, version_id=version_id) from None
            raise
        rights.check_version(request, bucket, version)
        if version.is_marker:
            raise versions.not_allowed(request, version)
        return version

    async def bucket(self, name: str) -> Bucket:
        """The bucket of that name. Raises InvalidBucketName, NoSuchBucket."""
        return _checked(name, await self._known.bucket(name))


def _checked(name: str, bucket: Bucket | None) -> Bucket:
    if bucket is None:
        if not target.valid_bucket_name(name):
            raise InvalidBucketName(BucketName=name)
        raise NoSuchBucket(BucketName=name)
    return bucket


async def _has_come() -> dict[str, Any]:
    raise RuntimeError("the body was given whole")


def _raise(error: Exception) -> Callable[[], Response]:
    def answer() -> Response:
        raise error

    return answer


def _answer_to(error: Exception, request: S3Request) -> S3Error:
    """The S3 error that a request is answered with for what was raised on its way."""
    if isinstance(error, S3Error):
        return error
    if isinstance(error, DomainError):
        return from_domain(error)
    logger.error("request %s failed", request.request_id, exc_info=error)
    return InternalError()


def _server_timing(request: S3Request) -> bytes:
    return ", ".join(f"{phase};dur={seconds * 1000:.3f}" for phase, seconds in request.timings.items()).encode()
