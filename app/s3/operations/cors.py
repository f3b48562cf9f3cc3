"""Cross-origin rules: PutBucketCors, GetBucketCors, DeleteBucketCors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.s3 import cors
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import NoSuchCORSConfiguration
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


@operation("PUT", "bucket", "cors", name="PutBucketCors", action="s3:PutBucketCORS")
async def put_bucket_cors(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketCors.html"""
    rules = cors.parse(await document(request, cors.MAX_DOCUMENT))
    await gateway.index.configure_bucket(request.bucket_row.id, cors.SETTING, [list(rule) for rule in rules])
    return Response(200)


@operation("GET", "bucket", "cors", name="GetBucketCors", action="s3:GetBucketCORS")
async def get_bucket_cors(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketCors.html"""
    rules = cors.rules_of(request.bucket_row)
    if not rules:
        raise NoSuchCORSConfiguration(BucketName=request.bucket)
    return Response(200, list(XML), cors.document(rules))


@operation("DELETE", "bucket", "cors", name="DeleteBucketCors", action="s3:PutBucketCORS")
async def delete_bucket_cors(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketCors.html"""
    await gateway.index.configure_bucket(request.bucket_row.id, cors.SETTING, None)
    return Response(204)
