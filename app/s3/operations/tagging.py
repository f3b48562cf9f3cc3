"""Tags of objects (and of their versions) and of buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from app.s3 import metadata, rights, tags, versions
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import NoSuchTagSet
from app.s3.operations.object_read import find
from app.s3.operations.renewing import renew
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

SETTING = "tags"
"""Name of the bucket's setting."""


@operation("GET", "key", "tagging", name="GetObjectTagging", action="s3:GetObjectTagging")
async def get_object_tagging(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectTagging.html"""
    version = await find(gateway, request)
    found = tags.document(metadata.tags(version.headers))
    return Response(200, [*XML, *versions.of(request.bucket_row, version.version_id)], found)


@operation("PUT", "key", "tagging", name="PutObjectTagging", action="s3:PutObjectTagging", each=True)
async def put_object_tagging(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectTagging.html"""
    asked = versions.asked(request)
    given = request.tags = tags.of_document(await document(request, tags.MAX_DOCUMENT), tags.MAX_OBJECT)
    if request.undecided:  # policies can speak of the tags that are given
        rights.check_key(request, "s3:PutObjectTagging", request.key or "", asked)
    version = await renew(gateway, request, lambda old: metadata.renewed(old.headers, tags=given))
    return Response(200, versions.of(request.bucket_row, version.version_id))


@operation("DELETE", "key", "tagging", name="DeleteObjectTagging", action="s3:DeleteObjectTagging")
async def delete_object_tagging(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjectTagging.html"""
    version = await renew(gateway, request, lambda old: metadata.renewed(old.headers, tags={}))
    return Response(204, versions.of(request.bucket_row, version.version_id))


@operation("GET", "bucket", "tagging", name="GetBucketTagging", action="s3:GetBucketTagging")
async def get_bucket_tagging(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketTagging.html"""
    found = orjson.loads(request.bucket_row.settings or "{}").get(SETTING)
    if not found:
        raise NoSuchTagSet(BucketName=request.bucket)
    return Response(200, list(XML), tags.document(found))


@operation("PUT", "bucket", "tagging", name="PutBucketTagging", action="s3:PutBucketTagging")
async def put_bucket_tagging(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketTagging.html"""
    given = tags.of_document(await document(request, tags.MAX_DOCUMENT), tags.MAX_BUCKET)
    await gateway.index.configure_bucket(request.bucket_row.id, SETTING, given or None)
    return Response(204)


@operation("DELETE", "bucket", "tagging", name="DeleteBucketTagging", action="s3:PutBucketTagging")
async def delete_bucket_tagging(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketTagging.html"""
    await gateway.index.configure_bucket(request.bucket_row.id, SETTING, None)
    return Response(204)
