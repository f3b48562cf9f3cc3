"""Bucket policies: PutBucketPolicy, GetBucketPolicy, DeleteBucketPolicy, GetBucketPolicyStatus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.access import policy, policy_principals
from sluice_s3.app.access.account import caller_of
from sluice_s3.app.access.bucket_access import POLICY, access_of, policy_text
from sluice_s3.app.access.policy import Malformed
from sluice_s3.app.access.policy.errors import UnknownPrincipal
from sluice_s3.app.s3.errors import AccessDenied, MalformedPolicy, MethodNotAllowed, NoSuchBucketPolicy
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


def _check_owner(request: S3Request) -> None:
    """Require the owner's account: only its users can be allowed these operations ("Permissions")."""
    if request.account_id != request.bucket_row.owner_id:
        raise MethodNotAllowed(Method=request.method, ResourceType="BUCKETPOLICY")


def _caller_arn(request: S3Request) -> str:
    """Return the ARN of a caller that is allowed the operation, and so is not anonymous."""
    arn: str = caller_of(request.account_id or "").arn if request.principal is None else request.principal.caller.arn
    return arn


@operation("PUT", "bucket", "policy", name="PutBucketPolicy", action="s3:PutBucketPolicy")
async def put_bucket_policy(services: Services, request: S3Request) -> Response:
    """Handle PutBucketPolicy (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketPolicy.html)."""
    _check_owner(request)
    bucket = request.bucket_row
    text = await read_document(request)
    try:
        parsed = policy.parse(text, bucket.name)
    except Malformed as error:
        raise MalformedPolicy(str(error)) from None
    if access_of(bucket).block.block_policy and policy.is_public(parsed):
        raise AccessDenied(
            f"User: {_caller_arn(request)} is not authorized to perform: s3:PutBucketPolicy on resource:"
            f' "arn:aws:s3:::{bucket.name}" because public policies are blocked by the BlockPublicPolicy block public'
            " access setting."
        )
    try:
        stored_policy = await policy_principals.bind_principals(services.index, text.decode("utf-8"), bucket.owner_id)
    except UnknownPrincipal as error:
        raise MalformedPolicy(str(error), Detail=f'"{error.kind}" : "{error.name}"') from None
    await services.index.configure_bucket(bucket.id, POLICY, stored_policy)
    return Response(204)


@operation("GET", "bucket", "policy", name="GetBucketPolicy", action="s3:GetBucketPolicy")
async def get_bucket_policy(services: Services, request: S3Request) -> Response:
    """Handle GetBucketPolicy (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketPolicy.html)."""
    _check_owner(request)
    text = policy_text(request.bucket_row)
    if text is None:
        raise NoSuchBucketPolicy(BucketName=request.bucket)
    document = await policy_principals.unbind_principals(services.index, text)
    return Response(200, [(b"content-type", b"application/json")], document.encode("utf-8"))


@operation("DELETE", "bucket", "policy", name="DeleteBucketPolicy", action="s3:DeleteBucketPolicy")
async def delete_bucket_policy(services: Services, request: S3Request) -> Response:
    """Handle DeleteBucketPolicy (https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketPolicy.html)."""
    _check_owner(request)
    if policy_text(request.bucket_row) is not None:
        await services.index.configure_bucket(request.bucket_row.id, POLICY, None)
    return Response(204)


@operation("GET", "bucket", "policyStatus", name="GetBucketPolicyStatus", action="s3:GetBucketPolicyStatus")
async def get_bucket_policy_status(services: Services, request: S3Request) -> Response:
    """Handle GetBucketPolicyStatus (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketPolicyStatus.html)."""
    access = access_of(request.bucket_row)
    if access.policy is None:
        raise NoSuchBucketPolicy(BucketName=request.bucket)
    content = xml.element("IsPublic", str(access.public).lower())
    return Response(200, list(XML), xml.document("PolicyStatus", content))
