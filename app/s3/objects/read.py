"""GetObject and HeadObject."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.encryption.scheme import SEALED
from sluice_s3.app.errors import SourceGone
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import ObjectPart
from sluice_s3.app.index.object_lock.protection import LOCKED
from sluice_s3.app.index.objects.rows import NULL_VERSION, Version
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import customer_keys
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import InvalidArgument, InvalidPartNumber, InvalidRequest, ServiceUnavailable
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.objects.find import find_version
from sluice_s3.app.s3.restore import archives
from sluice_s3.app.s3.routing import operation
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


@operation("GET", "key", name="GetObject", action="s3:GetObject")
async def get_object(services: Services, request: S3Request) -> Response:
    """Handle GetObject (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html)."""
    for _ in range(objects.MAX_SOURCE_RETRIES):
        version = await find_version(services, request)
        customer = None
        if request.sse or SEALED in version.headers:
            customer = await encryption.check_read(services, request, version)
        if version.storage_class in services.archives:
            archives.require_restored(services, version)
        part = await _find_part(services, request, version) if version.parts else None
        response, offset, length = _build_response(services, request, version, part)
        if response.status not in (200, 206):
            return response
        try:
            response.body = await reading.read_body(services.store, version, offset, length, request.timings, customer)
        except SourceGone:  # a plain file that another program is changing
            continue
        return response
    raise ServiceUnavailable()


@operation("HEAD", "key", name="HeadObject", action="s3:GetObject")
async def head_object(services: Services, request: S3Request) -> Response:
    """Handle HeadObject (https://docs.aws.amazon.com/AmazonS3/latest/API/API_HeadObject.html)."""
    version = await find_version(services, request)
    if request.sse or SEALED in version.headers:
        await encryption.check_read(services, request, version)
    part = await _find_part(services, request, version) if version.parts else None
    response, _, _ = _build_response(services, request, version, part)
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
    return request.headers.get(encryption.CHECKSUMS, "").upper() == "ENABLED"


async def _find_part(services: Services, request: S3Request, version: Version) -> ObjectPart | None:
    """Return the requested part of a multipart object; None without."""
    text = request.query.get("partNumber")
    if text is None or not _is_part_number(text):
        return None
    return await services.index.object_part(version.body, int(text))


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
