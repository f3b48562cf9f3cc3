"""What a request may do, asked of `app.access.authorize` with all that the request says (law 7).

What only the object's own ACL can tell stays open in the request until the object was found. An answer whose right was
never decided is not given: see `decided`.
"""

from __future__ import annotations

import logging

from app.access.authorize import Verdict, account_number, authorize, authorize_object, may_by_acl
from app.index.rows import Bucket, Version
from app.s3 import metadata
from app.s3.dispatch import Operation, right_on
from app.s3.errors import AccessDenied
from app.s3.facts import Facts
from app.s3.request import S3Request
from app.s3.response import Response

logger = logging.getLogger("sluice.s3")


def admit(request: S3Request, operation: Operation, bucket: Bucket | None) -> None:
    """Raises AccessDenied unless the caller may do what it asks for, or only its objects can tell."""
    request.undecided, request.by_object = False, ()
    if operation.form or (operation.each and bucket is not None and bucket.settings):
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
    if bucket is not None and bucket.settings:
        facts = Facts(request, bucket, version_id=version_id)
        verdict = authorize(request.account_id, action, bucket, key, facts.values)
    else:
        verdict = authorize(request.account_id, action, bucket)
    if verdict is not Verdict.YES:
        _leave_open(request, action, verdict)


def check_source(request: S3Request, bucket: Bucket, key: str, version_id: str | None) -> None:
    """Raises AccessDenied unless the caller may read what a copy names; leaves open what `check` does."""
    facts = Facts(request, bucket, copying_from=True, version_id=version_id)
    action = right_on("s3:GetObject", version_id)
    verdict = authorize(request.account_id, action, bucket, key, facts.values)
    if verdict is not Verdict.YES:
        _leave_open(request, action, verdict)
    _check_owner(bucket, request.headers.get("x-amz-source-expected-bucket-owner"))


def check_key(request: S3Request, action: str, key: str, version_id: str | None) -> None:
    """Raises AccessDenied unless the caller may do `action` to one of the objects that a body names."""
    request.undecided = False
    check(request, right_on(action, version_id), request.bucket_row, key, version_id)


def check_put_acl(request: S3Request) -> None:
    """The right to give an object its ACL while it is written. Raises AccessDenied.

    The writer owns what he writes, so that nothing but a policy speaks against it; but who may write only because a
    policy says so needs it to say this too (API reference, PutObject, "s3:PutObjectAcl").
    """
    bucket = request.bucket_row
    facts = Facts(request, bucket)
    verdict = authorize(request.account_id, "s3:PutObjectAcl", bucket, request.key, facts.values)
    if verdict is Verdict.BY_OBJECT and not may_by_acl(request.account_id, "s3:PutObject", bucket):
        verdict = Verdict.NO
    if verdict is Verdict.NO:
        raise AccessDenied()


def check_version(request: S3Request, bucket: Bucket, version: Version) -> None:
    """Decide by an object's ACL what was left open. Raises AccessDenied."""
    if not request.by_object:
        return
    grants = metadata.grants(version.headers)
    for action, verdict in request.by_object:
        if not authorize_object(request.account_id, action, bucket, version.owner_id, grants, verdict):
            raise AccessDenied()
    request.undecided = False


def check_may_list(request: S3Request, bucket: Bucket, key: str) -> None:
    """Raises AccessDenied unless the caller may list keys like this one, and so may know that there is none."""
    if not bucket.settings:
        return  # it is the owner: nobody else has come as far as to ask
    facts = Facts(request, bucket, sought=key)
    if authorize(request.account_id, "s3:ListBucket", bucket, None, facts.values) is not Verdict.YES:
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


def _leave_open(request: S3Request, action: str, verdict: Verdict) -> None:
    if verdict is Verdict.NO:
        raise AccessDenied()
    request.undecided = True
    request.by_object = (*request.by_object, (action, verdict))
