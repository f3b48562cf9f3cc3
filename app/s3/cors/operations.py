"""Cross-origin rules: PutBucketCors, GetBucketCors, DeleteBucketCors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.s3.cors import rules as cors
from sluice_s3.app.s3.errors import NoSuchCORSConfiguration
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


@operation("PUT", "bucket", "cors", name="PutBucketCors", action="s3:PutBucketCORS")
async def put_bucket_cors(services: Services, request: S3Request) -> Response:
    """Handle PutBucketCors (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html)."""
    rules = cors.parse(await read_document(request, cors.MAX_DOCUMENT))
    await services.index.configure_bucket(request.bucket_row.id, cors.SETTING, [list(rule) for rule in rules])
    return Response(200)


@operation("GET", "bucket", "cors", name="GetBucketCors", action="s3:GetBucketCORS")
async def get_bucket_cors(services: Services, request: S3Request) -> Response:
    """Handle GetBucketCors (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketCors.html)."""
    rules = cors.rules_of(request.bucket_row)
    if not rules:
        raise NoSuchCORSConfiguration(BucketName=request.bucket)
    return Response(200, list(XML), cors.document(rules))


@operation("DELETE", "bucket", "cors", name="DeleteBucketCors", action="s3:PutBucketCORS")
async def delete_bucket_cors(services: Services, request: S3Request) -> Response:
    """Handle DeleteBucketCors (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketCors.html)."""
    await services.index.configure_bucket(request.bucket_row.id, cors.SETTING, None)
    return Response(204)
