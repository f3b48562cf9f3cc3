"""Server access logs of buckets: PutBucketLogging, GetBucketLogging."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.access.bucket_access import access_of
from sluice_s3.app.encryption.scheme import S3
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.acl import grants as acls
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import (
    AccessControlListNotSupported,
    CrossLocationLoggingProhibitted,
    InvalidBucketName,
    InvalidTargetBucketForLogging,
    NoSuchBucket,
)
from sluice_s3.app.s3.logging import xml as configuration
from sluice_s3.app.s3.logging.delivery import check
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


@operation("PUT", "bucket", "logging", name="PutBucketLogging", action="s3:PutBucketLogging")
async def put_bucket_logging(services: Services, request: S3Request) -> Response:
    """Handle PutBucketLogging (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLogging.html)."""
    requested = configuration.parse(await read_document(request))
    source: Bucket = request.bucket_row
    if requested is None:
        await services.index.configure_bucket(source.id, configuration.SETTING, None)
        return Response(200)
    found, named = requested
    destination = await _destination(services, found.bucket)
    if services.regions.are_apart(destination, source):
        raise CrossLocationLoggingProhibitted(
            SourceBucketLocation=source.region, TargetBucketLocation=destination.region
        )
    check(source, destination, found.prefix)
    _check_kind(destination)
    if named and not access_of(destination).has_acls:
        raise AccessControlListNotSupported()
    grants = tuple((one.grantee, one.permission) for one in await acls.resolve(services, named))
    value = [found.bucket, found.prefix, found.format, grants]
    await services.index.configure_bucket(source.id, configuration.SETTING, value)
    return Response(200)


async def _destination(services: Services, name: str) -> Bucket:
    try:
        return await services.bucket(name)
    except (NoSuchBucket, InvalidBucketName):
        raise InvalidTargetBucketForLogging("The target bucket for logging does not exist", TargetBucket=name) from None


def _check_kind(destination: Bucket) -> None:
    """Refuse a destination with an unsuitable setting ("Enabling Amazon S3 server access logging", User Guide)."""
    if access_of(destination).requester_pays:
        raise InvalidTargetBucketForLogging(
            "The target bucket must not have Requester Pays enabled.", TargetBucket=destination.name
        )
    if encryption.default_of(destination).method not in ("", S3):
        raise InvalidTargetBucketForLogging(
            "The target bucket must not be encrypted by default with keys of KMS.", TargetBucket=destination.name
        )
    default = lock_headers.default_retention(destination)
    if default is not None and default.mode:
        raise InvalidTargetBucketForLogging(
            "The target bucket must not have a default retention period.", TargetBucket=destination.name
        )


@operation("GET", "bucket", "logging", name="GetBucketLogging", action="s3:GetBucketLogging")
async def get_bucket_logging(services: Services, request: S3Request) -> Response:
    """Handle GetBucketLogging (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketLogging.html)."""
    found = configuration.logging_of(request.bucket_row)
    return Response(200, list(XML), configuration.document(found))
