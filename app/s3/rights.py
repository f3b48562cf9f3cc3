"""What a request may do, asked of `app.access.authorize` with all that the request says (law 7).

What only the object's own ACL can tell stays open in the request until the object was found. An answer whose right was
never decided is not given: see `decided`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from app.access.account import account_number
from app.access.authorize import Verdict, authorize, authorize_key, authorize_object, may_while_writing, pays
from app.access.policy.keys import ON_TAGGED
from app.errors import NoSuchKey, NoSuchVersion
from app.index.rows import Bucket, Upload, Version
from app.s3 import conditions, metadata
from app.s3.dispatch import Operation, right_on
from app.s3.errors import AccessDenied
from app.s3.facts import UNKNOWN, Facts
from app.s3.request import S3Request
from app.s3.response import Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

logger = logging.getLogger("sluice.s3")


def admit(request: S3Request, operation: Operation, bucket: Bucket | None, region: str = "") -> None:
    """Raises AccessDenied unless the caller may do what it asks for, or only its objects can tell.

    `region` is where it asks for what is in no bucket.
    """
    request.undecided, request.by_object = False, ()
    if operation.signed and request.account_id is None:
        raise AccessDenied(operation.signed)
    if bucket is None:
        request.region = region
    if operation.form or (operation.each and bucket is not None and (bucket.settings or request.principal is not None)):
        request.undecided = True
    else:
        version_id = request.query.get("versionId") if request.query else None
        action = operation.action if version_id is None else right_on(operation.action, version_id)
        check(request, action, bucket, request.key, version_id)
    if bucket is not None:
        _check_owner(bucket, request.headers.get("x-amz-expected-bucket-owner"))


def admit_form(request: S3Request, action: str) -> None:
    """The right of an upload whose form was read: by whom and for which key is known. Raises AccessDenied."""
    request.undecided = False
    check(request, action, request.bucket_row, request.key)
    _check_owner(request.bucket_row, request.headers.get("x-amz-expected-bucket-owner"))


def check(
    request: S3Request,
    action: str,
    bucket: Bucket | None,
    key: str | None = None,
    version_id: str | None = None,
) -> None:
    """Raises AccessDenied unless the caller may do `action`.

    Where only the object's ACL can tell, nothing is answered until `check_version` was asked.
    """
    if (bucket is not None and bucket.settings) or request.principal is not None:
        if bucket is not None:
            _check_payer(request, bucket)
        facts = Facts(request, bucket, version_id=version_id, tags=UNKNOWN if action in ON_TAGGED else None)
        verdict = _verdict(request, action, bucket, key, facts)
        if verdict is not Verdict.YES:
            _leave_open(request, action, verdict, facts)
    elif authorize(request.account_id, action, bucket) is not Verdict.YES:
        raise AccessDenied()


def _verdict(request: S3Request, action: str, bucket: Bucket | None, key: str | None, facts: Facts) -> Verdict:
    return authorize(
        request.account_id,
        action,
        bucket,
        key,
        facts.values,
        principal=request.principal,
        name=request.bucket,
    )


def check_location(request: S3Request) -> None:
    """The right to make a bucket, asked again of users and sessions now that its location is known.

    Raises AccessDenied.
    """
    if request.principal is not None:
        request.undecided, request.by_object = False, ()
        check(request, "s3:CreateBucket", None)


def check_source(request: S3Request, bucket: Bucket, key: str, version_id: str | None) -> None:
    """Raises AccessDenied unless the caller may read what a copy names; leaves open what `check` does."""
    _check_payer(request, bucket)
    facts = Facts(request, bucket, copying_from=True, version_id=version_id, tags=UNKNOWN)
    action = right_on("s3:GetObject", version_id)
    verdict = _verdict(request, action, bucket, key, facts)
    if verdict is not Verdict.YES:
        _leave_open(request, action, verdict, facts)
    _check_owner(bucket, request.headers.get("x-amz-source-expected-bucket-owner"))


def check_key(request: S3Request, action: str, key: str, version_id: str | None) -> None:
    """Raises AccessDenied unless the caller may do `action` to one of the objects that a body names."""
    request.undecided = False
    check(request, right_on(action, version_id), request.bucket_row, key, version_id)


def check_key_use(request: S3Request, action: str, key: str, *, of_aws: bool) -> None:
    """The right to use a key of the ring, by its ARN, for what the request is about. Raises AccessDenied."""
    principal = request.principal
    if principal is None and request.account_id is not None:
        return
    facts = Facts(request, request.bucket_row)
    if not authorize_key(request.account_id, principal, action, key, facts.of_key, of_aws=of_aws):
        who = "anonymous" if principal is None else principal.caller.arn
        raise AccessDenied(f"User: {who} is not authorized to perform: {action} on resource: {key}")


def check_put_acl(request: S3Request) -> None:
    """The right to give an object its ACL while it is written. Raises AccessDenied."""
    _check_while_writing(request, "s3:PutObjectAcl")


def check_put_tags(request: S3Request) -> None:
    """The same for its tags."""
    _check_while_writing(request, "s3:PutObjectTagging")


def check_put_retention(request: S3Request) -> None:
    """The same for its retention ("How S3 Object Lock works", Amazon S3 User Guide)."""
    _check_while_writing(request, "s3:PutObjectRetention")


def check_put_legal_hold(request: S3Request) -> None:
    """The same for its legal hold."""
    _check_while_writing(request, "s3:PutObjectLegalHold")


def may_bypass_retention(request: S3Request, key: str, version_id: str | None) -> bool:
    """Whether the caller may do what a retention of GOVERNANCE forbids."""
    return _may(request, "s3:BypassGovernanceRetention", key, Facts(request, request.bucket_row, version_id=version_id))


def may_see(request: S3Request, action: str, version: Version) -> bool:
    """Whether an answer may tell what `action` asks of a version."""
    return _may(request, action, version.key, Facts(request, request.bucket_row, version_id=_version_asked(request)))


def _may(request: S3Request, action: str, key: str, facts: Facts) -> bool:
    return _verdict(request, action, request.bucket_row, key, facts) is Verdict.YES


def _version_asked(request: S3Request) -> str | None:
    return request.query.get("versionId") if request.query else None


def _check_while_writing(request: S3Request, action: str) -> None:
    bucket = request.bucket_row
    values = Facts(request, bucket).values
    if not may_while_writing(request.account_id, action, bucket, request.key or "", values, request.principal):
        raise AccessDenied()


def check_source_tags(request: S3Request, bucket: Bucket, version: Version, version_id: str | None) -> None:
    """The right to the tags of what is copied, which the copy gets. Raises AccessDenied."""
    known = metadata.tags(version.headers)
    facts = Facts(request, bucket, copying_from=True, version_id=version_id, tags=known)
    action = right_on("s3:GetObjectTagging", version_id)
    if _verdict(request, action, bucket, version.key, facts) is not Verdict.YES:
        raise AccessDenied()


def may_read_tags(request: S3Request, version: Version) -> bool:
    """Whether an answer may say how many tags a version has."""
    version_id = _version_asked(request)
    facts = Facts(request, request.bucket_row, version_id=version_id, tags=metadata.tags(version.headers))
    return _may(request, right_on("s3:GetObjectTagging", version_id), version.key, facts)


def check_version(request: S3Request, bucket: Bucket, version: Version) -> None:
    """Decide by an object's ACL and tags what was left open. Raises AccessDenied."""
    if not request.by_object:
        return
    for action, verdict, facts in request.by_object:
        _check_found(request, action, verdict, facts, bucket, version)
    request.undecided = False


