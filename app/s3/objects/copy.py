"""CopyObject and UploadPartCopy.

Within one store of the objects layout no byte is written, and bytes are read only for a hash that is not stored.
Otherwise the bytes are copied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from sluice_s3.app.encryption.scheme import SEALED, scheme_of
from sluice_s3.app.encryption.sse_c import CustomerKey
from sluice_s3.app.errors import ConditionalRequestConflict, SourceGone
from sluice_s3.app.index.object_lock import NONE
from sluice_s3.app.index.rows import (
    Bucket,
    CommitResult,
    Conditions,
    Extent,
    NewVersion,
    Part,
    Upload,
    Version,
    is_plain_file,
)
from sluice_s3.app.s3.acl import grants as acls
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import InvalidArgument, InvalidRequest, MethodNotAllowed
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.logging.record import SecondaryRecord
from sluice_s3.app.s3.logging.xml import MARK
from sluice_s3.app.s3.multipart.uploads import (
    part_checksum_algorithm,
    part_encryption,
    part_number,
    require_open_upload,
)
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.objects import copy_source
from sluice_s3.app.s3.objects.find import find_authorized
from sluice_s3.app.s3.restore import archives
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.tagging import tags
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import checksums, conditions, metadata, xml
from sluice_s3.app.s3.wire.ranges import parse_copy_range
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Headers, Response
from sluice_s3.app.store import multipart, objects, reading
from sluice_s3.app.store.encryption.encrypted_source import ObjectEncryption
from sluice_s3.app.store.journals.wait import wait_until_journaled
from sluice_s3.app.store.placing import can_share_blobs
from sluice_s3.app.store.plain_files.reads import is_provisional_etag
from sluice_s3.storage_drivers.base import BodySource as DriverSource
from sluice_s3.storage_drivers.base import Buffer

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

T = TypeVar("T")
COPIED_BY = "Anonymous users cannot copy objects.  Please authenticate."
MAX_COPY = 5 * 1024**3
"""Bytes that one CopyObject or UploadPartCopy may copy."""
CHANGING_HEADERS = frozenset({"x-amz-storage-class", metadata.REDIRECT})
"""Headers that allow a copy onto itself, even when they repeat what the object has.

