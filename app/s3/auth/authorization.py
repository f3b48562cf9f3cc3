"""Authorization of requests by `app.access.authorize` (law 7).

A verdict that depends on the object's own ACL stays open in the request until the object is found. A response whose
permission is still open is never sent: see `require_authorized`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING

from sluice_s3.app.access.account import account_number
from sluice_s3.app.access.authorize import (
    Verdict,
    authorize,
    authorize_key,
    authorize_object,
    is_payer,
    may_while_writing,
)
from sluice_s3.app.access.policy import ALLOWED, Work
from sluice_s3.app.access.policy.condition_keys import ON_TAGGED
from sluice_s3.app.errors import NoSuchKey, NoSuchVersion
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import Upload
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.auth.condition_context import TAGS_NOT_LOADED, ConditionContext
from sluice_s3.app.s3.errors import AccessDenied
from sluice_s3.app.s3.routing import Operation, action_for_version
from sluice_s3.app.s3.wire import metadata
from sluice_s3.app.s3.wire.request import S3Request

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

logger = logging.getLogger("sluice.s3")

BATCH_ALLOWED = 32 * ALLOWED
"""Steps of the policies for all objects that a request names: less than a second."""
STRETCH_SECONDS = 0.005
"""Seconds that decisions for many objects may keep the event loop at a stretch."""


def authorize_request(request: S3Request, operation: Operation, bucket: Bucket | None, region: str = "") -> None:
    """Raise AccessDenied unless the caller may do its request.

    Permissions that depend on objects stay open. `region` is the requested one where there is no bucket.
    """
    request.authorization_pending, request.pending_permissions = False, ()
    if operation.anonymous_error and request.account_id is None:
        raise AccessDenied(operation.anonymous_error)
    if bucket is None:
        request.region = region
    if operation.signed_by_form or (
        operation.authorized_per_object and bucket is not None and (bucket.settings or request.principal is not None)
    ):
        request.authorization_pending = True
    else:
        version_id = request.query.get("versionId") if request.query else None
        action = operation.action if version_id is None else action_for_version(operation.action, version_id)
        require_action(request, action, bucket, request.key, version_id)
    if bucket is not None:
        _check_owner(bucket, request.headers.get("x-amz-expected-bucket-owner"))


def authorize_form(request: S3Request, action: str) -> None:
    """Authorize an upload by form, now that its signer and key are known. Raises AccessDenied."""
    request.authorization_pending = False
    require_action(request, action, request.bucket_row, request.key)
    _check_owner(request.bucket_row, request.headers.get("x-amz-expected-bucket-owner"))


def require_action(
    request: S3Request,
    action: str,
    bucket: Bucket | None,
    key: str | None = None,
    version_id: str | None = None,
) -> None:
    """Raise AccessDenied unless the caller may do `action`.

    If it depends on the object's ACL, no response is sent until `authorize_found_version` has run.
    """
    if (bucket is not None and bucket.settings) or request.principal is not None:
        if bucket is not None:
            _check_payer(request, bucket)
        context = ConditionContext(
            request, bucket, version_id=version_id, tags=TAGS_NOT_LOADED if action in ON_TAGGED else None
        )
        verdict = _decide(request, action, bucket, key, context)
        if verdict is not Verdict.YES:
            _defer(request, action, verdict, context)
    elif authorize(request.account_id, action, bucket) is not Verdict.YES:
        raise AccessDenied()


def policy_work_of(request: S3Request) -> Work:
    """Return the budget for all policy decisions of a request between two pauses."""
    work: Work | None = request.work
    if work is None:
        work = request.work = Work()
    return work


class Batch:
    """Decisions for many objects of one request. Bounded for each and in total, with pauses between them."""

    def __init__(self, request: S3Request) -> None:
        self._request = request
        self._left = BATCH_ALLOWED
        self._granted = ALLOWED
        self._paused = 0.0  # pause before the first object too: the document that names them took long to read

    async def start_object(self) -> None:
        """Set the budget for the next object. Yields to other tasks when the last pause is long ago."""
        work = self._request.work
        if work is not None:
            self._left -= self._granted - max(work.left, 0)
        self._granted = max(min(ALLOWED, self._left), 0)
        self._request.work = Work(self._granted)
        if time.monotonic() - self._paused > STRETCH_SECONDS:
            await asyncio.sleep(0)
            self._paused = time.monotonic()


def _decide(
    request: S3Request, action: str, bucket: Bucket | None, key: str | None, context: ConditionContext
) -> Verdict:
    return authorize(
        request.account_id,
        action,
        bucket,
        key,
        context.find_values,
        principal=request.principal,
        name=request.bucket,
        work=policy_work_of(request),
    )


def authorize_location(request: S3Request) -> None:
    """Authorize CreateBucket again for users and sessions, now that the location is known.

    Raises AccessDenied.
    """
    if request.principal is not None:
        request.authorization_pending, request.pending_permissions = False, ()
        require_action(request, "s3:CreateBucket", None)


def authorize_copy_source(request: S3Request, bucket: Bucket, key: str, version_id: str | None) -> None:
    """Raise AccessDenied unless the caller may read the source of a copy.

    Leaves open what `require_action` leaves open.
    """
    _check_payer(request, bucket)
    context = ConditionContext(request, bucket, copying_from=True, version_id=version_id, tags=TAGS_NOT_LOADED)
    action = action_for_version("s3:GetObject", version_id)
    verdict = _decide(request, action, bucket, key, context)
    if verdict is not Verdict.YES:
        _defer(request, action, verdict, context)
    _check_owner(bucket, request.headers.get("x-amz-source-expected-bucket-owner"))


def authorize_object_in_body(request: S3Request, action: str, key: str, version_id: str | None) -> None:
    """Raise AccessDenied unless the caller may do `action` to an object that the body names."""
    request.authorization_pending = False
    require_action(request, action_for_version(action, version_id), request.bucket_row, key, version_id)


def authorize_kms_key(request: S3Request, action: str, key: str, *, of_aws: bool) -> None:
    """Authorize the use of a key of the key ring, named by its ARN. Raises AccessDenied."""
    principal = request.principal
    if principal is None and request.account_id is not None:
        return
    context = ConditionContext(request, request.bucket_row)
    work = policy_work_of(request)
    if not authorize_key(request.account_id, principal, action, key, context.find_kms_values, of_aws=of_aws, work=work):
        who = "anonymous" if principal is None else principal.caller.arn
        raise AccessDenied(f"User: {who} is not authorized to perform: {action} on resource: {key}")


def authorize_acl(request: S3Request) -> None:
    """Authorize the ACL of an object that is being written. Raises AccessDenied."""
    _check_while_writing(request, "s3:PutObjectAcl")


def authorize_tags(request: S3Request) -> None:
    """Authorize its tags."""
    _check_while_writing(request, "s3:PutObjectTagging")


def authorize_time(request: S3Request) -> None:
    """Authorize its time of the new version, as of a replica ("Service Authorization Reference")."""
    _check_while_writing(request, "s3:ReplicateDelete" if request.method == "DELETE" else "s3:ReplicateObject")


def authorize_retention(request: S3Request) -> None:
    """Authorize its retention ("How S3 Object Lock works", Amazon S3 User Guide)."""
    _check_while_writing(request, "s3:PutObjectRetention")


def authorize_legal_hold(request: S3Request) -> None:
    """Authorize its legal hold."""
    _check_while_writing(request, "s3:PutObjectLegalHold")


def may_bypass_retention(request: S3Request, key: str, version_id: str | None) -> bool:
    """Return whether the caller may bypass a retention of mode GOVERNANCE."""
    return _may(
        request,
        "s3:BypassGovernanceRetention",
        key,
        ConditionContext(request, request.bucket_row, version_id=version_id),
    )


def may_disclose(request: S3Request, action: str, version: Version) -> bool:
    """Return whether a response may contain what `action` reads of a version."""
    return _may(
        request,
        action,
        version.key,
        ConditionContext(request, request.bucket_row, version_id=_requested_version(request)),
    )


def _may(request: S3Request, action: str, key: str, context: ConditionContext) -> bool:
    return _decide(request, action, request.bucket_row, key, context) is Verdict.YES


def _requested_version(request: S3Request) -> str | None:
    return request.query.get("versionId") if request.query else None


def _check_while_writing(request: S3Request, action: str) -> None:
    bucket = request.bucket_row
    values, work = ConditionContext(request, bucket).find_values, policy_work_of(request)
    if not may_while_writing(request.account_id, action, bucket, request.key or "", values, request.principal, work):
        raise AccessDenied()


def authorize_source_tags(request: S3Request, bucket: Bucket, version: Version, version_id: str | None) -> None:
    """Authorize the tags of a copy's source, which the copy gets. Raises AccessDenied."""
    tags = metadata.tags(version.headers)
    context = ConditionContext(request, bucket, copying_from=True, version_id=version_id, tags=tags)
    action = action_for_version("s3:GetObjectTagging", version_id)
    if _decide(request, action, bucket, version.key, context) is not Verdict.YES:
        raise AccessDenied()


