"""ListBuckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.errors import InvalidArgument
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.query_parameters import decode_continuation_token, encode_continuation_token, parse_integer
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

MAX_BUCKETS = 10_000
PAGE = 1000
"""Buckets read at a time to find those of one region."""


@operation("GET", "service", name="ListBuckets", action="s3:ListAllMyBuckets")
async def list_buckets(services: Services, request: S3Request) -> Response:
    """Handle ListBuckets (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBuckets.html)."""
    assert request.account_id is not None
    query = request.query
    limit = parse_integer(request, "max-buckets", MAX_BUCKETS, 1, MAX_BUCKETS)
    prefix = query.get("prefix", "")
    after = decode_continuation_token(query["continuation-token"]) if "continuation-token" in query else ""
    if len(query.get("bucket-region", "")) > 64:
        raise InvalidArgument(ArgumentName="bucket-region")
    found = await _buckets(services, request, prefix, after, limit + 1)
    more = len(found) > limit
    entries = "".join(
        f"<Bucket>{xml.element('Name', bucket.name)}<CreationDate>{xml.timestamp(bucket.created)}</CreationDate>"
        f"{xml.element('BucketRegion', services.regions.of(bucket))}</Bucket>"
        for bucket in found[:limit]
    )
    owner = xml.owner_element(request.account_id, request.display_name)
    token = xml.element("ContinuationToken", encode_continuation_token(found[limit - 1].name)) if more else ""
    content = f"{owner}<Buckets>{entries}</Buckets>{token}{xml.optional('Prefix', prefix)}"
    return Response(200, list(XML), xml.document("ListAllMyBucketsResult", content))


async def _buckets(services: Services, request: S3Request, prefix: str, after: str, limit: int) -> list[Bucket]:
    """Return up to `limit` buckets of the caller, in the query's region if any."""
    assert request.account_id is not None
    region, required = request.query.get("bucket-region"), services.regions.required
    if region is None or region == required:
        return await services.index.buckets(request.account_id, prefix, after, limit)
    found: list[Bucket] = []
    more = required is None
    while more and len(found) < limit:
        page = await services.index.buckets(request.account_id, prefix, after, PAGE)
        found += [bucket for bucket in page if bucket.region == region]
        more = len(page) == PAGE
        after = page[-1].name if page else after
    return found[:limit]
