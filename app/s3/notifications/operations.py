"""Notifications of changes: PutBucketNotificationConfiguration, GetBucketNotificationConfiguration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.errors import NotImplemented
from sluice_s3.app.s3.notifications import xml as configuration
from sluice_s3.app.s3.notifications.event_context import event_context
from sluice_s3.app.s3.notifications.xml import Targets
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response
from sluice_s3.app.store.notifications import SETTING, rules_of, test_event

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

SKIP = "x-amz-skip-destination-validation"


@operation(
    "PUT", "bucket", "notification", name="PutBucketNotificationConfiguration", action="s3:PutBucketNotification"
)
async def put_bucket_notification(services: Services, request: S3Request) -> Response:
    """Handle PutBucketNotificationConfiguration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html
    """
    bucket: Bucket = request.bucket_row
    if services.tree_of(bucket) is not None:
        raise NotImplemented()
    also = configuration.OF_CLASSES if services.store.classes else frozenset[str]()
    if services.archives:
        also |= configuration.OF_ARCHIVES
    kinds = {name: target.kind for name, target in services.settings.notify_targets.items()}
    targets = Targets(kinds, services.regions.required, also)
    rules = configuration.parse_configuration(await read_document(request), targets)
    notified = {} if request.headers.get(SKIP, "").lower() == "true" else {rule.target: rule for rule in rules}
    messages = [test_event(bucket, rule, event_context(request)) for rule in notified.values()]
    value = [list(rule) for rule in rules] or None
    await services.index.configure_messages(bucket.id, SETTING, value, messages)
    return Response(200)


@operation(
    "GET", "bucket", "notification", name="GetBucketNotificationConfiguration", action="s3:GetBucketNotification"
)
async def get_bucket_notification(services: Services, request: S3Request) -> Response:
    """Handle GetBucketNotificationConfiguration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketNotificationConfiguration.html
    """
    return Response(200, list(XML), configuration.render_configuration(rules_of(request.bucket_row)))