def may_read_tags(request: S3Request, version: Version) -> bool:
    """Return whether a response may contain the number of a version's tags."""
    version_id = _requested_version(request)
    context = ConditionContext(request, request.bucket_row, version_id=version_id, tags=metadata.tags(version.headers))
    return _may(request, action_for_version("s3:GetObjectTagging", version_id), version.key, context)


def authorize_found_version(request: S3Request, bucket: Bucket, version: Version) -> None:
    """Resolve open verdicts by an object's ACL and tags. Raises AccessDenied."""
    if not request.pending_permissions:
        return
    for action, verdict, context in request.pending_permissions:
        _check_found(request, action, verdict, context, bucket, version)
    request.authorization_pending = False


def _check_found(
    request: S3Request, action: str, verdict: Verdict, context: ConditionContext, bucket: Bucket, version: Version
) -> None:
    if verdict is Verdict.BY_TAGS:
        context.tags = metadata.tags(version.headers)
        verdict = _decide(request, action, bucket, version.key, context)
    grants = metadata.grants(version.headers)
    if not authorize_object(request.account_id, action, bucket, version.owner_id, grants, verdict):
        raise AccessDenied()


async def authorize_precondition(
    services: Services,
    request: S3Request,
    key: str | None = None,
    version_id: str | None = None,
    *,
    upload_headers: str = "",
) -> None:
    """Authorize reading the object that a conditional write or delete compares.

    Needed only if the outcome reveals the object's state. `upload_headers` are the headers of the upload that becomes
    the object. Raises AccessDenied ("How to prevent object overwrites with conditional writes" and
    "How to perform conditional deletes", Amazon S3 User Guide).
    """
    bucket, key = request.bucket_row, request.key or "" if key is None else key
    open_right = _action_to_compare(request, key, version_id, upload_headers)
    if open_right is not None:
        try:
            version = await services.find(bucket, key, version_id)
        except (NoSuchKey, NoSuchVersion):
            return  # then there is nothing to reveal
        _check_found(request, *open_right, bucket, version)


