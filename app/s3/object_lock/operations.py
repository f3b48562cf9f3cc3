"""Object lock: the configuration of a bucket, and retention and legal hold of versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sluice_s3.app.index.object_lock.protection import Lock
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.errors import (
    NoSuchObjectLockConfiguration,
    NotImplemented,
    ObjectLockConfigurationNotFoundError,
)
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.object_lock import xml as lock_xml
from sluice_s3.app.s3.objects.find import find_version
from sluice_s3.app.s3.objects.update_headers import update_version_headers
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import metadata
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response
from sluice_s3.app.store.journals.wait import wait_until_journaled

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


@operation(
    "GET",
    "bucket",
    "object-lock",
    name="GetObjectLockConfiguration",
    action="s3:GetBucketObjectLockConfiguration",
)
async def get_object_lock_configuration(services: Services, request: S3Request) -> Response:
    """Handle GetObjectLockConfiguration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectLockConfiguration.html
    """
    default = lock_headers.default_retention(request.bucket_row)
    if default is None:
        raise ObjectLockConfigurationNotFoundError(BucketName=request.bucket)
    return Response(200, list(XML), lock_xml.render_default_retention(default))


@operation(
    "PUT",
    "bucket",
    "object-lock",
    name="PutObjectLockConfiguration",
    action="s3:PutBucketObjectLockConfiguration",
)
async def put_object_lock_configuration(services: Services, request: S3Request) -> Response:
    """Handle PutObjectLockConfiguration.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectLockConfiguration.html
    """
    default = lock_xml.parse_default_retention(await read_document(request))
    if services.tree_of(request.bucket_row) is not None:
        raise NotImplemented()  # other programs may change plain files
    await services.index.set_object_lock(request.bucket_row.id, default if default.mode else ())
    return Response(200)


@operation("GET", "key", "retention", name="GetObjectRetention", action="s3:GetObjectRetention")
async def get_object_retention(services: Services, request: S3Request) -> Response:
    """Handle GetObjectRetention (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectRetention.html)."""
    lock = await _found(services, request)
    if not lock.mode:
        raise NoSuchObjectLockConfiguration()
    return Response(200, list(XML), lock_xml.render_retention(lock))


@operation(
    "PUT", "key", "retention", name="PutObjectRetention", action="s3:PutObjectRetention", authorized_per_object=True
)
async def put_object_retention(services: Services, request: S3Request) -> Response:
    """Handle PutObjectRetention (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectRetention.html)."""
    version_id = version_headers.requested_version_id(request)
    retention = request.lock = lock_xml.parse_retention(await read_document(request))
    if request.authorization_pending:  # policies can have conditions on the new retention
        authorization.authorize_object_in_body(request, "s3:PutObjectRetention", request.key or "", version_id)
    lock_headers.require_lock_enabled(request.bucket_row)
    bypass = lock_headers.bypasses_governance(request, request.key or "", version_id)
    return await _renew(services, request, lambda old: retention._replace(hold=old.hold), bypass=bypass)


@operation("GET", "key", "legal-hold", name="GetObjectLegalHold", action="s3:GetObjectLegalHold")
async def get_object_legal_hold(services: Services, request: S3Request) -> Response:
    """Handle GetObjectLegalHold (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectLegalHold.html)."""
    lock = await _found(services, request)
    if lock.hold is None:
        raise NoSuchObjectLockConfiguration()
    return Response(200, list(XML), lock_xml.render_legal_hold(lock.hold))


@operation(
    "PUT", "key", "legal-hold", name="PutObjectLegalHold", action="s3:PutObjectLegalHold", authorized_per_object=True
)
async def put_object_legal_hold(services: Services, request: S3Request) -> Response:
    """Handle PutObjectLegalHold (https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectLegalHold.html)."""
    version_id = version_headers.requested_version_id(request)
    hold = lock_xml.parse_legal_hold(await read_document(request))
    request.lock = Lock(hold=hold)
    if request.authorization_pending:
        authorization.authorize_object_in_body(request, "s3:PutObjectLegalHold", request.key or "", version_id)
    lock_headers.require_lock_enabled(request.bucket_row)
    return await _renew(services, request, lambda old: old._replace(hold=hold))


async def _found(services: Services, request: S3Request) -> Lock:
    """Return the lock of a request's version. Raises InvalidRequest in a bucket without object lock."""
    version = await find_version(services, request)
    lock_headers.require_lock_enabled(request.bucket_row)
    return metadata.lock(version.headers)


async def _renew(
    services: Services, request: S3Request, change: Callable[[Lock], Lock], *, bypass: bool = False
) -> Response:
    """Replace the lock of a version, and wait until it is journaled. Raises as `update_version_headers`."""

    def changed(version: Version) -> str:
        return metadata.repack(version.headers, lock=change(metadata.lock(version.headers)))

    version = await update_version_headers(services, request, changed, bypass=bypass)
    await wait_until_journaled(services.store_of(request), request.bucket_row, version.key, version, version.headers)
    return Response(200, version_headers.version_header(request.bucket_row, version.version_id))
