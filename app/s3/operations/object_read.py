"""GetObject and HeadObject."""

from __future__ import annotations

import asyncio
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from app.encryption.customer import CustomerKey
from app.encryption.scheme import SEALED
from app.errors import NoSuchKey, NotNow, SourceGone
from app.index.locks import LOCKED
from app.index.rows import NULL_VERSION, Bucket, ObjectPart, Version
from app.s3 import archives, conditions, customer_keys, encryption, lifecycle, locks, metadata, rights, versions
from app.s3.dates import http_date
from app.s3.dispatch import Change, operation
from app.s3.errors import InvalidArgument, InvalidPartNumber, InvalidRequest, ServiceUnavailable
from app.s3.ranges import parse_range
from app.s3.request import S3Request
from app.s3.response import Headers, Response, render
from app.store import objects, reading
from app.store.lifecycle import MARK

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

MAX_PARTS = 10_000


def get_object_now(gateway: Gateway, request: S3Request) -> Response:
    """GetObject of a small cached body. Raises NotNow."""
    version = find_now(gateway, request)
    customer = None
    if SEALED in version.headers or request.sse:
        customer = _check_encryption_now(gateway, request, version)
    if version.storage_class in gateway.archives:
        archives.check_read(gateway, version)
    response, offset, length = _describe(gateway, request, version, _part_now(request, version))
    if response.status in (200, 206):
        try:
            response.body = reading.body_now(gateway.store, version, offset, length, request.timings, customer)
        except NotNow:
            if SEALED not in version.headers and reading.is_record(gateway.store, version, length):
                request.coming = partial(_begin_body, gateway, request, version, response, offset)
            raise
    return response


def _begin_body(gateway: Gateway, request: S3Request, version: Version, response: Response, offset: int) -> Change:
    reads = reading.record(gateway.store, version, offset, response.length or 0, request.timings)

    def answer(done: asyncio.Future[bytes]) -> Response:
        response.body = done.result()
        return rights.decided(request, response)

    return Change(asyncio.ensure_future(reads), answer)


def _check_encryption_now(gateway: Gateway, request: S3Request, version: Version) -> CustomerKey | None:
    if SEALED in version.headers and not gateway.store.keyring.is_fresh:
        raise NotNow
    return encryption.check_read_now(gateway, request, version)


