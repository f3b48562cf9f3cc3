"""Answers requests to a bucket's website: GET and HEAD by anonymous callers.

The bucket's policy must allow them. "Hosting a static website using Amazon S3", Amazon S3 User Guide. A website has no
other operations and no signatures, and ignores queries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3 import routing
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.cors import rules as cors
from sluice_s3.app.s3.errors import (
    AccessDenied,
    InvalidRequest,
    MethodNotAllowed,
    NoSuchBucket,
    NoSuchKey,
    NoSuchWebsiteConfiguration,
    S3Error,
)
from sluice_s3.app.s3.errors.from_domain import to_s3_error
from sluice_s3.app.s3.objects import read as object_read
from sluice_s3.app.s3.objects.find import find_authorized
from sluice_s3.app.s3.website import pages
from sluice_s3.app.s3.website.xml import Redirect, Rule, Website, website_of
from sluice_s3.app.s3.wire import target
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

OF_OBJECT = ("range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range")
"""Headers for the requested object that do not apply to an error document."""
LOCATION = b"\r\nx-amz-website-redirect-location: "
METHODS = ("GET", "HEAD")


def website_bucket(request: S3Request, domains: tuple[str, ...]) -> str | None:
    """Return the bucket of a request to a website; None otherwise.

    On the website port a host outside the domains is itself a bucket name, as on AWS for DNS names that point there
    ("Configuring a static website using a custom domain", Amazon S3 User Guide).
    """
    host = request.headers.get("host", "")
    name = target.bucket_of_host(host, domains)
    return target.host_name(host) if name is None and request.website else name


async def handle(services: Services, request: S3Request, name: str) -> Response:
    """Answer a request whose Host names a website."""
    request.website, request.bucket, request.key, request.query = True, name, None, {}
    try:
        path = target.decode(request.raw_path[1:])
        bucket = await services.cache.bucket(name)
        if request.method == "OPTIONS":
            request.key = path or None
            cors.check_preflight(request)
            return cors.preflight(bucket, request)
        if bucket is None:
            raise NoSuchBucket(BucketName=name)
        request.bucket_row = bucket
        site = website_of(bucket)
        if site is None:
            raise NoSuchWebsiteConfiguration(BucketName=name)
        if request.method not in METHODS:
            raise MethodNotAllowed(Method=request.method, ResourceType="OBJECT")
        return await _page(services, request, bucket, site, path)
    except (S3Error, DomainError) as error:
        return pages.error_page(request, to_s3_error(error))


async def _page(services: Services, request: S3Request, bucket: Bucket, site: Website, path: str) -> Response:
    if site.all_to is not None:
        host, protocol = site.all_to
        return pages.redirect(f"{protocol or request.scheme}://{host}/{quote(path)}".encode())
    rule = next((rule for rule in site.rules if _holds(rule, path, "")), None)
    if rule is not None:
        return _redirected(request, rule, path)
    try:
        return await _object(services, request, bucket, _document_of(path, site))
    except (S3Error, DomainError) as raised:
        error = to_s3_error(raised)
    if path and not path.endswith("/") and await _is_missing(services, bucket, path, error):
        beneath = f"{path}/"
        if await _may_be_read(services, request, bucket, _document_of(beneath, site)):
            return pages.redirect(b"/" + quote(beneath).encode(), 302)
    return await _failed(services, request, bucket, site, path, error)


def _document_of(path: str, site: Website) -> str:
    return path + site.suffix if not path or path.endswith("/") else path


async def _object(services: Services, request: S3Request, bucket: Bucket, key: str) -> Response:
    """Return an object, or its redirect. Raises as GetObject."""
    target.validate_key(key)
    request.key = key
    operation = routing.ROUTES[(request.method, "key", "")]
    request.operation = operation.name
    authorization.authorize_request(request, operation, bucket)
    read = object_read.get_object if request.method == "GET" else object_read.head_object
    response = await read(services, request)
    authorization.require_authorized(request)
    _, found, rest = response.head.partition(LOCATION)
    if not found:
        return response
    if not isinstance(response.body, bytes):
        await response.body.aclose()
    return pages.redirect(rest.partition(b"\r\n")[0])


async def _is_missing(services: Services, bucket: Bucket, key: str, error: S3Error) -> bool:
    """Return whether an object failed because it is missing. Callers without list permission cannot see that."""
    if isinstance(error, AccessDenied):
        try:
            return (await services.find(bucket, key, None)).is_marker
        except DomainError:
            return True
    return isinstance(error, NoSuchKey)


async def _may_be_read(services: Services, request: S3Request, bucket: Bucket, key: str) -> bool:
    """Return whether an object exists that the caller may read."""
    try:
        target.validate_key(key)
        request.key = key
        authorization.authorize_request(request, routing.ROUTES[("HEAD", "key", "")], bucket)
        version = await find_authorized(services, request, bucket, key, None)
    except (S3Error, DomainError):
        return False
    return not request.authorization_pending and not version.is_marker


async def _failed(
    services: Services, request: S3Request, bucket: Bucket, site: Website, path: str, error: S3Error
) -> Response:
    """Return the response for a request that failed with `error`."""
    rule = next((rule for rule in site.rules if _holds(rule, path, str(error.status))), None)
    if rule is not None:
        return _redirected(request, rule, path)
    if not site.error or not 400 <= error.status < 500:
        return pages.error_page(request, error)
    request.headers = {name: value for name, value in request.headers.items() if name not in OF_OBJECT}
    try:
        response = await _object(services, request, bucket, site.error)
    except (S3Error, DomainError) as second:
        return pages.error_page(request, error, to_s3_error(second))
    if response.status == 200:
        response.status = error.status
        response.headers += pages.error_headers(error)
    return response


def _holds(rule: Rule, path: str, status: str) -> bool:
    """Return whether a rule applies to a request. `status` is its failure, or empty if not yet tried."""
    condition = rule.condition
    if condition is None:
        return not status
    return condition.HttpErrorCodeReturnedEquals == status and path.startswith(condition.KeyPrefixEquals)


def _redirected(request: S3Request, rule: Rule, path: str) -> Response:
    where: Redirect = rule.redirect
    key = path
    if where.ReplaceKeyWith is not None:
        key = where.ReplaceKeyWith
    elif where.ReplaceKeyPrefixWith is not None:
        prefix = "" if rule.condition is None else rule.condition.KeyPrefixEquals
        key = where.ReplaceKeyPrefixWith + path[len(prefix) :]
    host = where.HostName or request.headers.get("host", "")
    if not host:
        raise InvalidRequest()
    code = int(where.HttpRedirectCode or 301)
    return pages.redirect(f"{where.Protocol or request.scheme}://{host}/{quote(key)}".encode(), code)
