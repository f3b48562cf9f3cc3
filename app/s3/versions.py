"""Versions as S3 shows them: their ids in requests and answers, and what stands where there is a delete marker."""

from __future__ import annotations

from app.index import version_ids
from app.index.rows import NULL_VERSION, Bucket, Committed, Version
from app.index.version_rows import Deleted
from app.s3.dates import http_date
from app.s3.dispatch import OF_VERSIONS, Operation
from app.s3.errors import InvalidArgument, MethodNotAllowed, NoSuchKey, S3Error
from app.s3.request import S3Request
from app.s3.response import Headers

READS = frozenset({"GET", "HEAD"})


def asked(request: S3Request) -> str | None:
    """The `versionId` of the query. Raises InvalidArgument when the bucket cannot have such a version."""
    value = request.query.get("versionId") if request.query else None
    if value is not None:
        check(request.bucket_row, value)
    return value


def check_is_taken(request: S3Request, operation: Operation) -> None:
    """Raises InvalidArgument for a `versionId` given to what is not done to versions."""
    if request.key is not None and operation.action not in OF_VERSIONS:
        value = request.query["versionId"][:1024]
        message = "This operation does not accept a version-id."
        raise InvalidArgument(message, ArgumentName="versionId", ArgumentValue=value)


def check(bucket: Bucket, version_id: str) -> None:
    """Raises InvalidArgument for an id that no version of the bucket can have."""
    if version_id == "":
        raise InvalidArgument("Version id cannot be the empty string", ArgumentName="versionId", ArgumentValue="")
    if not is_possible(bucket, version_id):
        raise InvalidArgument("Invalid version id specified", ArgumentName="versionId", ArgumentValue=version_id[:1024])


def is_possible(bucket: Bucket, version_id: str) -> bool:
    """Whether a version of the bucket can have this id. One that never kept versions knows only `null`."""
    return version_ids.is_possible(version_id) if bucket.versioning else version_id == NULL_VERSION


def of(bucket: Bucket, version_id: str) -> Headers:
    """`x-amz-version-id` of a version that is there, where the bucket keeps versions or did."""
    if version_id == NULL_VERSION and not bucket.versioning:
        return []
    return [(b"x-amz-version-id", version_id.encode())]


def of_written(version_id: str) -> Headers:
    """The same of a version that was made: one without an id of its own is not told (API reference, PutObject)."""
    return [] if version_id == NULL_VERSION else [(b"x-amz-version-id", version_id.encode())]


def of_copied(found: Version) -> Headers:
    """`x-amz-copy-source-version-id`, for a source that has an id of its own."""
    if found.version_id == NULL_VERSION:
        return []
    return [(b"x-amz-copy-source-version-id", found.version_id.encode())]


def of_delete(named: str | None, done: Committed | Deleted | None) -> Headers:
    """What a delete answers: the delete marker that it made, or which version it removed."""
    if isinstance(done, Deleted):
        removed: Headers = [(b"x-amz-version-id", done.version_id.encode())]
        return [*removed, (b"x-amz-delete-marker", b"true")] if done.marker else removed
    return [] if named is None else [(b"x-amz-version-id", named.encode())]


def deleted(request: S3Request, marker: Version) -> S3Error:
    """The answer where a delete marker is the newest version: there is nothing to read, and nothing to change."""
    if request.method in READS or "x-amz-copy-source" in request.headers:
        return NoSuchKey(Key=marker.key, headers=_fields(marker))
    return not_allowed(request, marker)


def not_allowed(request: S3Request, marker: Version) -> S3Error:
    """The answer to what asks anything but a delete of a delete marker by its id.

    https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeleteMarker.html
    """
    fields = _fields(marker) | {"Allow": "DELETE", "Last-Modified": http_date(marker.modified // 1000)}
    return MethodNotAllowed(Method=request.method, ResourceType="DeleteMarker", headers=fields)


def _fields(marker: Version) -> dict[str, str]:
    return {"x-amz-delete-marker": "true", "x-amz-version-id": marker.version_id}
