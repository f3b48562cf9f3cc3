"""Bucket policies: PutBucketPolicy, GetBucketPolicy, DeleteBucketPolicy, GetBucketPolicyStatus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.access import policy
from app.access.bucket_access import POLICY, access_of, policy_text
from app.access.policy import Malformed
from app.s3 import xml
from app.s3.body import Body
from app.s3.dispatch import operation
from app.s3.errors import AccessDenied, MalformedPolicy, NoSuchBucketPolicy
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


@operation("PUT", "bucket", "policy", name="PutBucketPolicy", action="s3:PutBucketPolicy")
async def put_bucket_policy(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketPolicy.html"""
    bucket = request.bucket_row
    text = await Body(request, checksum="", etag=False).collect()
    try:
        parsed = policy.parse(text, bucket.name)
    except Malformed as error:
        raise MalformedPolicy(str(error)) from None
    if access_of(bucket).block.block_policy and policy.is_public(parsed):
        raise AccessDenied()
    await gateway.index.configure_bucket(bucket.id, POLICY, text.decode("utf-8"))
    return Response(204)


@operation("GET", "bucket", "policy", name="GetBucketPolicy", action="s3:GetBucketPolicy")
async def get_bucket_policy(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketPolicy.html"""
    text = policy_text(request.bucket_row)
    if text is None:
        raise NoSuchBucketPolicy(BucketName=request.bucket)
    return Response(200, [(b"content-type", b"application/json")], text.encode("utf-8"))


@operation("DELETE", "bucket", "policy", name="DeleteBucketPolicy", action="s3:DeleteBucketPolicy")
async def delete_bucket_policy(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteBucketPolicy.html"""
    if policy_text(request.bucket_row) is not None:
        await gateway.index.configure_bucket(request.bucket_row.id, POLICY, None)
    return Response(204)


@operation("GET", "bucket", "policyStatus", name="GetBucketPolicyStatus", action="s3:GetBucketPolicyStatus")
async def get_bucket_policy_status(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketPolicyStatus.html"""
    access = access_of(request.bucket_row)
    if access.policy is None:
        raise NoSuchBucketPolicy(BucketName=request.bucket)
    content = xml.element("IsPublic", str(access.public).lower())
    return Response(200, list(XML), xml.document("PolicyStatus", content))
