"""Tags of objects (and of their versions) and of buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.errors import NoSuchTagSet
from sluice_s3.app.s3.objects.find import find_version
from sluice_s3.app.s3.objects.update_headers import update_version_headers
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.tagging import tags
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import metadata
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

SETTING = "tags"
"""Name of the bucket's setting."""


@operation("GET", "key", "tagging", name="GetObjectTagging", action="s3:GetObjectTagging")
async def get_object_tagging(services: Services, request: S3Request) -> Response:
    """Handle GetObjectTagging (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectTagging.html)."""
    version = await find_version(services, request)
    found = tags.render_xml(metadata.tags(version.headers))
    return Response(200, [*XML, *version_headers.version_header(request.bucket_row, version.version_id)], found)


@operation("PUT", "key", "tagging", name="PutObjectTagging", action="s3:PutObjectTagging", authorized_per_object=True)
async def put_object_tagging(services: Services, request: S3Request) -> Response:
    """Handle PutObjectTagging (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectTagging.html)."""
    version_id = version_headers.requested_version_id(request)
    object_tags = request.tags = tags.parse_xml(await read_document(request, tags.MAX_DOCUMENT), tags.MAX_OBJECT)
    if request.authorization_pending:  # policies can have conditions on the new tags
        authorization.authorize_object_in_body(request, "s3:PutObjectTagging", request.key or "", version_id)
    version = await update_version_headers(
        services, request, lambda old: metadata.repack(old.headers, tags=object_tags)
    )
    return Response(200, version_headers.version_header(request.bucket_row, version.version_id))


@operation("DELETE", "key", "tagging", name="DeleteObjectTagging", action="s3:DeleteObjectTagging")
async def delete_object_tagging(services: Services, request: S3Request) -> Response:
    """Handle DeleteObjectTagging (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjectTagging.html)."""
    version = await update_version_headers(services, request, lambda old: metadata.repack(old.headers, tags={}))
    return Response(204, version_headers.version_header(request.bucket_row, version.version_id))


@operation("GET", "bucket", "tagging", name="GetBucketTagging", action="s3:GetBucketTagging")
async def get_bucket_tagging(services: Services, request: S3Request) -> Response:
    """Handle GetBucketTagging (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketTagging.html)."""
    found = orjson.loads(request.bucket_row.settings or "{}").get(SETTING)
    if not found:
        raise NoSuchTagSet(BucketName=request.bucket)
    return Response(200, list(XML), tags.render_xml(found))


@operation("PUT", "bucket", "tagging", name="PutBucketTagging", action="s3:PutBucketTagging")
async def put_bucket_tagging(services: Services, request: S3Request) -> Response:
    """Handle PutBucketTagging (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketTagging.html)."""
    bucket_tags = tags.parse_xml(await read_document(request, tags.MAX_DOCUMENT), tags.MAX_BUCKET)
    await services.index.configure_bucket(request.bucket_row.id, SETTING, bucket_tags or None)
    return Response(204)


@operation("DELETE", "bucket", "tagging", name="DeleteBucketTagging", action="s3:PutBucketTagging")
async def delete_bucket_tagging(services: Services, request: S3Request) -> Response:
    """Handle DeleteBucketTagging (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketTagging.html)."""
    await services.index.configure_bucket(request.bucket_row.id, SETTING, None)
    return Response(204)