def authorize_append(request: S3Request, found: Version | None) -> None:
    """Authorize reading the object of an append, since the response holds its size and checksum.

    `found` is None if there is no object. Raises AccessDenied.
    """
    open_right = _action_to_compare(request, request.key or "", None, "")
    if open_right is not None and found is not None:
        _check_found(request, *open_right, request.bucket_row, found)


def _action_to_compare(
    request: S3Request, key: str, version_id: str | None, upload_headers: str
) -> tuple[str, Verdict, ConditionContext] | None:
    """Return the part of the permission to read that depends on the object.

    None if no part does. Raises AccessDenied.
    """
    bucket = request.bucket_row
    if not bucket.settings and request.principal is None:
        return None
    context = ConditionContext(request, bucket, version_id=version_id, tags=TAGS_NOT_LOADED)
    context.upload = upload_headers
    action = action_for_version("s3:GetObject", version_id)
    verdict = _decide(request, action, bucket, key, context)
    if verdict is Verdict.NO:
        raise AccessDenied()
    return None if verdict is Verdict.YES else (action, verdict, context)


def authorize_upload(request: S3Request, upload: Upload | None) -> None:
    """Resolve open verdicts on an upload, now that it is known; None: there is none.

    Its initiator may abort it; policies on its parts may depend on its encryption. Raises AccessDenied.
    """
    if not request.pending_permissions:
        return
    pending = []
    for action, verdict, context in request.pending_permissions:
        if not context.is_target:
            pending.append((action, verdict, context))
            continue
        if verdict is Verdict.BY_TAGS:
            context.upload = "" if upload is None else upload.headers
            verdict = _decide(request, action, request.bucket_row, request.key, context)
        is_initiator = verdict is Verdict.BY_UPLOAD and upload is not None and upload.owner_id == request.account_id
        if verdict is not Verdict.YES and not is_initiator:
            raise AccessDenied()
    request.pending_permissions = tuple(pending)
    request.authorization_pending = bool(pending)


def require_list_permission(request: S3Request, bucket: Bucket, key: str) -> None:
    """Raise AccessDenied unless the caller may list such keys. Only then may it know that the key is missing."""
    if not bucket.settings and request.principal is None:
        return  # it is the owner: all others were refused before
    context = ConditionContext(request, bucket, listed_key=key)
    if _decide(request, "s3:ListBucket", bucket, None, context) is not Verdict.YES:
        raise AccessDenied()


def require_authorized(request: S3Request) -> None:
    """Fail closed: raise AccessDenied if a permission is still open. Before a change, and before any response."""
    if request.authorization_pending:
        logger.error("%s was refused: nothing has decided its permission", request.operation)
        raise AccessDenied()


def _check_owner(bucket: Bucket, expected: str | None) -> None:
    if expected is not None and expected not in (bucket.owner_id, account_number(bucket.owner_id)):
        raise AccessDenied()


def _check_payer(request: S3Request, bucket: Bucket) -> None:
    """Raise AccessDenied for a request that does not pay at a Requester Pays bucket."""
    paid = is_payer(request.account_id, bucket, request.headers.get("x-amz-request-payer"))
    if paid is False:
        raise AccessDenied()
    request.charged = request.charged or bool(paid)


def _defer(request: S3Request, action: str, verdict: Verdict, context: ConditionContext) -> None:
    if verdict is Verdict.NO:
        raise AccessDenied()
    request.authorization_pending = True
    request.pending_permissions = (*request.pending_permissions, (action, verdict, context))