@operation("GET", "key", name="GetObject", action="s3:GetObject", now=get_object_now)
async def get_object(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html"""
    for _ in range(objects.COPY_ATTEMPTS):
        version = await find(gateway, request)
        customer = await encryption.check_read(gateway, request, version)
        archives.check_read(gateway, version)
        response, offset, length = _describe(gateway, request, version, await _part(gateway, request, version))
        if response.status not in (200, 206):
            return response
        try:
            response.body = await reading.body(gateway.store, version, offset, length, request.timings, customer)
        except SourceGone:  # a plain file that others change just now
            continue
        return response
    raise ServiceUnavailable()


def head_object_now(gateway: Gateway, request: S3Request) -> Response:
    """HeadObject. Raises NotNow."""
    version = find_now(gateway, request)
    if SEALED in version.headers or request.sse:
        _check_encryption_now(gateway, request, version)
    response, _, _ = _describe(gateway, request, version, _part_now(request, version))
    return response


@operation("HEAD", "key", name="HeadObject", action="s3:GetObject", now=head_object_now)
async def head_object(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html"""
    version = await find(gateway, request)
    await encryption.check_read(gateway, request, version)
    response, _, _ = _describe(gateway, request, version, await _part(gateway, request, version))
    return response


async def find(gateway: Gateway, request: S3Request) -> Version:
    """The version that a request names. Raises NoSuchKey, NoSuchVersion, MethodNotAllowed for a delete marker, and
    InvalidArgument for an id that no version has."""
    started = perf_counter()
    assert request.key is not None
    version = await gateway.find_for(request, request.bucket_row, request.key, versions.asked(request))
    request.timings["index"] = perf_counter() - started
    return version


def find_now(gateway: Gateway, request: S3Request) -> Version:
    """The current object. Raises NotNow when the request names a version, NoSuchKey."""
    started = perf_counter()
    assert request.key is not None
    if "versionId" in request.query:
        raise NotNow
    version = gateway.index.version_now(request.bucket_row.id, request.key)
    if version is None:
        if request.bucket_row.versioning:
            raise NotNow  # to see whether it was deleted
        rights.check_may_list(request, request.bucket_row, request.key)
        raise NoSuchKey(key=request.key)
    if request.by_object:
        rights.check_version(request, request.bucket_row, version)
    request.timings["index"] = perf_counter() - started
    return version


def _describe(
    gateway: Gateway, request: S3Request, version: Version, part: ObjectPart | None
) -> tuple[Response, int, int]:
    """The answer without its body, and offset and length of the bytes that it sends."""
    head = object_head(version, request.bucket_row)
    if metadata.TAGGED in version.headers and rights.may_read_tags(request, version):
        head += b"x-amz-tagging-count: %d\r\n" % len(metadata.tags(version.headers))
    if LOCKED in version.headers:
        head += locks.lines(request, version)
    if MARK in request.bucket_row.settings and "versionId" not in request.query:
        seconds = gateway.settings.lifecycle_day_seconds
        told = (version.key, version.size, version.modified, version.headers)
        head += render(lifecycle.expiration(request.bucket_row, seconds, *told))
    if request.sse:
        head += render(customer_keys.answered(request))
    if conditions.check_read(request.headers, version.etag, version.modified):
        return Response(304, [field for field in _fields(head) if field[0] not in NOT_ON_304]), 0, 0
    headers: Headers = []
    offset, length, status = 0, version.size, 200
    wanted = request.headers.get("range")
    number = None
    if request.query:
        headers = _overrides(request)
        if headers:
            replaced = [name for name, _ in headers]
            headers = [field for field in _fields(head) if field[0] not in replaced] + headers
            head = b""
        number = request.query.get("partNumber")
    if number is not None:
        if wanted is not None:
            raise InvalidRequest("Cannot specify both Range header and partNumber query parameter")
        offset, length, checksum = _bytes_of_part(version, number, part, headers)
        status = 206
        if checksum and _wants_checksum(request):
            headers += checksum_headers(version._replace(checksum=checksum))
    elif wanted is not None:
        found = parse_range(wanted, version.size)
        if found is not None:
            offset, length = found
            status = 206
    if status == 206 and version.size:
        headers.append((b"content-range", b"bytes %d-%d/%d" % (offset, offset + length - 1, version.size)))
    elif version.checksum and _wants_checksum(request):
        headers += checksum_headers(version)
    return Response(status, headers, b"", length, head), offset, length


NOT_ON_304 = frozenset({b"content-type", b"content-encoding", b"content-language", b"content-disposition"})


def object_head(version: Version, bucket: Bucket) -> bytes:
    """The header lines that an object answers with."""
    modified = http_date(version.modified // 1000)
    head = f'etag: "{version.etag}"\r\nlast-modified: {modified}\r\naccept-ranges: bytes\r\n'.encode()
    head += metadata.rendered(version.headers)
    if version.storage_class != "STANDARD":
        head += b"x-amz-storage-class: %b\r\n" % version.storage_class.encode()
    if bucket.versioning or version.version_id != NULL_VERSION:
        head += b"x-amz-version-id: %b\r\n" % version.version_id.encode()
    return head


def _fields(head: bytes) -> Headers:
    fields = []
    for line in head.split(b"\r\n")[:-1]:
        name, _, value = line.partition(b": ")
        fields.append((name, value))
    return fields


def checksum_headers(version: Version) -> Headers:
    """The stored checksum and its type."""
    name = "x-amz-checksum-" + version.checksum_algorithm.lower()
    return [(name.encode(), version.checksum.encode()), (b"x-amz-checksum-type", version.checksum_type.encode())]


def _overrides(request: S3Request) -> Headers:
    """`response-*` parameters replace what the object answers with. Raises InvalidArgument for control characters."""
    headers: Headers = []
    for parameter, name in metadata.OVERRIDES.items():
        value = request.query.get(parameter)
        if value is None:
            continue
        if any(ord(character) < 32 or ord(character) == 127 for character in value):
            raise InvalidArgument("Header value cannot contain control characters.", ArgumentName=parameter)
        headers.append((name, value.encode("utf-8")))
    return headers


def _wants_checksum(request: S3Request) -> bool:
    return request.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED"


async def _part(gateway: Gateway, request: S3Request, version: Version) -> ObjectPart | None:
    """The part that the request asks for of a multipart object, if it has it."""
    text = request.query.get("partNumber")
    if text is None or not version.parts or not _is_part_number(text):
        return None
    return await gateway.index.object_part(version.body, int(text))


def _part_now(request: S3Request, version: Version) -> ObjectPart | None:
    if version.parts and "partNumber" in request.query:
        raise NotNow
    return None


def _is_part_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= MAX_PARTS


def _bytes_of_part(version: Version, text: str, part: ObjectPart | None, headers: Headers) -> tuple[int, int, str]:
    """Offset, length and checksum of one part. Raises InvalidArgument, InvalidPartNumber."""
    if not _is_part_number(text):
        raise InvalidArgument(
            "Part number must be an integer between 1 and 10000, inclusive",
            ArgumentName="partNumber",
            ArgumentValue=text[:64],
        )
    number = int(text)
    if version.parts:
        headers.append((b"x-amz-mp-parts-count", b"%d" % version.parts))
        if part is not None:
            return part.start, part.size, part.checksum
    elif number == 1:
        return 0, version.size, version.checksum
    raise InvalidPartNumber(PartNumberRequested=number, ActualPartCount=max(version.parts, 1))
