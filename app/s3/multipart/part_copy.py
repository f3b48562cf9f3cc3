"""UploadPartCopy.

As with CopyObject, no byte is written within one store of the objects layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.encryption.scheme import SEALED
from sluice_s3.app.encryption.sse_c import CustomerKey
from sluice_s3.app.index.multipart.rows import Extent, Part, Upload
from sluice_s3.app.index.objects.rows import CommitResult, Version
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.multipart.uploads import (
    part_checksum_algorithm,
    part_encryption,
    part_number,
    require_open_upload,
)
from sluice_s3.app.s3.objects.source_object import (
    NEEDS_SIGNATURE,
    NeedsByteCopy,
    SourceObject,
    authorize_source,
    require_copyable_size,
    retry_while_source_changes,
)
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.content_hashes import ContentHashes
from sluice_s3.app.s3.wire.ranges import parse_copy_range
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Headers, Response
from sluice_s3.app.store import multipart, reading
from sluice_s3.app.store.encryption.encrypted_source import ObjectEncryption
from sluice_s3.app.store.placing import can_share_blobs
from sluice_s3.storage_drivers.base import BodySource as DriverSource

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

Committed = tuple[Version, Part, CommitResult]


@operation("PUT", "key", "uploadId+copy", name="UploadPartCopy", action="s3:PutObject", anonymous_error=NEEDS_SIGNATURE)
async def upload_part_copy(services: Services, request: S3Request) -> Response:
    """Handle UploadPartCopy (https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPartCopy.html)."""
    number = part_number(request)
    source = await authorize_source(services, request)
    upload = await require_open_upload(services, request)
    seal = await part_encryption(services, request, upload)
    found, part, committed = await PartCopy(services, request, source, upload, number, seal).run()
    content = (
        f"<LastModified>{xml.timestamp(committed.modified)}</LastModified><ETag>&quot;{part.etag}&quot;</ETag>"
        + (xml.element("Checksum" + part.checksum_algorithm, part.checksum) if upload.checksum_algorithm else "")
    )
    headers: Headers = [*XML, *version_headers.headers_of_copy_source(found)]
    headers += encryption.response_headers(request, None if seal is None else seal.scheme)
    return Response(200, headers, xml.document("CopyPartResult", content))


class PartCopy:
    """One UploadPartCopy of a source into part `number`."""

    def __init__(
        self,
        services: Services,
        request: S3Request,
        source: SourceObject,
        upload: Upload,
        number: int,
        seal: ObjectEncryption | None,
    ) -> None:
        self._services = services
        self._request = request
        self._source = source
        self._upload = upload
        self._number = number
        self._seal = seal
        self._range = request.headers.get("x-amz-copy-source-range")
        self._store = services.store_of(request, upload.storage_class)
        self._room = services.quotas.room(request.bucket_row)

    async def run(self) -> Committed:
        """Copy; return the source's version, the part and its commit. Raises S3Error, DomainError."""
        services, request, source = self._services, self._request, self._source
        async with self._room:
            try:
                if not source.is_in_store_of(request.bucket_row):
                    raise NeedsByteCopy
                return await multipart.copy_part(
                    services.store, source.find, self._upload, self._describe_shared, request.timings
                )
            except NeedsByteCopy:
                return await retry_while_source_changes(self._copy_bytes)

    def _bounds(self, found: Version) -> tuple[int, int]:
        """Return offset and length in bytes. Raises InvalidArgument, InvalidRequest."""
        offset, length = (0, found.size) if self._range is None else parse_copy_range(self._range, found.size)
        require_copyable_size(length)
        return offset, length

    async def _describe_shared(self, found: Version) -> tuple[Part, int, int]:
        """Return the part with its bytes in the source's body. Raises NeedsByteCopy when it cannot have them."""
        services, request = self._services, self._request
        offset, length = self._bounds(found)
        whole = length == found.size or SEALED not in found.headers
        placed = can_share_blobs(services.store, self._source.bucket, found, self._store)
        if not (placed and whole and encryption.is_same_key(services, request, self._seal, found)):
            raise NeedsByteCopy
        await self._room.take(length, 0)
        customer = encryption.source_key(services, request, found)
        return await self._hash(found, offset, length, customer), offset, length

    async def _copy_bytes(self) -> Committed:
        services, request = self._services, self._request
        found = await self._source.find()
        offset, length = self._bounds(found)
        await self._room.take(length, 0)
        hashes = self._new_hashes(length)
        customer = encryption.source_key(services, request, found)
        body = reading.VersionSource(services.store, found, offset, length, hashes.take, customer)
        source: DriverSource = body if self._seal is None else self._seal.source(body)
        committed = await multipart.put_part(self._store, self._upload, source, hashes.part, request.timings)
        return found, hashes.part(()), committed

    def _new_hashes(self, length: int) -> _PartHashes:
        return _PartHashes(self._store.etag_kind, self._upload, self._number, length, self._seal)

    async def _hash(self, found: Version, offset: int, length: int, customer: CustomerKey | None) -> Part:
        """Return the part with ETag and checksum: the source's for the same bytes, else computed by reading."""
        algorithm = part_checksum_algorithm(self._upload)
        whole = length == found.size and not found.parts
        if whole and found.checksum_algorithm == algorithm and found.checksum_type == "FULL_OBJECT":
            return Part(self._number, length, found.etag, 0, algorithm, found.checksum, ())
        hashes = self._new_hashes(length)
        await reading.feed_bytes(self._services.store, found, offset, length, hashes.take, customer)
        return hashes.part(())


class _PartHashes:
    """ETag and checksum of a copied part."""

    def __init__(self, etag_kind: str, upload: Upload, number: int, size: int, seal: ObjectEncryption | None) -> None:
        self._seal = seal
        self._number = number
        self._size = size
        self._algorithm = part_checksum_algorithm(upload)
        self._hashes = ContentHashes(etag_kind, self._algorithm)
        self.take = self._hashes.update

    def part(self, extents: tuple[Extent, ...]) -> Part:
        """Return the part, after all its bytes."""
        etag = self._hashes.etag if self._seal is None else self._seal.etag(self._hashes.etag)
        hashes = etag, 0, self._algorithm, self._hashes.checksum
        return Part(self._number, self._size, *hashes, extents)
