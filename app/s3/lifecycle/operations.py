"""Lifecycle rules: PutBucketLifecycleConfiguration, GetBucketLifecycleConfiguration, DeleteBucketLifecycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.s3.errors import NoSuchLifecycleConfiguration, NotImplemented
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response
from sluice_s3.app.store.lifecycle.evaluator import SETTING, rules_of, to_setting

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

PUT = "s3:PutLifecycleConfiguration"
GET = "s3:GetLifecycleConfiguration"


@operation("PUT", "bucket", "lifecycle", name="PutBucketLifecycleConfiguration", action=PUT)
async def put_bucket_lifecycle_configuration(services: Services, request: S3Request) -> Response:
    """Handle PutBucketLifecycleConfiguration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLifecycleConfiguration.html
    """
    minimum, classes = request.headers.get(lifecycle.MINIMUM), services.store.classes
    rules = lifecycle.parse_rules(await read_document(request), minimum, classes)
    if services.tree_of(request.bucket_row) is not None:
        raise NotImplemented()  # other programs may change plain files
    await services.index.configure_bucket(request.bucket_row.id, SETTING, to_setting(rules))
    return Response(200, [(lifecycle.MINIMUM.encode(), rules.minimum.encode())])


@operation("GET", "bucket", "lifecycle", name="GetBucketLifecycleConfiguration", action=GET)
async def get_bucket_lifecycle_configuration(services: Services, request: S3Request) -> Response:
    """Handle GetBucketLifecycleConfiguration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLifecycleConfiguration.html
    """
    rules = rules_of(request.bucket_row)
    if not rules.rules:
        raise NoSuchLifecycleConfiguration(BucketName=request.bucket)
    headers = [*XML, (lifecycle.MINIMUM.encode(), rules.minimum.encode())]
    return Response(200, headers, lifecycle.render_rules(rules))


@operation("DELETE", "bucket", "lifecycle", name="DeleteBucketLifecycle", action=PUT)
async def delete_bucket_lifecycle(services: Services, request: S3Request) -> Response:
    """Handle DeleteBucketLifecycle (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketLifecycle.html)."""
    await services.index.configure_bucket(request.bucket_row.id, SETTING, None)
    return Response(204)