The default storage class, where none is named, does not, as on AWS.
"""
ONTO_ITSELF = (
    "This copy request is illegal because it is trying to copy an object to itself without changing the object's "
    "metadata, storage class, website redirect location or encryption attributes."
)


class CopySource(NamedTuple):
    """The object of `x-amz-copy-source`, with its bucket authorized."""

    bucket: Bucket
    key: str
    version_id: str | None


async def _source(services: Services, request: S3Request) -> CopySource:
    """Parse and authorize the source. Raises InvalidArgument, NoSuchBucket, AccessDenied."""
    bucket, key, version_id = copy_source.parse_copy_source(request.headers["x-amz-copy-source"])
    row = await services.bucket(bucket)
    authorization.authorize_copy_source(request, row, key, version_id)
    if MARK in row.settings:
        operation = "REST.COPY.PART_GET" if request.operation == "UploadPartCopy" else "REST.COPY.OBJECT_GET"
        request.secondary_records = [SecondaryRecord(row, operation, key, version_id or "")]
    if version_id is not None:
        version_headers.require_version_id(row, version_id)
    return CopySource(row, key, version_id)


async def _find(services: Services, request: S3Request, source: CopySource) -> Version:
    try:
        version = await find_authorized(services, request, source.bucket, source.key, source.version_id)
    except MethodNotAllowed:
        raise InvalidRequest(
            "The source of a copy request may not specifically refer to a delete marker by version id."
        ) from None
    conditions.check_copy_source(request.headers, version.etag, version.modified)
    archives.require_restored(services, version, archives.SOURCE_ARCHIVED)
    if SEALED in version.headers:
        await services.store.keyring.refresh()  # its key may have been disabled
    return version


def _directive(request: S3Request, name: str) -> bool:
    """Return whether a directive header is REPLACE. Raises InvalidArgument for an unknown word."""
    value = request.headers.get(name, "COPY")
    if value not in ("COPY", "REPLACE"):
        raise InvalidArgument(f"Unknown {name.split('-')[2]} directive.", ArgumentName=name, ArgumentValue=value)
    return value == "REPLACE"


@operation("PUT", "key", "copy", name="CopyObject", action="s3:PutObject", anonymous_error=COPIED_BY)
async def copy_object(services: Services, request: S3Request) -> Response:
    """Handle CopyObject (https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html)."""
    bucket, key = request.bucket_row, request.key or ""
    preconditions = conditions.write_conditions(request)
    await authorization.authorize_precondition(
        services, request, reveals_state=conditions.reveals_object_state(preconditions)
    )
    replace = _directive(request, "x-amz-metadata-directive")
    _directive(request, tags.DIRECTIVE)
    request_tags = tags.requested_tags(request)
    algorithm = checksums.requested_algorithm(request)[0]
    storage_class = metadata.storage_class(request)
    written = await acls.ownership_of_new_object(services, request)
    lock = lock_headers.lock_of_new_object(request)
    source = await _source(services, request)
    await encryption.load_keyring(services, request)
    seal = encryption.encryption_of_new_object(services, request)
    onto_itself = source.bucket.id == bucket.id and source.key == key and source.version_id is None
    room = services.quotas.room(bucket)

    async def describe(found: Version) -> NewVersion:
        if found.size > MAX_COPY:
            raise InvalidRequest(
                f"The specified copy source is larger than the maximum allowable size for a copy source: {MAX_COPY}"
            )
        await room.take(found.size)
        changed = (
            replace
            or not CHANGING_HEADERS.isdisjoint(request.headers)
            or encryption.changes_encryption(request, seal, found)
        )
        if onto_itself and not changed:
            raise InvalidRequest(ONTO_ITSELF)
        source_tags = request_tags if tags.applies_tag_header(request) else metadata.tags(found.headers)
        if source_tags:
            authorization.authorize_tags(request)
            if source_tags is not request_tags:
                authorization.authorize_source_tags(request, source.bucket, found, source.version_id)
        scheme = None if seal is None else seal.scheme
        headers = metadata.pack_headers(
            _headers_of_copy(request, found, replace), written.grants, source_tags, lock, scheme
        )
        customer = encryption.source_key(services, request, found)
        return await _new_version(services, found, headers, storage_class, algorithm, written, customer)

    async def describe_shared(found: Version) -> NewVersion:
        placed = can_share_blobs(services.store, source.bucket, found, services.store_of(request, storage_class))
        if not placed or not encryption.is_same_key(services, request, seal, found):
            raise _NeedsByteCopy
        return await describe(found)

    find = partial(_find, services, request, source)
    await encryption.wait_until_key_journaled(services, request, seal)
    async with room:
        try:
            if not _shares(services, source, bucket):
                raise _NeedsByteCopy
            address = (bucket.id, key)
            found, committed = await objects.copy(
                services.store, find, *address, describe_shared, preconditions, request.timings
            )
        except _NeedsByteCopy:
            found, committed = await _retry_while_source_changes(
                lambda: _copy_bytes(services, request, source, describe, preconditions, seal)
            )
    if lock != NONE:
        await wait_until_journaled(
            services.store_of(request), bucket, key, committed, metadata.pack_headers({}, lock=lock)
        )
    version = await services.index.version(bucket.id, key, committed.version_id)
    result = version if version is not None and version.seq == committed.seq else found
    content = (
        f"<LastModified>{xml.timestamp(committed.modified)}</LastModified><ETag>&quot;{result.etag}&quot;</ETag>"
        + (xml.element("Checksum" + result.checksum_algorithm, result.checksum) if result.checksum else "")
        + xml.optional("ChecksumType", result.checksum_type)
    )
    headers = [
        *XML,
        *version_headers.headers_of_copy_source(found),
        *version_headers.headers_of_put(committed.version_id),
    ]
    version_fields = (key, result.size, committed.modified, result.headers)
    headers += lifecycle.expiration_header(bucket, services.settings.lifecycle_day_seconds, *version_fields)
    headers += encryption.response_headers(request, None if seal is None else seal.scheme)
    return Response(200, headers, xml.document("CopyObjectResult", content))


class _NeedsByteCopy(Exception):
    """The bytes must be copied: to another store, a plain file or another encryption."""


def _shares(services: Services, source: CopySource, bucket: Bucket) -> bool:
    """Return whether a copy can reference the source's blobs: same store, and no plain files."""
    return source.bucket.store == bucket.store and services.tree_of(bucket) is None


