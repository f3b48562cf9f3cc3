"""What AWS answers when something was never configured. Configuring it is not built: those PUTs answer 501."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.s3 import xml
from app.s3.dispatch import Handler, Level, operation
from app.s3.errors import (
    InvalidRequest,
    NoSuchBucketPolicy,
    NoSuchCORSConfiguration,
    NoSuchLifecycleConfiguration,
    NoSuchPublicAccessBlockConfiguration,
    NoSuchTagSet,
    ObjectLockConfigurationNotFoundError,
    OwnershipControlsNotFoundError,
    S3Error,
    ServerSideEncryptionConfigurationNotFoundError,
)
from app.s3.operations.object_read import find
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


def _missing(level: Level, subresource: str, name: str, action: str, error: type[S3Error]) -> None:
    async def handler(gateway: Gateway, request: S3Request) -> Response:
        raise error(BucketName=request.bucket)

    register: Handler = handler
    operation("GET", level, subresource, name=name, action=action)(register)


_missing("bucket", "tagging", "GetBucketTagging", "s3:GetBucketTagging", NoSuchTagSet)
_missing("bucket", "policy", "GetBucketPolicy", "s3:GetBucketPolicy", NoSuchBucketPolicy)
_missing("bucket", "policyStatus", "GetBucketPolicyStatus", "s3:GetBucketPolicyStatus", NoSuchBucketPolicy)
_missing("bucket", "cors", "GetBucketCors", "s3:GetBucketCORS", NoSuchCORSConfiguration)
_missing(
    "bucket",
    "lifecycle",
    "GetBucketLifecycleConfiguration",
    "s3:GetLifecycleConfiguration",
    NoSuchLifecycleConfiguration,
)
_missing(
    "bucket",
    "encryption",
    "GetBucketEncryption",
    "s3:GetEncryptionConfiguration",
    ServerSideEncryptionConfigurationNotFoundError,
)
_missing(
    "bucket",
    "object-lock",
    "GetObjectLockConfiguration",
    "s3:GetBucketObjectLockConfiguration",
    ObjectLockConfigurationNotFoundError,
)
_missing(
    "bucket",
    "ownershipControls",
    "GetBucketOwnershipControls",
    "s3:GetBucketOwnershipControls",
    OwnershipControlsNotFoundError,
)
_missing(
    "bucket",
    "publicAccessBlock",
    "GetPublicAccessBlock",
    "s3:GetBucketPublicAccessBlock",
    NoSuchPublicAccessBlockConfiguration,
)


@operation("GET", "bucket", "versioning", name="GetBucketVersioning", action="s3:GetBucketVersioning")
async def get_bucket_versioning(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketVersioning.html"""
    return Response(200, list(XML), xml.document("VersioningConfiguration", ""))


@operation("GET", "bucket", "acl", name="GetBucketAcl", action="s3:GetBucketAcl")
async def get_bucket_acl(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketAcl.html"""
    return _owner_has_all(request)


@operation("GET", "key", "acl", name="GetObjectAcl", action="s3:GetObjectAcl")
async def get_object_acl(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAcl.html"""
    await find(gateway, request)
    return _owner_has_all(request)


def _owner_has_all(request: S3Request) -> Response:
    owner_id = request.bucket_row.owner_id
    person = xml.owner(owner_id, request.display_name)
    grantee = person.removeprefix("<Owner>").removesuffix("</Owner>")
    schema = "http://www.w3.org/2001/XMLSchema-instance"
    grant = (
        f'<Grant><Grantee xmlns:xsi="{schema}" xsi:type="CanonicalUser">{grantee}</Grantee>'
        "<Permission>FULL_CONTROL</Permission></Grant>"
    )
    content = f"{person}<AccessControlList>{grant}</AccessControlList>"
    return Response(200, list(XML), xml.document("AccessControlPolicy", content))


@operation("GET", "key", "tagging", name="GetObjectTagging", action="s3:GetObjectTagging")
async def get_object_tagging(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectTagging.html"""
    await find(gateway, request)
    return Response(200, list(XML), xml.document("Tagging", "<TagSet></TagSet>"))


async def _no_lock(gateway: Gateway, request: S3Request) -> Response:
    await find(gateway, request)
    raise InvalidRequest("Bucket is missing Object Lock Configuration")


operation("GET", "key", "retention", name="GetObjectRetention", action="s3:GetObjectRetention")(_no_lock)
operation("GET", "key", "legal-hold", name="GetObjectLegalHold", action="s3:GetObjectLegalHold")(_no_lock)
