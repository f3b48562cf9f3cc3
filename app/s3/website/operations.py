"""Buckets as websites: PutBucketWebsite, GetBucketWebsite, DeleteBucketWebsite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.s3.errors import NoSuchWebsiteConfiguration
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.website import xml as configuration
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


@operation("PUT", "bucket", "website", name="PutBucketWebsite", action="s3:PutBucketWebsite")
async def put_bucket_website(services: Services, request: S3Request) -> Response:
    """Handle PutBucketWebsite (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketWebsite.html)."""
    found = configuration.parse(await read_document(request, configuration.MAX_DOCUMENT))
    value = configuration.to_setting(found)
    await services.index.configure_bucket(request.bucket_row.id, configuration.SETTING, value)
    return Response(200)


@operation("GET", "bucket", "website", name="GetBucketWebsite", action="s3:GetBucketWebsite")
async def get_bucket_website(services: Services, request: S3Request) -> Response:
    """Handle GetBucketWebsite (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketWebsite.html)."""
    found = configuration.website_of(request.bucket_row)
    if found is None:
        raise NoSuchWebsiteConfiguration(BucketName=request.bucket)
    return Response(200, list(XML), configuration.document(found))


@operation("DELETE", "bucket", "website", name="DeleteBucketWebsite", action="s3:DeleteBucketWebsite")
async def delete_bucket_website(services: Services, request: S3Request) -> Response:
    """Handle DeleteBucketWebsite (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketWebsite.html)."""
    await services.index.configure_bucket(request.bucket_row.id, configuration.SETTING, None)
    return Response(204)