def _check_found(
    request: S3Request, action: str, verdict: Verdict, facts: Facts, bucket: Bucket, version: Version
) -> None:
    if verdict is Verdict.BY_TAGS:
        facts.tags = metadata.tags(version.headers)
        verdict = _verdict(request, action, bucket, version.key, facts)
    grants = metadata.grants(version.headers)
    if not authorize_object(request.account_id, action, bucket, version.owner_id, grants, verdict):
        raise AccessDenied()


def must_ask_to_match(request: S3Request) -> bool:
    """Whether `check_match` may have to look the object up."""
    asked = request.principal is not None or request.bucket_row.settings
    return bool(asked) and not conditions.TELLING.isdisjoint(request.headers)


async def check_match(
    gateway: Gateway,
    request: S3Request,
    key: str | None = None,
    version_id: str | None = None,
    *,
    tells: bool,
    kept: str = "",
) -> None:
    """The right to read what a write or delete is compared with, where the outcome `tells` what that is like.

    `kept` are the headers of the upload that becomes the object. Raises AccessDenied ("How to prevent object overwrites
    with conditional writes" and "How to perform conditional deletes", Amazon S3 User Guide).
    """
    bucket, key = request.bucket_row, request.key or "" if key is None else key
    if not tells or (not bucket.settings and request.principal is None):
        return
    facts = Facts(request, bucket, version_id=version_id, tags=UNKNOWN)
    facts.upload = kept
    action = right_on("s3:GetObject", version_id)
    verdict = _verdict(request, action, bucket, key, facts)
    if verdict is Verdict.NO:
        raise AccessDenied()
    if verdict is not Verdict.YES:
        try:
            version = await gateway.find(bucket, key, version_id)
        except (NoSuchKey, NoSuchVersion):
            return  # then there is nothing to tell
        _check_found(request, action, verdict, facts, bucket, version)


