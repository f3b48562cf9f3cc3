"""ListObjects and ListObjectsV2."""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from time import perf_counter
from typing import TYPE_CHECKING

from app.index.rows import Page
from app.s3 import archives, xml
from app.s3.dispatch import operation
from app.s3.errors import InvalidArgument
from app.s3.parameters import integer, read_token, url_encoding, write_token
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

MAX_KEYS = 1000

Encode = Callable[[str], str]


@operation("GET", "bucket", name="ListObjects", action="s3:ListBucket")
async def list_objects(gateway: Gateway, request: S3Request) -> Response:
    """ListObjects, or ListObjectsV2 with `list-type=2`.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjects.html
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
    """
    query = request.query
    kind = query.get("list-type")
    if kind is not None and kind != "2":
        raise InvalidArgument("Invalid List Type specified in Request", ArgumentName="list-type", ArgumentValue=kind)
    encode = xml.url_encode if url_encoding(request) else xml.escape
    limit = integer(request, "max-keys", MAX_KEYS, 0, MAX_KEYS, cap=True)
    if kind is None:
        return await _version_1(gateway, request, encode, limit)
    return await _version_2(gateway, request, encode, limit)


async def _version_1(gateway: Gateway, request: S3Request, encode: Encode, limit: int) -> Response:
    query = request.query
    marker = query.get("marker", "")
    page = await _page(gateway, request, marker, limit)
    delimiter = query.get("delimiter", "")
    next_marker = ""
    if page.truncated and delimiter:
        next_marker = f"<NextMarker>{encode(page.last)}</NextMarker>"
    content = (
        f"{opening(request, encode, xml.escape)}<Marker>{encode(marker)}</Marker>{next_marker}"
        f"{_limits(request, limit, page)}{_entries(gateway, request, page, encode, True)}"
    )
    return Response(200, list(XML), xml.document("ListBucketResult", content))


async def _version_2(gateway: Gateway, request: S3Request, encode: Encode, limit: int) -> Response:
    request.operation = "ListObjectsV2"
    query = request.query
    after = start_after = query.get("start-after", "")
    token = query.get("continuation-token")
    if token:
        after = read_token(token)
    page = await _page(gateway, request, after, limit)
    echoed = ""
    if token is not None:
        echoed += xml.element("ContinuationToken", token)
    if page.truncated:
        echoed += xml.element("NextContinuationToken", write_token(page.last))
    if start_after:
        echoed += f"<StartAfter>{encode(start_after)}</StartAfter>"
    with_owner = query.get("fetch-owner", "").lower() == "true"
    content = (
        f"{opening(request, encode, encode)}{echoed}<KeyCount>{len(page.rows) + len(page.prefixes)}</KeyCount>"
        f"{_limits(request, limit, page)}{_entries(gateway, request, page, encode, with_owner)}"
    )
    return Response(200, list(XML), xml.document("ListBucketResult", content))


async def _page(gateway: Gateway, request: S3Request, after: str, limit: int) -> Page:
    started = perf_counter()
    query = request.query
    headers = archives.asks_status(request)
    if limit == 0:
        return Page([], [], False, "")
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    page = await gateway.index.list_current(request.bucket_row.id, prefix, delimiter, after, limit, headers=headers)
    request.timings["index"] = perf_counter() - started
    return page


def opening(request: S3Request, encode: Encode, encode_prefix: Encode) -> str:
    """Name, prefix and delimiter. ListObjects gives the prefix as it is: its clients do not decode that one."""
    query = request.query
    delimiter = query.get("delimiter", "")
    return (
        f"{xml.element('Name', request.bucket)}<Prefix>{encode_prefix(query.get('prefix', ''))}</Prefix>"
        + (f"<Delimiter>{encode(delimiter)}</Delimiter>" if delimiter else "")
        + ("<EncodingType>url</EncodingType>" if query.get("encoding-type") else "")
    )


def _limits(request: S3Request, limit: int, page: Page) -> str:
    return f"<MaxKeys>{limit}</MaxKeys><IsTruncated>{'true' if page.truncated else 'false'}</IsTruncated>"


def _entries(gateway: Gateway, request: S3Request, page: Page, encode: Encode, with_owner: bool) -> str:
    owner = xml.owner(*request.bucket_owner) if with_owner else ""
    shown = _shown(page, encode, owner)
    if page.headers:
        shown = [archives.with_status(*each) for each in zip(shown, repeat("</Contents>"), page.headers, strict=False)]
    return "".join(shown) + _prefixes(page, encode)


def _prefixes(page: Page, encode: Encode) -> str:
    return "".join([f"<CommonPrefixes><Prefix>{encode(prefix)}</Prefix></CommonPrefixes>" for prefix in page.prefixes])


def _shown(page: Page, encode: Encode, owner: str) -> list[str]:
    """Each entry of a page. What is the same for many of them is made once."""
    rows = page.rows
    keys = [row[0] for row in rows]
    if not xml.plain(keys, encode):
        keys = list(map(encode, keys))
    parts = []
    second = -1
    day = checksum = tail = ""
    kind = None
    for key, (_, size, etag, modified, storage_class, algorithm, checksum_type) in zip(keys, rows, strict=True):
        if modified // 1000 != second:
            second = modified // 1000
            day = xml.second(second)
        if kind is None or kind[0] != storage_class or kind[1] != algorithm or kind[2] != checksum_type:
            kind = storage_class, algorithm, checksum_type
            checksum, tail = _around_size(*kind)
            tail = f"</Size>{owner}{tail}</Contents>"
        parts.append(
            f"<Contents><Key>{key}</Key><LastModified>{day}{MILLISECONDS[modified % 1000]}{etag}&quot;</ETag>"
            f"{checksum}<Size>{size}{tail}"
        )
    return parts


MILLISECONDS = tuple(f".{number:03d}Z</LastModified><ETag>&quot;" for number in range(1000))


def _around_size(storage_class: str, algorithm: str, checksum_type: str) -> tuple[str, str]:
    checksum = ""
    if algorithm:
        checksum = f"<ChecksumAlgorithm>{algorithm}</ChecksumAlgorithm><ChecksumType>{checksum_type}</ChecksumType>"
    return checksum, f"<StorageClass>{storage_class}</StorageClass>"
