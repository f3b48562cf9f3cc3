"""What AWS answers when something was never configured. Configuring it is not built: those PUTs answer 501."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.s3.dispatch import Handler, Level, operation
from app.s3.errors import (
    NoSuchLifecycleConfiguration,
    S3Error,
    ServerSideEncryptionConfigurationNotFoundError,
)
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


def _nothing_to_delete(level: Level, subresource: str, name: str, action: str) -> None:
    async def handler(gateway: Gateway, request: S3Request) -> Response:
        return Response(204)

    register: Handler = handler
    operation("DELETE", level, subresource, name=name, action=action)(register)


_nothing_to_delete("bucket", "lifecycle", "DeleteBucketLifecycle", "s3:PutLifecycleConfiguration")
_nothing_to_delete("bucket", "encryption", "DeleteBucketEncryption", "s3:PutEncryptionConfiguration")
