"""ListBuckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.s3 import xml
from app.s3.dispatch import operation
from app.s3.errors import InvalidArgument
from app.s3.parameters import integer, read_token, write_token
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

MAX_BUCKETS = 10_000


@operation("GET", "service", name="ListBuckets", action="s3:ListAllMyBuckets")
async def list_buckets(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListBuckets.html"""
    assert request.account_id is not None
    query = request.query
    limit = integer(request, "max-buckets", MAX_BUCKETS, 1, MAX_BUCKETS)
    prefix = query.get("prefix", "")
    after = read_token(query["continuation-token"]) if "continuation-token" in query else ""
    if len(query.get("bucket-region", "")) > 64:
        raise InvalidArgument(ArgumentName="bucket-region")
    found = []
    if query.get("bucket-region", gateway.region) == gateway.region:
        found = await gateway.index.buckets(request.account_id, prefix, after, limit + 1)
    more = len(found) > limit
    entries = "".join(
        f"<Bucket>{xml.element('Name', bucket.name)}<CreationDate>{xml.timestamp(bucket.created)}</CreationDate>"
        f"{xml.element('BucketRegion', bucket.region)}</Bucket>"
        for bucket in found[:limit]
    )
    owner = xml.owner(request.account_id, request.display_name)
    token = xml.element("ContinuationToken", write_token(found[limit - 1].name)) if more else ""
    content = f"{owner}<Buckets>{entries}</Buckets>{token}{xml.optional('Prefix', prefix)}"
    return Response(200, list(XML), xml.document("ListAllMyBucketsResult", content))
