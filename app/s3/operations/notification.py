"""Notifications of changes: PutBucketNotificationConfiguration, GetBucketNotificationConfiguration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.index.rows import Bucket
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import NotImplemented
from app.s3.events import configuration
from app.s3.events.causes import cause_of
from app.s3.events.configuration import Targets
from app.s3.request import S3Request
from app.s3.response import XML, Response
from app.store.events import SETTING, greeting, rules_of

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

SKIP = "x-amz-skip-destination-validation"


@operation(
    "PUT", "bucket", "notification", name="PutBucketNotificationConfiguration", action="s3:PutBucketNotification"
)
async def put_bucket_notification(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html"""
    bucket: Bucket = request.bucket_row
    if gateway.tree_of(bucket) is not None:
        raise NotImplemented()
    also = configuration.OF_CLASSES if gateway.store.classes else frozenset[str]()
    if gateway.archives:
        also |= configuration.OF_ARCHIVES
    targets = Targets(gateway.settings.notify_targets, gateway.region, also)
    rules = configuration.parse(await document(request), targets)
    told = {} if request.headers.get(SKIP, "").lower() == "true" else {rule.target: rule for rule in rules}
    messages = [greeting(bucket, rule, cause_of(request)) for rule in told.values()]
    value = [list(rule) for rule in rules] or None
    await gateway.index.configure_messages(bucket.id, SETTING, value, messages)
    return Response(200)


@operation(
    "GET", "bucket", "notification", name="GetBucketNotificationConfiguration", action="s3:GetBucketNotification"
)
async def get_bucket_notification(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketNotificationConfiguration.html"""
    return Response(200, list(XML), configuration.document(rules_of(request.bucket_row)))
