"""GetObject and HeadObject."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from sluice_s3.app.encryption.scheme import SEALED
from sluice_s3.app.encryption.sse_c import CustomerKey
from sluice_s3.app.errors import SourceGone, WouldBlock
from sluice_s3.app.index.object_lock import LOCKED
from sluice_s3.app.index.rows import NULL_VERSION, Bucket, ObjectPart, Version
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import customer_keys
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import InvalidArgument, InvalidPartNumber, InvalidRequest, ServiceUnavailable
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.objects.find import find_version, try_find_version
from sluice_s3.app.s3.restore import archives
from sluice_s3.app.s3.routing import PendingResult, operation
from sluice_s3.app.s3.wire import conditions, metadata
from sluice_s3.app.s3.wire.dates import http_date
from sluice_s3.app.s3.wire.ranges import parse_range
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers, Response, render_headers
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.lifecycle.evaluator import MARK

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

MAX_PARTS = 10_000


def try_get_object(services: Services, request: S3Request) -> Response:
    """Answer GetObject for a small cached body. Raises WouldBlock."""
    version = try_find_version(services, request)
    customer = None
    if SEALED in version.headers or request.sse:
        customer = _try_check_encryption(services, request, version)
    if version.storage_class in services.archives:
        archives.require_restored(services, version)
    response, offset, length = _build_response(services, request, version, _try_part(request, version))
    if response.status in (200, 206):
        try:
            response.body = reading.try_read_body(services.store, version, offset, length, request.timings, customer)
        except WouldBlock:
            if SEALED not in version.headers and reading.is_single_record(services.store, version, length):
                request.start_pending = partial(_start_body, services, request, version, response, offset)
            raise
    return response


def _start_body(
    services: Services, request: S3Request, version: Version, response: Response, offset: int
) -> PendingResult:
    reads = reading.read_record(services.store, version, offset, response.length or 0, request.timings)

    def answer(future: asyncio.Future[bytes]) -> Response:
        response.body = future.result()
        return authorization.ensure_authorized(request, response)

    return PendingResult(asyncio.ensure_future(reads), answer)


def _try_check_encryption(services: Services, request: S3Request, version: Version) -> CustomerKey | None:
    if SEALED in version.headers and not services.store.keyring.is_fresh:
        raise WouldBlock
    return encryption.try_check_read(services, request, version)


@operation("GET", "key", name="GetObject", action="s3:GetObject", try_handler=try_get_object)
async def get_object(services: Services, request: S3Request) -> Response:
    """Handle GetObject (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html)."""
    for _ in range(objects.MAX_SOURCE_RETRIES):
        version = await find_version(services, request)
        customer = await encryption.check_read(services, request, version)
        archives.require_restored(services, version)
        response, offset, length = _build_response(services, request, version, await _part(services, request, version))
        if response.status not in (200, 206):
            return response
        try:
            response.body = await reading.read_body(services.store, version, offset, length, request.timings, customer)
        except SourceGone:  # a plain file that another program is changing
            continue
        return response
    raise ServiceUnavailable()


def try_head_object(services: Services, request: S3Request) -> Response:
    """Answer HeadObject without waiting. Raises WouldBlock."""
    version = try_find_version(services, request)
    if SEALED in version.headers or request.sse:
        _try_check_encryption(services, request, version)
    response, _, _ = _build_response(services, request, version, _try_part(request, version))
    return response


@operation("HEAD", "key", name="HeadObject", action="s3:GetObject", try_handler=try_head_object)
async def head_object(services: Services, request: S3Request) -> Response:
    """Handle HeadObject (https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html)."""
    version = await find_version(services, request)
    await encryption.check_read(services, request, version)
    response, _, _ = _build_response(services, request, version, await _part(services, request, version))
    return response


def _build_response(
    services: Services, request: S3Request, version: Version, part: ObjectPart | None
) -> tuple[Response, int, int]:
    """Return the response without its body, and offset and length of the bytes to send."""
    head = render_object_head(version, request.bucket_row)
    if metadata.TAG_COUNT in version.headers and authorization.may_read_tags(request, version):
        head += b"x-amz-tagging-count: %d\r\n" % len(metadata.tags(version.headers))
    if LOCKED in version.headers:
        head += lock_headers.render_lock_headers(request, version)
    if MARK in request.bucket_row.settings and "versionId" not in request.query:
        seconds = services.settings.lifecycle_day_seconds
        version_fields = (version.key, version.size, version.modified, version.headers)
        head += render_headers(lifecycle.expiration_header(request.bucket_row, seconds, *version_fields))
    if request.sse:
        head += render_headers(customer_keys.echo_headers(request))
    if conditions.check_read(request.headers, version.etag, version.modified):
        return Response(304, [field for field in _parse_rendered(head) if field[0] not in NOT_ON_304]), 0, 0
    headers: Headers = []
    offset, length, status = 0, version.size, 200
    range_header = request.headers.get("range")
    number = None
    if request.query:
        headers = _overrides(request)
        if headers:
            replaced = [name for name, _ in headers]
            headers = [field for field in _parse_rendered(head) if field[0] not in replaced] + headers
            head = b""
        number = request.query.get("partNumber")
    if number is not None:
        if range_header is not None:
            raise InvalidRequest("Cannot specify both Range header and partNumber query parameter")
        offset, length, checksum = _bytes_of_part(version, number, part, headers)
        status = 206
        if checksum and _wants_checksum(request):
            headers += checksum_headers(version._replace(checksum=checksum))
    elif range_header is not None:
        found = parse_range(range_header, version.size)
        if found is not None:
            offset, length = found
            status = 206
    if status == 206 and version.size:
        headers.append((b"content-range", b"bytes %d-%d/%d" % (offset, offset + length - 1, version.size)))
    elif version.checksum and _wants_checksum(request):
        headers += checksum_headers(version)
    return Response(status, headers, b"", length, head), offset, length


NOT_ON_304 = frozenset({b"content-type", b"content-encoding", b"content-language", b"content-disposition"})


def render_object_head(version: Version, bucket: Bucket) -> bytes:
    """Render the response headers of an object."""
    modified = http_date(version.modified // 1000)
    head = f'etag: "{version.etag}"\r\nlast-modified: {modified}\r\naccept-ranges: bytes\r\n'.encode()
    head += metadata.render_object_headers(version.headers)
    if version.storage_class != "STANDARD":
        head += b"x-amz-storage-class: %b\r\n" % version.storage_class.encode()
    if bucket.versioning or version.version_id != NULL_VERSION:
        head += b"x-amz-version-id: %b\r\n" % version.version_id.encode()
    return head


def _parse_rendered(head: bytes) -> Headers:
    fields = []
    for line in head.split(b"\r\n")[:-1]:
        name, _, value = line.partition(b": ")
        fields.append((name, value))
    return fields


def checksum_headers(version: Version) -> Headers:
    """Return the stored checksum and its type."""
    name = "x-amz-checksum-" + version.checksum_algorithm.lower()
    return [(name.encode(), version.checksum.encode()), (b"x-amz-checksum-type", version.checksum_type.encode())]


def _overrides(request: S3Request) -> Headers:
    """Return the headers of `response-*` parameters. Raises InvalidArgument for control characters."""
    headers: Headers = []
    for parameter, name in metadata.RESPONSE_OVERRIDES.items():
        value = request.query.get(parameter)
        if value is None:
            continue
        if any(ord(character) < 32 or ord(character) == 127 for character in value):
            raise InvalidArgument("Header value cannot contain control characters.", ArgumentName=parameter)
        headers.append((name, value.encode("utf-8")))
    return headers


def _wants_checksum(request: S3Request) -> bool:
    return request.headers.get("x-amz-checksum-mode", "").upper() == "ENABLED"


async def _part(services: Services, request: S3Request, version: Version) -> ObjectPart | None:
    """Return the requested part of a multipart object; None without."""
    text = request.query.get("partNumber")
    if text is None or not version.parts or not _is_part_number(text):
        return None
    return await services.index.object_part(version.body, int(text))


def _try_part(request: S3Request, version: Version) -> ObjectPart | None:
    if version.parts and "partNumber" in request.query:
        raise WouldBlock
    return None


def _is_part_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= MAX_PARTS


def _bytes_of_part(version: Version, text: str, part: ObjectPart | None, headers: Headers) -> tuple[int, int, str]:
    """Return offset, length and checksum of one part. Raises InvalidArgument, InvalidPartNumber."""
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