def check_upload(request: S3Request, upload: Upload | None) -> None:
    """Decide what was left open of the right to an upload, now that it is known; None: there is none.

    Who began it may abort it; of its parts policies may ask how it is encrypted. Raises AccessDenied.
    """
    if not request.by_object:
        return
    left = []
    for action, verdict, facts in request.by_object:
        if not facts.of_target:
            left.append((action, verdict, facts))
            continue
        if verdict is Verdict.BY_TAGS:
            facts.upload = "" if upload is None else upload.headers
            verdict = _verdict(request, action, request.bucket_row, request.key, facts)
        begun = verdict is Verdict.BY_UPLOAD and upload is not None and upload.owner_id == request.account_id
        if verdict is not Verdict.YES and not begun:
            raise AccessDenied()
    request.by_object = tuple(left)
    request.undecided = bool(left)


def check_may_list(request: S3Request, bucket: Bucket, key: str) -> None:
    """Raises AccessDenied unless the caller may list keys like this one, and so may know that there is none."""
    if not bucket.settings and request.principal is None:
        return  # it is the owner: nobody else has come as far as to ask
    facts = Facts(request, bucket, sought=key)
    if _verdict(request, "s3:ListBucket", bucket, None, facts) is not Verdict.YES:
        raise AccessDenied()


def decided(request: S3Request, response: Response) -> Response:
    """The answer of an operation that was allowed to give it. Raises AccessDenied when that was never decided."""
    if request.undecided:
        logger.error("%s answered without deciding who may", request.operation)
        raise AccessDenied()
    return response


def _check_owner(bucket: Bucket, expected: str | None) -> None:
    if expected is not None and expected not in (bucket.owner_id, account_number(bucket.owner_id)):
        raise AccessDenied()


def _check_payer(request: S3Request, bucket: Bucket) -> None:
    """Raises AccessDenied for a request that does not say it is paid, where the requester pays."""
    paid = pays(request.account_id, bucket, request.headers.get("x-amz-request-payer"))
    if paid is False:
        raise AccessDenied()
    request.charged = request.charged or bool(paid)


def _leave_open(request: S3Request, action: str, verdict: Verdict, facts: Facts) -> None:
    if verdict is Verdict.NO:
        raise AccessDenied()
    request.undecided = True
    request.by_object = (*request.by_object, (action, verdict, facts))
