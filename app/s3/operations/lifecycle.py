"""Lifecycle rules: PutBucketLifecycleConfiguration, GetBucketLifecycleConfiguration, DeleteBucketLifecycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.s3 import lifecycle
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import NoSuchLifecycleConfiguration, NotImplemented
from app.s3.request import S3Request
from app.s3.response import XML, Response
from app.store.lifecycle import SETTING, rules_of, to_setting

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

PUT = "s3:PutLifecycleConfiguration"
GET = "s3:GetLifecycleConfiguration"


@operation("PUT", "bucket", "lifecycle", name="PutBucketLifecycleConfiguration", action=PUT)
async def put_bucket_lifecycle_configuration(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLifecycleConfiguration.html"""
    minimum, classes = request.headers.get(lifecycle.MINIMUM), gateway.store.classes
    rules = lifecycle.parse(await document(request), minimum, classes)
    if gateway.tree_of(request.bucket_row) is not None:
        raise NotImplemented()  # others may change plain files
    await gateway.index.configure_bucket(request.bucket_row.id, SETTING, to_setting(rules))
    return Response(200, [(lifecycle.MINIMUM.encode(), rules.minimum.encode())])


@operation("GET", "bucket", "lifecycle", name="GetBucketLifecycleConfiguration", action=GET)
async def get_bucket_lifecycle_configuration(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLifecycleConfiguration.html"""
    rules = rules_of(request.bucket_row)
    if not rules.rules:
        raise NoSuchLifecycleConfiguration(BucketName=request.bucket)
    headers = [*XML, (lifecycle.MINIMUM.encode(), rules.minimum.encode())]
    return Response(200, headers, lifecycle.document(rules))


@operation("DELETE", "bucket", "lifecycle", name="DeleteBucketLifecycle", action=PUT)
async def delete_bucket_lifecycle(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketLifecycle.html"""
    await gateway.index.configure_bucket(request.bucket_row.id, SETTING, None)
    return Response(204)
