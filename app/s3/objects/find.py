"""Finds the version that a request names, with the caller's permission for it."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

from sluice_s3.app.errors import NoSuchKey, NoSuchVersion, WouldBlock
from sluice_s3.app.index.rows import Bucket, Version
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire.request import S3Request

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


async def find_version(services: Services, request: S3Request) -> Version:
    """Return the version that a request names.

    Raises NoSuchKey, NoSuchVersion, MethodNotAllowed for a delete marker, and InvalidArgument for an invalid version
    id.
    """
    started = perf_counter()
    assert request.key is not None
    version_id = version_headers.requested_version_id(request)
    version = await find_authorized(services, request, request.bucket_row, request.key, version_id)
    request.timings["index"] = perf_counter() - started
    return version


def try_find_version(services: Services, request: S3Request) -> Version:
    """Return the current object. Raises NoSuchKey, and WouldBlock when the request names a version."""
    started = perf_counter()
    assert request.key is not None
    if "versionId" in request.query:
        raise WouldBlock
    version = services.index.try_version(request.bucket_row.id, request.key)
    if version is None:
        if request.bucket_row.versioning:
            raise WouldBlock  # to check for a delete marker
        authorization.require_list_permission(request, request.bucket_row, request.key)
        raise NoSuchKey(key=request.key)
    if request.pending_permissions:
        authorization.authorize_found_version(request, request.bucket_row, version)
    request.timings["index"] = perf_counter() - started
    return version


async def find_authorized(
    services: Services, request: S3Request, bucket: Bucket, key: str, version_id: str | None
) -> Version:
    """Return a version, with the caller's open permissions resolved.

    Raises AccessDenied, also for a missing object whose absence the caller may not know, and MethodNotAllowed for a
    delete marker.
    """
    try:
        version = await services.find(bucket, key, version_id)
    except (NoSuchKey, NoSuchVersion):
        authorization.require_list_permission(request, bucket, key)
        marker = await services.index.current_marker(bucket.id, key) if bucket.versioning and not version_id else None
        if marker is not None:
            raise version_headers.delete_marker_error(request, marker) from None
        if version_id is not None and bucket.versioning:
            raise NoSuchVersion(key=key, version_id=version_id) from None
        raise
    authorization.authorize_found_version(request, bucket, version)
    if version.is_marker:
        raise version_headers.marker_not_allowed_error(request, version)
    return version
