"""Event contexts of the requests that emit change events."""

from __future__ import annotations

from sluice_s3.app.index.engine.outbox import EventBuilder
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.store.notifications import MARK, EventContext, S3EventBuilder

EVENTS = {
    "PutObject": "ObjectCreated:Put",
    "PostObject": "ObjectCreated:Post",
    "CopyObject": "ObjectCreated:Copy",
    "CompleteMultipartUpload": "ObjectCreated:CompleteMultipartUpload",
    "RenameObject": "ObjectCreated:Copy",
    "PutObjectTagging": "ObjectTagging:Put",
    "DeleteObjectTagging": "ObjectTagging:Delete",
    "PutObjectAcl": "ObjectAcl:Put",
    "RestoreObject": "ObjectRestore:Post",
    "DeleteObject": "",
    "DeleteObjects": "",
}
"""Event names of new versions or headers by operation; deletes have their own. Other operations emit none."""


def event_builder_for(request: S3Request, version: Version | None = None) -> EventBuilder | None:
    """Return the event builder for the changes of a request; None without notifications.

    Its bucket must be known. `version` is the one whose headers change.
    """
    event = EVENTS.get(request.operation)
    if event is None or MARK not in request.bucket_row.settings:
        return None
    return S3EventBuilder(request.bucket_row, event_context(request, event), version)


def event_context(request: S3Request, event: str = "") -> EventContext:
    """Return the event context of a request."""
    who = request.account_id or "Anonymous"
    if request.principal is not None:
        who = f"AWS:{request.principal.user_id}"
    return EventContext(event, who, request.client, request.request_id)
