"""ListObjects and ListObjectsV2."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import TYPE_CHECKING

from sluice_s3.app.index.objects.rows import Page
from sluice_s3.app.s3.errors import InvalidArgument
from sluice_s3.app.s3.restore import archives
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.query_parameters import (
    decode_continuation_token,
    encode_continuation_token,
    parse_integer,
    wants_url_encoding,
)
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

MAX_KEYS = 1000

Encode = Callable[[str], str]


@operation("GET", "bucket", name="ListObjects", action="s3:ListBucket")
async def list_objects(services: Services, request: S3Request) -> Response:
    """Handle ListObjects, or ListObjectsV2 with `list-type=2`.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjects.html
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
    """
    query = request.query
    kind = query.get("list-type")
    if kind is not None and kind != "2":
        raise InvalidArgument("Invalid List Type specified in Request", ArgumentName="list-type", ArgumentValue=kind)
    encode = xml.url_encode if wants_url_encoding(request) else xml.escape
    limit = parse_integer(request, "max-keys", MAX_KEYS, 0, MAX_KEYS, cap=True)
    if kind is None:
        return await _version_1(services, request, encode, limit)
    return await _version_2(services, request, encode, limit)


async def _version_1(services: Services, request: S3Request, encode: Encode, limit: int) -> Response:
    query = request.query
    marker = query.get("marker", "")
    page = await _page(services, request, marker, limit)
    delimiter = query.get("delimiter", "")
    next_marker = ""
    if page.truncated and delimiter:
        next_marker = f"<NextMarker>{encode(page.last)}</NextMarker>"
    content = (
        f"{render_list_header(request, encode, xml.escape)}<Marker>{encode(marker)}</Marker>{next_marker}"
        f"{_limits(request, limit, page)}"
    )
    entries = _entries(services, request, page, encode, True)
    return Response(200, list(XML), xml.document("ListBucketResult", content, *entries))


async def _version_2(services: Services, request: S3Request, encode: Encode, limit: int) -> Response:
    request.operation = "ListObjectsV2"
    query = request.query
    after = start_after = query.get("start-after", "")
    token = query.get("continuation-token")
    if token:
        after = decode_continuation_token(token)
    page = await _page(services, request, after, limit)
    echoed = ""
    if token is not None:
        echoed += xml.element("ContinuationToken", token)
    if page.truncated:
        echoed += xml.element("NextContinuationToken", encode_continuation_token(page.last))
    if start_after:
        echoed += f"<StartAfter>{encode(start_after)}</StartAfter>"
    with_owner = query.get("fetch-owner", "").lower() == "true"
    content = (
        f"{render_list_header(request, encode, encode)}{echoed}"
        f"<KeyCount>{len(page.rows) + len(page.prefixes)}</KeyCount>"
        f"{_limits(request, limit, page)}"
    )
    entries = _entries(services, request, page, encode, with_owner)
    return Response(200, list(XML), xml.document("ListBucketResult", content, *entries))


async def _page(services: Services, request: S3Request, after: str, limit: int) -> Page:
    started = perf_counter()
    query = request.query
    headers = archives.wants_restore_status(request)
    if limit == 0:
        return Page([], [], False, "")
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    page = await services.index.list_current(request.bucket_row.id, prefix, delimiter, after, limit, headers=headers)
    request.timings["index"] = perf_counter() - started
    return page


def render_list_header(request: S3Request, encode: Encode, encode_prefix: Encode) -> str:
    """Render name, prefix and delimiter. ListObjects' clients do not decode the prefix, so it stays as it is."""
    query = request.query
    delimiter = query.get("delimiter", "")
    return (
        f"{xml.element('Name', request.bucket)}<Prefix>{encode_prefix(query.get('prefix', ''))}</Prefix>"
        + (f"<Delimiter>{encode(delimiter)}</Delimiter>" if delimiter else "")
        + ("<EncodingType>url</EncodingType>" if query.get("encoding-type") else "")
    )


def _limits(request: S3Request, limit: int, page: Page) -> str:
    return f"<MaxKeys>{limit}</MaxKeys><IsTruncated>{'true' if page.truncated else 'false'}</IsTruncated>"


def _entries(services: Services, request: S3Request, page: Page, encode: Encode, with_owner: bool) -> list[str]:
    owner = xml.owner_element(*request.bucket_owner) if with_owner else ""
    rendered = _render_entries(page, encode, owner)
    if page.headers:
        rendered = [
            archives.add_restore_status(*each)
            for each in zip(rendered, repeat("</Contents>"), page.headers, strict=False)
        ]
    return rendered + xml.common_prefixes(page.prefixes, encode)


def _render_entries(page: Page, encode: Encode, owner: str) -> list[str]:
    """Render each entry of a page. Parts common to many entries are rendered once."""
    keys = xml.encode_all([row[0] for row in page.rows], encode)
    parts = []
    last_second = last_class = last_algorithm = last_type = None
    day = after_etag = after_size = ""
    for key, row in zip(keys, page.rows, strict=True):
        _, size, etag, modified, storage_class, algorithm, checksum_type = row
        if modified // 1000 != last_second:
            last_second = modified // 1000
            day = xml.format_second(last_second)
        if storage_class != last_class or algorithm != last_algorithm or checksum_type != last_type:
            last_class, last_algorithm, last_type = storage_class, algorithm, checksum_type
            after_etag = f"&quot;</ETag>{render_checksum(algorithm, checksum_type)}<Size>"
            after_size = f"</Size>{owner}<StorageClass>{storage_class}</StorageClass></Contents>"
        parts.append(
            f"<Contents><Key>{key}</Key><LastModified>{day}{MILLISECONDS[modified % 1000]}{etag}"
            f"{after_etag}{size}{after_size}"
        )
    return parts


MILLISECONDS = tuple(f".{number:03d}Z</LastModified><ETag>&quot;" for number in range(1000))


def render_checksum(algorithm: str, checksum_type: str) -> str:
    """Render the kind of an object's checksum; nothing for an object without one."""
    if not algorithm:
        return ""
    return f"<ChecksumAlgorithm>{algorithm}</ChecksumAlgorithm><ChecksumType>{checksum_type}</ChecksumType>"
