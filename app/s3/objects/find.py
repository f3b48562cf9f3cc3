"""Finds the version that a request names, with the caller's permission for it."""

from __future__ import annotations

from collections.abc import Awaitable
from time import perf_counter
from typing import TYPE_CHECKING

from sluice_s3.app.errors import DomainError, NoSuchKey, NoSuchVersion
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import NULL_VERSION, Version
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.errors import S3Error
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire.request import S3Request

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


def find_version(services: Services, request: S3Request) -> Awaitable[Version]:
    """Return the version that a request names.

    Raises NoSuchKey, NoSuchVersion, MethodNotAllowed for a delete marker, and InvalidArgument for an invalid version
    id.
    """
    version_id = version_headers.requested_version_id(request) if request.query else None
    return find_authorized(services, request, request.bucket_row, request.key or "", version_id)


async def find_authorized(
    services: Services, request: S3Request, bucket: Bucket, key: str, version_id: str | None
) -> Version:
    """Return a version, with the caller's open permissions resolved.

    Raises AccessDenied, also for a missing object whose absence the caller may not know, and MethodNotAllowed for a
    delete marker.
    """
    started = perf_counter()
    version = await services.look_up(bucket, key, version_id)
    request.timings["index"] = perf_counter() - started
    if version is None:
        raise await _not_found(services, request, bucket, key, version_id)
    authorization.authorize_found_version(request, bucket, version)
    if version.is_marker:
        raise version_headers.marker_not_allowed_error(request, version)
    return version


async def _not_found(
    services: Services, request: S3Request, bucket: Bucket, key: str, version_id: str | None
) -> S3Error | DomainError:
    """Return the error for a missing object. Raises AccessDenied when the caller may not know that."""
    authorization.require_list_permission(request, bucket, key)
    marker = await services.index.current_marker(bucket.id, key) if bucket.versioning and not version_id else None
    if marker is not None:
        return version_headers.delete_marker_error(request, marker)
    if version_id is not None and (bucket.versioning or version_id != NULL_VERSION):
        return NoSuchVersion(key=key, version_id=version_id)
    return NoSuchKey(key=key)
