"""Object lock: the configuration of a bucket, and retention and legal hold of versions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from app.index.locks import Lock
from app.index.rows import Version
from app.s3 import lock_documents, locks, metadata, rights, versions
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import (
    NoSuchObjectLockConfiguration,
    NotImplemented,
    ObjectLockConfigurationNotFoundError,
)
from app.s3.operations.object_read import find
from app.s3.operations.renewing import renew
from app.s3.request import S3Request
from app.s3.response import XML, Response
from app.store.locked import written_down

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


@operation(
    "GET",
    "bucket",
    "object-lock",
    name="GetObjectLockConfiguration",
    action="s3:GetBucketObjectLockConfiguration",
)
async def get_object_lock_configuration(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectLockConfiguration.html"""
    default = locks.default_of(request.bucket_row)
    if default is None:
        raise ObjectLockConfigurationNotFoundError(BucketName=request.bucket)
    return Response(200, list(XML), lock_documents.default_document(default))


@operation(
    "PUT",
    "bucket",
    "object-lock",
    name="PutObjectLockConfiguration",
    action="s3:PutBucketObjectLockConfiguration",
)
async def put_object_lock_configuration(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectLockConfiguration.html"""
    default = lock_documents.default_of_document(await document(request))
    if gateway.tree_of(request.bucket_row) is not None:
        raise NotImplemented()  # others may change plain files
    await gateway.index.set_object_lock(request.bucket_row.id, default if default.mode else ())
    return Response(200)


@operation("GET", "key", "retention", name="GetObjectRetention", action="s3:GetObjectRetention")
async def get_object_retention(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectRetention.html"""
    lock = await _found(gateway, request)
    if not lock.mode:
        raise NoSuchObjectLockConfiguration()
    return Response(200, list(XML), lock_documents.retention_document(lock))


@operation("PUT", "key", "retention", name="PutObjectRetention", action="s3:PutObjectRetention", each=True)
async def put_object_retention(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectRetention.html"""
    asked = versions.asked(request)
    given = request.lock = lock_documents.retention_of_document(await document(request))
    if request.undecided:  # policies can speak of the retention that is given
        rights.check_key(request, "s3:PutObjectRetention", request.key or "", asked)
    locks.check_enabled(request.bucket_row)
    bypass = locks.may_bypass(request, request.key or "", asked)
    return await _renew(gateway, request, lambda old: given._replace(hold=old.hold), bypass=bypass)


@operation("GET", "key", "legal-hold", name="GetObjectLegalHold", action="s3:GetObjectLegalHold")
async def get_object_legal_hold(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectLegalHold.html"""
    lock = await _found(gateway, request)
    if lock.hold is None:
        raise NoSuchObjectLockConfiguration()
    return Response(200, list(XML), lock_documents.hold_document(lock.hold))


@operation("PUT", "key", "legal-hold", name="PutObjectLegalHold", action="s3:PutObjectLegalHold", each=True)
async def put_object_legal_hold(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectLegalHold.html"""
    asked = versions.asked(request)
    hold = lock_documents.hold_of_document(await document(request))
    request.lock = Lock(hold=hold)
    if request.undecided:
        rights.check_key(request, "s3:PutObjectLegalHold", request.key or "", asked)
    locks.check_enabled(request.bucket_row)
    return await _renew(gateway, request, lambda old: old._replace(hold=hold))


async def _found(gateway: Gateway, request: S3Request) -> Lock:
    """The lock of the version that a request names. Raises InvalidRequest in a bucket without object lock."""
    version = await find(gateway, request)
    locks.check_enabled(request.bucket_row)
    return metadata.lock(version.headers)


async def _renew(
    gateway: Gateway, request: S3Request, change: Callable[[Lock], Lock], *, bypass: bool = False
) -> Response:
    """Give a version another lock, which is beside its data before the answer. Raises what `renew` raises."""

    def changed(version: Version) -> str:
        return metadata.renewed(version.headers, lock=change(metadata.lock(version.headers)))

    version = await renew(gateway, request, changed, bypass=bypass)
    await written_down(gateway.store_of(request), request.bucket_row, version.key, version, version.headers)
    return Response(200, versions.of(request.bucket_row, version.version_id))
