"""Version ids in requests and responses, and the errors for delete markers."""

from __future__ import annotations

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import NULL_VERSION, CommitResult, Version
from sluice_s3.app.index.versioning import version_ids
from sluice_s3.app.index.versioning.rows import DeleteResult
from sluice_s3.app.s3.errors import InvalidArgument, MethodNotAllowed, NoSuchKey, S3Error
from sluice_s3.app.s3.routing import ACTIONS_WITH_VERSION_ID, Operation
from sluice_s3.app.s3.wire.dates import http_date
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers

READ_OPERATIONS = frozenset({"GET", "HEAD"})


def requested_version_id(request: S3Request) -> str | None:
    """Return the `versionId` of the query. Raises InvalidArgument for an impossible one."""
    value = request.query.get("versionId") if request.query else None
    if value is not None:
        require_version_id(request.bucket_row, value)
    return value


def reject_unexpected_version_id(request: S3Request, operation: Operation) -> None:
    """Raise InvalidArgument for a `versionId` on an operation without versions."""
    if request.key is not None and operation.action not in ACTIONS_WITH_VERSION_ID:
        value = request.query["versionId"][:1024]
        message = "This operation does not accept a version-id."
        raise InvalidArgument(message, ArgumentName="versionId", ArgumentValue=value)


def require_version_id(bucket: Bucket, version_id: str) -> None:
    """Raise InvalidArgument for an id that no version of the bucket can have."""
    if version_id == "":
        raise InvalidArgument("Version id cannot be the empty string", ArgumentName="versionId", ArgumentValue="")
    if not may_exist(bucket, version_id):
        raise InvalidArgument("Invalid version id specified", ArgumentName="versionId", ArgumentValue=version_id[:1024])


def may_exist(bucket: Bucket, version_id: str) -> bool:
    """Return whether a version of the bucket can have this id. Without versioning only `null` exists."""
    return version_ids.is_version_id(version_id) if bucket.versioning else version_id == NULL_VERSION


def version_header(bucket: Bucket, version_id: str) -> Headers:
    """Return `x-amz-version-id` of a version, where the bucket keeps versions or did."""
    if version_id == NULL_VERSION and not bucket.versioning:
        return []
    return [(b"x-amz-version-id", version_id.encode())]


def headers_of_put(version_id: str) -> Headers:
    """Return the same for a new version. One without an id has no header (API reference, PutObject)."""
    return [] if version_id == NULL_VERSION else [(b"x-amz-version-id", version_id.encode())]


def headers_of_copy_source(found: Version) -> Headers:
    """Return `x-amz-copy-source-version-id`, for a source with an id of its own."""
    if found.version_id == NULL_VERSION:
        return []
    return [(b"x-amz-copy-source-version-id", found.version_id.encode())]


def headers_of_delete(named: str | None, result: CommitResult | DeleteResult | None) -> Headers:
    """Return the headers of a delete: the new delete marker, or the removed version."""
    if isinstance(result, DeleteResult):
        removed: Headers = [(b"x-amz-version-id", result.version_id.encode())]
        return [*removed, (b"x-amz-delete-marker", b"true")] if result.marker else removed
    return [] if named is None else [(b"x-amz-version-id", named.encode())]


def delete_marker_error(request: S3Request, marker: Version) -> S3Error:
    """Return the error where a delete marker is newest: nothing to read or change."""
    if request.method in READ_OPERATIONS or "x-amz-copy-source" in request.headers:
        return NoSuchKey(Key=marker.key, headers=_fields(marker))
    return marker_not_allowed_error(request, marker)


def marker_not_allowed_error(request: S3Request, marker: Version) -> S3Error:
    """Return the error for any operation but a delete on a delete marker's id.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeleteMarker.html
    """
    fields = _fields(marker) | {"Allow": "DELETE", "Last-Modified": http_date(marker.modified // 1000)}
    return MethodNotAllowed(Method=request.method, ResourceType="DeleteMarker", headers=fields)


def _fields(marker: Version) -> dict[str, str]:
    return {"x-amz-delete-marker": "true", "x-amz-version-id": marker.version_id}
