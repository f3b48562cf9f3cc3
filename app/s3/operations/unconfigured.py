"""What AWS answers when something was never configured. Configuring it is not built: those PUTs answer 501."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.s3.dispatch import Handler, Level, operation
from app.s3.errors import (
    InvalidRequest,
    NoSuchLifecycleConfiguration,
    ObjectLockConfigurationNotFoundError,
    S3Error,
    ServerSideEncryptionConfigurationNotFoundError,
)
from app.s3.operations.object_read import find
from app.s3.request import S3Request
from app.s3.response import Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


def _missing(level: Level, subresource: str, name: str, action: str, error: type[S3Error]) -> None:
    async def handler(gateway: Gateway, request: S3Request) -> Response:
        raise error(BucketName=request.bucket)

    register: Handler = handler
    operation("GET", level, subresource, name=name, action=action)(register)


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


def _nothing_to_delete(level: Level, subresource: str, name: str, action: str) -> None:
    async def handler(gateway: Gateway, request: S3Request) -> Response:
        return Response(204)

    register: Handler = handler
    operation("DELETE", level, subresource, name=name, action=action)(register)


_nothing_to_delete("bucket", "lifecycle", "DeleteBucketLifecycle", "s3:PutLifecycleConfiguration")
_nothing_to_delete("bucket", "encryption", "DeleteBucketEncryption", "s3:PutEncryptionConfiguration")


async def _no_lock(gateway: Gateway, request: S3Request) -> Response:
    await find(gateway, request)
    raise InvalidRequest("Bucket is missing Object Lock Configuration")


operation("GET", "key", "retention", name="GetObjectRetention", action="s3:GetObjectRetention")(_no_lock)
operation("GET", "key", "legal-hold", name="GetObjectLegalHold", action="s3:GetObjectLegalHold")(_no_lock)
