"""The S3 plane: one ASGI application that parses, verifies, authorises, runs the operation and renders its answer."""

from __future__ import annotations

import itertools
import logging
import secrets
import time
from collections.abc import Callable
from typing import Any

from app.access.accounts import Accounts
from app.access.authorize import authorize
from app.errors import DomainError
from app.index.rows import Bucket
from app.s3 import dispatch, metadata, operations, signing, target
from app.s3.domain_errors import from_domain
from app.s3.errors import (
    AccessDenied,
    AccessForbidden,
    BadRequest,
    InternalError,
    InvalidAccessKeyId,
    InvalidBucketName,
    InvalidRequest,
    NoSuchBucket,
    NotImplemented,
    S3Error,
)
from app.s3.refused import refuse_unbuilt_headers
from app.s3.request import Memory, Receive, S3Request
from app.s3.response import Response
from app.s3.send import Send, send_error, send_response
from app.settings import Settings
from app.store.store import Store

logger = logging.getLogger("sluice.s3")

Observe = Callable[[S3Request, int, str, int, float], None]
"""Told of every answer: request, status, error code (or empty), bytes sent, seconds in all."""

operations.load()


class Gateway:
    """What handlers work with, and the ASGI application itself."""

    def __init__(self, settings: Settings, store: Store, accounts: Accounts, observe: Observe, memory: Memory) -> None:
        self.settings = settings
        self.store = store
        self.index = store.index
        self.accounts = accounts
        self.region = settings.region
        self.domains = settings.domains
        self._observe = observe
        self._memory = memory
        self._ids = map(f"{secrets.token_hex(5).upper()}%010X".__mod__, itertools.count(1))
        self._always: list[tuple[bytes, bytes]] = []
        if settings.durability != "full":
            self._always.append((b"x-sluice-durability", settings.durability.encode()))

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        request = _head(scope, receive, next(self._ids))
        request.memory = self._memory
        code, status, sent = "", 0, 0
        try:
            try:
                response = await self._answer(request)
            except DomainError as error:
                raise from_domain(error) from error
            response.headers += self._always
            if self.settings.server_timing and request.account_id is not None:
                response.headers.append((b"server-timing", _server_timing(request)))
            status = response.status
            sent = await send_response(request, response, scope, send)
        except S3Error as error:
            if status:  # the head has gone out: only a broken connection can still say it
                raise
            code, status = error.code, error.status
            sent = await send_error(request, error, send)
        except Exception:
            if status:
                raise
            logger.exception("request %s failed", request.request_id)
            code, status = "InternalError", 500
            sent = await send_error(request, InternalError(), send)
        finally:
            if request.body is not None:
                request.body.close()
            self._observe(request, status, code, sent, time.perf_counter() - started)

    async def _answer(self, request: S3Request) -> Response:
        started = time.perf_counter()
        host = request.headers.get("host", "")
        request.bucket, request.key, request.virtual_host = target.split(request.raw_path, host, self.domains)
        request.query = target.parse_query(request.raw_query)
        length = request.headers.get("content-length")
        if length is not None:
            if not (length.isascii() and length.isdigit()) or len(length) > 19:
                raise BadRequest()
            request.content_length = int(length)
        if request.method == "OPTIONS":
            raise _preflight(request)
        await self._authenticate(request)
        operation = dispatch.find(request)
        request.operation = operation.name
        if request.payload.startswith("STREAMING-") and not operation.streams:
            raise NotImplemented(Header="x-amz-content-sha256")
        bucket = None
        if request.bucket is not None:
            if request.key is not None:
                target.check_key(request.key)
            if operation.on_bucket:
                bucket = await self.bucket(request.bucket)
        self.authorize(request, operation.action, bucket, request.headers.get("x-amz-expected-bucket-owner"))
        refuse_unbuilt_headers(request)
        request.bucket_row = bucket
        request.timings["auth"] = time.perf_counter() - started
        return await operation.handler(self, request)

    async def _authenticate(self, request: S3Request) -> None:
        settings = self.settings
        claim = signing.parse(
            request, now=time.time(), region=self.region, clock_skew=settings.clock_skew, sigv2=settings.sigv2
        )
        if claim is None:
            if not metadata.OVERRIDES.keys().isdisjoint(request.query):
                raise InvalidRequest("Request specific response headers cannot be used for anonymous GET requests.")
            return
        key = await self.accounts.lookup(claim.access_key)
        if key is None:
            raise InvalidAccessKeyId(AWSAccessKeyId=claim.access_key[:128])
        claim.verify(key.secret)
        if key.disabled:
            raise InvalidAccessKeyId(AWSAccessKeyId=claim.access_key)
        request.signature = claim
        request.secret = key.secret
        request.payload = claim.payload
        request.access_key = key.access_key
        request.account_id = key.account_id
        request.display_name = key.display_name

    async def bucket(self, name: str) -> Bucket:
        """The bucket of that name. Raises InvalidBucketName, NoSuchBucket."""
        found = await self.index.bucket(name)
        if found is None:
            if not target.valid_bucket_name(name):
                raise InvalidBucketName(BucketName=name)
            raise NoSuchBucket(BucketName=name)
        return found

    def authorize(self, request: S3Request, action: str, bucket: Bucket | None, expected_owner: str | None) -> None:
        """Raises AccessDenied unless the caller may do `action`, and owns what it expects to own."""
        if not authorize(request.account_id, action, bucket):
            raise AccessDenied()
        if expected_owner is not None and bucket is not None and expected_owner != bucket.owner_id:
            raise AccessDenied()


def _head(scope: dict[str, Any], receive: Receive, request_id: str) -> S3Request:
    request = S3Request()
    request.method = scope["method"]
    request.raw_path = scope["raw_path"]
    request.raw_query = scope["query_string"]
    request.header_list = scope["headers"]
    headers: dict[str, str] = {}
    repeated: set[str] = set()
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name in headers:
            repeated.add(name)
            headers[name] += ", " + value
        else:
            headers[name] = value
    request.headers = headers
    request.repeated = repeated
    request.query = {}
    request.bucket = request.key = None
    request.virtual_host = False
    request.scheme = scope["scheme"]
    client = scope["client"]
    request.client = client[0] if client else ""
    request.request_id = request_id
    request.receive = receive
    request.body = None
    request.content_length = None
    request.account_id = request.access_key = None
    request.display_name = request.secret = ""
    request.signature = request.bucket_row = None
    request.payload = "UNSIGNED-PAYLOAD"
    request.operation = "Unknown"
    request.timings = {}
    return request


def _preflight(request: S3Request) -> S3Error:
    """The answer to a browser that asks before a cross-origin request: no bucket has a CORS configuration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/RESTOPTIONSobject.html
    """
    for name in ("origin", "access-control-request-method"):
        if name not in request.headers:
            return BadRequest(f"Insufficient information. {name.title()} request header needed.")
    return AccessForbidden(Method=request.headers["access-control-request-method"], ResourceType="OBJECT")


def _server_timing(request: S3Request) -> bytes:
    return ", ".join(f"{phase};dur={seconds * 1000:.3f}" for phase, seconds in request.timings.items()).encode()
