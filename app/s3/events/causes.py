"""Which requests tell of what they change."""

from __future__ import annotations

from app.index.rows import Version
from app.index.telling import Teller
from app.s3.request import S3Request
from app.store.events import MARK, Cause, Messages

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
"""What a new version, or new headers, are called by operation; deletes say themselves what they are. Of the others none
is told."""


def teller_of(request: S3Request, version: Version | None = None) -> Teller | None:
    """Who tells of what a request changes, None when nobody is to be told. Its bucket must be known.

    `version` is the one that is given other headers.
    """
    event = EVENTS.get(request.operation)
    if event is None or MARK not in request.bucket_row.settings:
        return None
    return Messages(request.bucket_row, cause_of(request, event), version)


def cause_of(request: S3Request, event: str = "") -> Cause:
    """A request as a message tells of it."""
    who = request.account_id or "Anonymous"
    if request.principal is not None:
        who = f"AWS:{request.principal.user_id}"
    return Cause(event, who, request.client, request.request_id)
