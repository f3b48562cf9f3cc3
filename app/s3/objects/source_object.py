"""The object that a copy reads: found, authorized and checked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from sluice_s3.app.encryption.scheme import SEALED
from sluice_s3.app.errors import ConditionalRequestConflict, SourceGone
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.errors import InvalidRequest, MethodNotAllowed
from sluice_s3.app.s3.logging.record import SecondaryRecord
from sluice_s3.app.s3.logging.xml import MARK
from sluice_s3.app.s3.objects import copy_source
from sluice_s3.app.s3.objects.find import find_authorized
from sluice_s3.app.s3.restore import archives
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import conditions
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.store import objects

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

T = TypeVar("T")
NEEDS_SIGNATURE = "Anonymous users cannot copy objects.  Please authenticate."
MAX_COPY_BYTES = 5 * 1024**3
"""Bytes that one CopyObject or UploadPartCopy may copy."""


class NeedsByteCopy(Exception):
    """The bytes must be copied: to another store, a plain file or another encryption."""


class SourceObject:
    """The object of `x-amz-copy-source`, with its bucket authorized."""

    def __init__(
        self, services: Services, request: S3Request, bucket: Bucket, key: str, version_id: str | None
    ) -> None:
        self._services = services
        self._request = request
        self.bucket = bucket
        self.key = key
        self.version_id = version_id

    async def find(self) -> Version:
        """Return the version to copy. Raises as GetObject, and by the conditions on a source."""
        services, request = self._services, self._request
        try:
            version = await find_authorized(services, request, self.bucket, self.key, self.version_id)
        except MethodNotAllowed:
            raise InvalidRequest(
                "The source of a copy request may not specifically refer to a delete marker by version id."
            ) from None
        conditions.check_copy_source(request.headers, version.etag, version.modified)
        archives.require_restored(services, version, archives.SOURCE_ARCHIVED)
        if SEALED in version.headers:
            await services.store.keyring.refresh()  # its key may have been disabled
        return version

    def is_in_store_of(self, bucket: Bucket) -> bool:
        """Return whether a copy can reference the source's blobs: same store, and no plain files."""
        return self.bucket.store == bucket.store and self._services.tree_of(bucket) is None


async def authorize_source(services: Services, request: S3Request) -> SourceObject:
    """Parse and authorize the source of a copy. Raises InvalidArgument, NoSuchBucket, AccessDenied."""
    name, key, version_id = copy_source.parse_copy_source(request.headers["x-amz-copy-source"])
    bucket = await services.bucket(name)
    authorization.authorize_copy_source(request, bucket, key, version_id)
    if MARK in bucket.settings:
        operation = "REST.COPY.PART_GET" if request.operation == "UploadPartCopy" else "REST.COPY.OBJECT_GET"
        request.secondary_records = [SecondaryRecord(bucket, operation, key, version_id or "")]
    if version_id is not None:
        version_headers.require_version_id(bucket, version_id)
    return SourceObject(services, request, bucket, key, version_id)


def require_copyable_size(size: int) -> None:
    """Raise InvalidRequest for more than MAX_COPY_BYTES."""
    if size > MAX_COPY_BYTES:
        raise InvalidRequest(
            f"The specified copy source is larger than the maximum allowable size for a copy source: {MAX_COPY_BYTES}"
        )


async def retry_while_source_changes(copy: Callable[[], Awaitable[T]]) -> T:
    """Run a copy of bytes, and repeat it while another program changes its plain file."""
    for _ in range(objects.MAX_SOURCE_RETRIES):
        try:
            return await copy()
        except SourceGone:
            continue
    raise ConditionalRequestConflict()
