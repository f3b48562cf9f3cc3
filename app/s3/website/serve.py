"""Answers requests to the website that a bucket is: GET and HEAD by anybody, for whom the bucket's policy decides.

"Hosting a static website using Amazon S3", Amazon S3 User Guide. A website has no other operations and knows no
signatures; what a query says is not looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from app.access.known import Known
from app.errors import DomainError
from app.index.rows import Bucket
from app.s3 import cors, dispatch, rights, target
from app.s3.domain_errors import from_domain
from app.s3.errors import AccessDenied, InvalidRequest, MethodNotAllowed, NoSuchBucket, NoSuchKey, S3Error
from app.s3.operations import object_read
from app.s3.request import S3Request
from app.s3.response import Response
from app.s3.website import pages
from app.s3.website.configuration import Redirect, Rule, Website, website_of
from app.s3.website.errors import NoSuchWebsiteConfiguration

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

OF_OBJECT = ("range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since", "if-range")
"""Headers that are about the object that was asked for, not about an error document."""
LOCATION = b"\r\nx-amz-website-redirect-location: "
METHODS = ("GET", "HEAD")


def site_of(request: S3Request, domains: tuple[str, ...]) -> str | None:
    """The bucket whose website a request is to, None when it is to no website.

    Where there are only websites a host under none of the domains is the name of a bucket itself, as on AWS for names
    that are made to lead there ("Configuring a static website using a custom domain", Amazon S3 User Guide).
    """
    host = request.headers.get("host", "")
    name = target.bucket_of_host(host, domains)
    return target.host_name(host) if name is None and request.website else name


async def answer(gateway: Gateway, known: Known, request: S3Request, name: str) -> Response:
    """The answer to a request whose Host names a website."""
    request.request_id, request.timings = gateway.next_id(), {}
    request.website, request.bucket, request.key, request.query = True, name, None, {}
    try:
        path = target.decode(request.raw_path[1:])
        bucket = await known.bucket(name)
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
        return await _page(gateway, request, bucket, site, path)
    except (S3Error, DomainError) as error:
        return pages.error_page(request, _s3(error))


def _s3(error: S3Error | DomainError) -> S3Error:
    return from_domain(error) if isinstance(error, DomainError) else error


async def _page(gateway: Gateway, request: S3Request, bucket: Bucket, site: Website, path: str) -> Response:
    if site.all_to is not None:
        host, protocol = site.all_to
        return pages.redirect(f"{protocol or request.scheme}://{host}/{quote(path)}")
    rule = next((rule for rule in site.rules if _holds(rule, path, "")), None)
    if rule is not None:
        return _redirected(request, rule, path)
    try:
        return await _object(gateway, request, bucket, _document_of(path, site))
    except (S3Error, DomainError) as raised:
        error = _s3(raised)
    if path and not path.endswith("/") and await _is_missing(gateway, bucket, path, error):
        beneath = f"{path}/"
        if await _may_be_read(gateway, request, bucket, _document_of(beneath, site)):
            return pages.redirect(f"/{quote(beneath)}", 302)
    return await _failed(gateway, request, bucket, site, path, error)


def _document_of(path: str, site: Website) -> str:
    return path + site.suffix if not path or path.endswith("/") else path


async def _object(gateway: Gateway, request: S3Request, bucket: Bucket, key: str) -> Response:
    """An object, or where it says that one is to go. Raises what GetObject does."""
    target.check_key(key)
    request.key = key
    operation = dispatch.TABLE[(request.method, "key", "")]
    request.operation = operation.name
    rights.admit(request, operation, bucket)
    read = object_read.get_object if request.method == "GET" else object_read.head_object
    response = rights.decided(request, await read(gateway, request))
    _, found, rest = response.head.partition(LOCATION)
    if not found:
        return response
    if not isinstance(response.body, bytes):
        await response.body.aclose()
    return Response(301, [(b"location", rest.partition(b"\r\n")[0])])


async def _is_missing(gateway: Gateway, bucket: Bucket, key: str, error: S3Error) -> bool:
    """Whether an object was not given because there is none, which who may not list is not told."""
    if isinstance(error, AccessDenied):
        try:
            return (await gateway.find(bucket, key, None)).is_marker
        except DomainError:
            return True
    return isinstance(error, NoSuchKey)


async def _may_be_read(gateway: Gateway, request: S3Request, bucket: Bucket, key: str) -> bool:
    """Whether there is an object that the caller may read."""
    try:
        target.check_key(key)
        request.key = key
        rights.admit(request, dispatch.TABLE[("HEAD", "key", "")], bucket)
        version = await gateway.find_for(request, bucket, key, None)
    except (S3Error, DomainError):
        return False
    return not request.undecided and not version.is_marker


async def _failed(
    gateway: Gateway, request: S3Request, bucket: Bucket, site: Website, path: str, error: S3Error
) -> Response:
    """What is answered in the place of what was asked for."""
    rule = next((rule for rule in site.rules if _holds(rule, path, str(error.status))), None)
    if rule is not None:
        return _redirected(request, rule, path)
    if not site.error or not 400 <= error.status < 500:
        return pages.error_page(request, error)
    request.headers = {name: value for name, value in request.headers.items() if name not in OF_OBJECT}
    try:
        response = await _object(gateway, request, bucket, site.error)
    except (S3Error, DomainError) as second:
        return pages.error_page(request, error, _s3(second))
    if response.status == 200:
        response.status = error.status
        response.headers += pages.error_headers(error)
    return response


def _holds(rule: Rule, path: str, status: str) -> bool:
    """Whether a rule is for a request that has failed with a status, or is not tried yet."""
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
    return pages.redirect(f"{where.Protocol or request.scheme}://{host}/{quote(key)}", code)