async def _retry_while_source_changes(copy: Callable[[], Awaitable[T]]) -> T:
    """Run a copy of bytes, and repeat it while another program changes its plain file."""
    for _ in range(objects.MAX_SOURCE_RETRIES):
        try:
            return await copy()
        except SourceGone:
            continue
    raise ConditionalRequestConflict()


async def _copy_bytes(
    services: Services,
    request: S3Request,
    source: CopySource,
    describe: Callable[[Version], Awaitable[NewVersion]],
    preconditions: Conditions | None,
    seal: ObjectEncryption | None,
) -> tuple[Version, CommitResult]:
    bucket, key = request.bucket_row, request.key or ""
    found = await _find(services, request, source)
    hashed = _CopyHasher(await describe(found), found, seal)
    tree = services.tree_of(bucket)
    if tree is not None and hashed.has_hashes and is_plain_file(found.body) and source.bucket.store == bucket.store:
        pieces = tree.slices(found.body, found.size)
        return found, await tree.put_pieces(bucket, key, pieces, hashed.describe, preconditions, request.timings)
    customer = encryption.source_key(services, request, found)
    body = reading.VersionSource(services.store, found, 0, found.size, hashed.take, customer)
    if tree is not None:
        return found, await tree.put(bucket, key, body, hashed.describe, preconditions, request.timings)
    address = (services.store_of(request, metadata.storage_class(request)), bucket.id, key)
    written: DriverSource = body if seal is None else seal.source(body)
    return found, await objects.put(*address, written, hashed.describe, preconditions, request.timings)


class _CopyHasher:
    """The version of a byte copy: one blob, so that parts' hashes are recomputed.

    Also computed are the ETag of a plain file that is not hashed yet, and an opaque ETag where an MD5 is needed.
    """

    def __init__(self, new: NewVersion, found: Version, seal: ObjectEncryption | None) -> None:
        if not new.checksum:
            new = new._replace(checksum_algorithm="CRC64NVME")
        self._new = new
        self._seal = seal
        before = scheme_of(found.headers)
        unhashed = new.parts or is_provisional_etag(found) or (before is not None and before.is_opaque)
        self._md5 = hashlib.md5(usedforsecurity=False) if unhashed else None
        unknown = new.checksum_type == "COMPOSITE" or not new.checksum
        self._checksum = checksums.ALGORITHMS[new.checksum_algorithm].new() if unknown else None

    @property
    def has_hashes(self) -> bool:
        """All hashes are known without reading the bytes."""
        return self._md5 is None and self._checksum is None

    def take(self, piece: Buffer) -> None:
        """Take a piece of the body."""
        if self._md5 is not None:
            self._md5.update(piece)
        if self._checksum is not None:
            self._checksum.update(piece)

    def describe(self, locator: str) -> NewVersion:
        """Return the version, after the whole body."""
        new = self._new._replace(body=locator, parts=0)
        if self._md5 is not None:
            new = new._replace(etag=self._md5.hexdigest())
        if self._seal is not None:
            new = new._replace(etag=self._seal.etag(new.etag))
        if self._checksum is not None:
            new = new._replace(checksum_type="FULL_OBJECT", checksum=self._checksum.digest_base64())
        return new


def _headers_of_copy(request: S3Request, found: Version, replace: bool) -> dict[str, str]:
    """Return the headers of a copy: the request's with `replace`, else its source's."""
    if replace:
        return metadata.object_headers(request)
    headers = metadata.unpack_headers(found.headers)
    headers.pop(metadata.REDIRECT, None)
    return headers | metadata.redirect(request)


async def _new_version(
    services: Services,
    found: Version,
    stored_headers: str,
    storage_class: str,
    algorithm: str,
    written: acls.NewObjectOwnership,
    customer: CustomerKey | None,
) -> NewVersion:
    checksum = found.checksum_algorithm, found.checksum_type, found.checksum
    if algorithm and (algorithm != found.checksum_algorithm or found.checksum_type != "FULL_OBJECT"):
        hasher = checksums.ALGORITHMS[algorithm].new()
        await reading.feed_bytes(services.store, found, 0, found.size, hasher.update, customer)
        checksum = algorithm, "FULL_OBJECT", hasher.digest_base64()
    return NewVersion(
        found.size,
        found.etag,
        stored_headers,
        storage_class,
        *checksum,
        body=found.body,
        parts=found.parts,
        owner_id=written.owner_id,
    )


@operation("PUT", "key", "uploadId+copy", name="UploadPartCopy", action="s3:PutObject", anonymous_error=COPIED_BY)
async def upload_part_copy(services: Services, request: S3Request) -> Response:
    """Handle UploadPartCopy (https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPartCopy.html)."""
    number = part_number(request)
    source = await _source(services, request)
    upload = await require_open_upload(services, request)
    seal = await part_encryption(services, request, upload)
    preconditions = request.headers.get("x-amz-copy-source-range")
    store = services.store_of(request, upload.storage_class)

    def bounds(found: Version) -> tuple[int, int]:
        offset, length = (0, found.size) if preconditions is None else parse_copy_range(preconditions, found.size)
        if length > MAX_COPY:
            raise InvalidRequest(
                f"The specified copy source is larger than the maximum allowable size for a copy source: {MAX_COPY}"
            )
        return offset, length

    room = services.quotas.room(request.bucket_row)

    async def describe(found: Version) -> tuple[Part, int, int]:
        offset, length = bounds(found)
        whole = length == found.size or SEALED not in found.headers
        placed = can_share_blobs(services.store, source.bucket, found, store)
        if not (placed and whole and encryption.is_same_key(services, request, seal, found)):
            raise _NeedsByteCopy
        await room.take(length, 0)
        customer = encryption.source_key(services, request, found)
        return await _hash(services, upload, number, found, offset, length, customer, seal), offset, length

    async def copy() -> tuple[Version, Part, CommitResult]:
        found = await find()
        offset, length = bounds(found)
        await room.take(length, 0)
        hashes = _PartHashes(upload, number, length, seal)
        customer = encryption.source_key(services, request, found)
        body = reading.VersionSource(services.store, found, offset, length, hashes.take, customer)
        written: DriverSource = body if seal is None else seal.source(body)
        part = await multipart.put_part(store, upload, written, hashes.part, request.timings)
        return found, hashes.part(()), part

    find = partial(_find, services, request, source)
    async with room:
        try:
            if not _shares(services, source, request.bucket_row):
                raise _NeedsByteCopy
            found, part, committed = await multipart.copy_part(services.store, find, upload, describe, request.timings)
        except _NeedsByteCopy:
            found, part, committed = await _retry_while_source_changes(copy)
    content = (
        f"<LastModified>{xml.timestamp(committed.modified)}</LastModified><ETag>&quot;{part.etag}&quot;</ETag>"
        + (xml.element("Checksum" + part.checksum_algorithm, part.checksum) if upload.checksum_algorithm else "")
    )
    headers: Headers = [*XML, *version_headers.headers_of_copy_source(found)]
    headers += encryption.response_headers(request, None if seal is None else seal.scheme)
    return Response(200, headers, xml.document("CopyPartResult", content))


async def _hash(
    services: Services,
    upload: Upload,
    number: int,
    found: Version,
    offset: int,
    length: int,
    customer: CustomerKey | None,
    seal: ObjectEncryption | None,
) -> Part:
    """Return the part with ETag and checksum. They are the source's for the same bytes, else computed by reading."""
    algorithm = part_checksum_algorithm(upload)
    whole = length == found.size and not found.parts
    if whole and found.checksum_algorithm == algorithm and found.checksum_type == "FULL_OBJECT":
        return Part(number, length, found.etag, 0, algorithm, found.checksum, ())
    hashes = _PartHashes(upload, number, length, seal)
    await reading.feed_bytes(services.store, found, offset, length, hashes.take, customer)
    return hashes.part(())


class _PartHashes:
    """ETag and checksum of a copied part."""

    def __init__(self, upload: Upload, number: int, size: int, seal: ObjectEncryption | None) -> None:
        self._seal = seal
        self._number = number
        self._size = size
        self._algorithm = part_checksum_algorithm(upload)
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._checksum = checksums.ALGORITHMS[self._algorithm].new()

    def take(self, piece: Buffer) -> None:
        """Take a piece of its bytes."""
        self._md5.update(piece)
        self._checksum.update(piece)

    def part(self, extents: tuple[Extent, ...]) -> Part:
        """Return the part, after all its bytes."""
        md5 = self._md5.hexdigest()
        etag = md5 if self._seal is None else self._seal.etag(md5)
        hashes = etag, 0, self._algorithm, self._checksum.digest_base64()
        return Part(self._number, self._size, *hashes, extents)
