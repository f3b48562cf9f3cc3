"""CopyObject.

Within one store of the objects layout no byte is written, and bytes are read only for a hash that is not stored.
Otherwise the bytes are copied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.encryption.scheme import scheme_of
from sluice_s3.app.index.object_lock.protection import NONE
from sluice_s3.app.index.objects.rows import CommitResult, NewVersion, Version
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.s3.acl import grants as acls
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import InvalidArgument, InvalidRequest
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.objects.source_object import (
    NEEDS_SIGNATURE,
    NeedsByteCopy,
    SourceObject,
    authorize_source,
    require_copyable_size,
    retry_while_source_changes,
)
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.tagging import tags
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import checksums, conditions, metadata, xml
from sluice_s3.app.s3.wire.content_hashes import ContentHashes
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.encryption.encrypted_source import ObjectEncryption
from sluice_s3.app.store.etags import CRC64NVME, crc64_etag, kind_of
from sluice_s3.app.store.journals.wait import wait_until_journaled
from sluice_s3.app.store.placing import can_share_blobs
from sluice_s3.storage_drivers.base import BodySource as DriverSource

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

CHANGING_HEADERS = frozenset({"x-amz-storage-class", metadata.REDIRECT})
"""Headers that allow a copy onto itself, even when they repeat what the object has.

The default storage class, where none is named, does not, as on AWS.
"""
ONTO_ITSELF = (
    "This copy request is illegal because it is trying to copy an object to itself without changing the object's "
    "metadata, storage class, website redirect location or encryption attributes."
)


@operation("PUT", "key", "copy", name="CopyObject", action="s3:PutObject", anonymous_error=NEEDS_SIGNATURE)
async def copy_object(services: Services, request: S3Request) -> Response:
    """Handle CopyObject (https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html)."""
    copy = ObjectCopy(services, request)
    await copy.prepare()
    found, committed = await copy.run()
    return await copy.answer(found, committed)


def _directive(request: S3Request, name: str) -> bool:
    """Return whether a directive header is REPLACE. Raises InvalidArgument for an unknown word."""
    value = request.headers.get(name, "COPY")
    if value not in ("COPY", "REPLACE"):
        raise InvalidArgument(f"Unknown {name.split('-')[2]} directive.", ArgumentName=name, ArgumentValue=value)
    return value == "REPLACE"


class ObjectCopy:
    """One CopyObject: call `prepare`, `run` and `answer`, in this order."""

    _source: SourceObject
    _ownership: acls.NewObjectOwnership
    _seal: ObjectEncryption | None

    def __init__(self, services: Services, request: S3Request) -> None:
        self._services = services
        self._request = request
        self._bucket, self._key = request.bucket_row, request.key or ""
        self._preconditions = conditions.write_conditions(request)
        self._room = services.quotas.room(self._bucket)

    async def prepare(self) -> None:
        """Parse and authorize everything that does not depend on the source's version. Raises S3Error."""
        services, request = self._services, self._request
        if conditions.reveals_object_state(self._preconditions):
            await authorization.authorize_precondition(services, request)
        self._replaces_metadata = _directive(request, "x-amz-metadata-directive")
        _directive(request, tags.DIRECTIVE)
        self._tags = tags.requested_tags(request)
        self._algorithm = checksums.requested_algorithm(request)[0]
        self._storage_class = metadata.storage_class(request)
        self._ownership = await acls.ownership_of_new_object(services, request)
        self._lock = lock_headers.lock_of_new_object(request)
        self._source = await authorize_source(services, request)
        await encryption.load_keyring(services, request)
        self._seal = encryption.encryption_of_new_object(services, request)
        await encryption.wait_until_key_journaled(services, request, self._seal)

    async def run(self) -> tuple[Version, CommitResult]:
        """Copy; return the source's version and the new one. Raises S3Error, DomainError."""
        services, request, bucket = self._services, self._request, self._bucket
        async with self._room:
            try:
                if not self._source.is_in_store_of(bucket):
                    raise NeedsByteCopy
                address = (bucket.id, self._key)
                found, committed = await objects.copy(
                    services.store,
                    self._source.find,
                    *address,
                    self._describe_shared,
                    self._preconditions,
                    request.timings,
                )
            except NeedsByteCopy:
                found, committed = await retry_while_source_changes(self._copy_bytes)
        if self._lock != NONE:
            headers = metadata.pack_headers({}, lock=self._lock)
            await wait_until_journaled(services.store_of(request), bucket, self._key, committed, headers)
        return found, committed

    async def answer(self, found: Version, committed: CommitResult) -> Response:
        """Return the response."""
        services, request, bucket, key = self._services, self._request, self._bucket, self._key
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
        headers += encryption.response_headers(request, None if self._seal is None else self._seal.scheme)
        return Response(200, headers, xml.document("CopyObjectResult", content))

    async def _describe_shared(self, found: Version) -> NewVersion:
        """Return the new version with the source's body. Raises NeedsByteCopy when it cannot have it."""
        services, request = self._services, self._request
        store = services.store_of(request, self._storage_class)
        placed = can_share_blobs(services.store, self._source.bucket, found, store)
        if not placed or not encryption.is_same_key(services, request, self._seal, found):
            raise NeedsByteCopy
        return await self._describe(found)

    async def _describe(self, found: Version) -> NewVersion:
        """Return the new version, with its permissions and its quota taken. Raises S3Error."""
        request = self._request
        require_copyable_size(found.size)
        await self._room.take(found.size)
        if self._is_onto_itself() and not self._changes(found):
            raise InvalidRequest(ONTO_ITSELF)
        source_tags = self._tags if tags.applies_tag_header(request) else metadata.tags(found.headers)
        if source_tags:
            authorization.authorize_tags(request)
            if source_tags is not self._tags:
                authorization.authorize_source_tags(request, self._source.bucket, found, self._source.version_id)
        scheme = None if self._seal is None else self._seal.scheme
        headers = metadata.pack_headers(
            self._object_headers(found), self._ownership.grants, source_tags, self._lock, scheme
        )
        return NewVersion(
            found.size,
            found.etag,
            headers,
            self._storage_class,
            *await self._checksum(found),
            body=found.body,
            parts=found.parts,
            owner_id=self._ownership.owner_id,
        )

    def _is_onto_itself(self) -> bool:
        source = self._source
        return source.bucket.id == self._bucket.id and source.key == self._key and source.version_id is None

    def _changes(self, found: Version) -> bool:
        """Return whether the copy has other metadata, class, redirect or encryption than its source."""
        return (
            self._replaces_metadata
            or not CHANGING_HEADERS.isdisjoint(self._request.headers)
            or encryption.changes_encryption(self._request, self._seal, found)
        )

    def _object_headers(self, found: Version) -> dict[str, str]:
        """Return the headers of the copy: the request's if it replaces them, else its source's."""
        if self._replaces_metadata:
            return metadata.object_headers(self._request)
        headers = metadata.unpack_headers(found.headers)
        headers.pop(metadata.REDIRECT, None)
        return headers | metadata.redirect(self._request)

    async def _checksum(self, found: Version) -> tuple[str, str, str]:
        """Return algorithm, type and value: the source's, or computed from its bytes for another algorithm."""
        customer = encryption.source_key(self._services, self._request, found)
        algorithm = self._algorithm
        if not algorithm or (algorithm == found.checksum_algorithm and found.checksum_type == "FULL_OBJECT"):
            return found.checksum_algorithm, found.checksum_type, found.checksum
        hasher = checksums.ALGORITHMS[algorithm].new()
        await reading.feed_bytes(self._services.store, found, 0, found.size, hasher.update, customer)
        return algorithm, "FULL_OBJECT", hasher.digest_base64()

    async def _copy_bytes(self) -> tuple[Version, CommitResult]:
        services, request, bucket, key = self._services, self._request, self._bucket, self._key
        found = await self._source.find()
        kind = services.etag_kind(request, self._storage_class)
        hashed = _CopyHasher(await self._describe(found), found, self._seal, kind)
        tree = services.tree_of(bucket)
        same_store = self._source.bucket.store == bucket.store
        if tree is not None and hashed.has_hashes and is_plain_file(found.body) and same_store:
            pieces = tree.slices(found.body, found.size)
            committed = await tree.put_pieces(
                bucket, key, pieces, hashed.describe, self._preconditions, request.timings
            )
            return found, committed
        customer = encryption.source_key(services, request, found)
        body = reading.VersionSource(services.store, found, 0, found.size, hashed.take, customer)
        if tree is not None:
            return found, await tree.put(bucket, key, body, hashed.describe, self._preconditions, request.timings)
        address = (services.store_of(request, self._storage_class), bucket.id, key)
        source: DriverSource = body if self._seal is None else self._seal.source(body)
        return found, await objects.put(*address, source, hashed.describe, self._preconditions, request.timings)


class _CopyHasher:
    """The version of a byte copy: one blob, so that parts' hashes are recomputed.

    Its ETag is of the kind that the target has, and computed unless the source's hashes tell it.
    """

    def __init__(self, new: NewVersion, found: Version, seal: ObjectEncryption | None, etag_kind: str) -> None:
        if not new.checksum:
            new = new._replace(checksum_algorithm="CRC64NVME")
        self._new = new
        self._seal = seal
        self._etag = _known_etag(found, etag_kind)
        self._knows_checksum = new.checksum_type == "FULL_OBJECT" and bool(new.checksum)
        self.has_hashes = bool(self._etag) and self._knows_checksum
        """All hashes are known without reading the bytes."""
        self._hashes = ContentHashes(
            "" if self._etag else etag_kind, "" if self._knows_checksum else new.checksum_algorithm
        )
        self.take = self._hashes.update

    def describe(self, locator: str) -> NewVersion:
        """Return the version, after the whole body."""
        etag = self._etag or self._hashes.etag
        new = self._new._replace(body=locator, parts=0, etag=etag if self._seal is None else self._seal.etag(etag))
        if not self._knows_checksum:
            new = new._replace(checksum_type="FULL_OBJECT", checksum=self._hashes.checksum)
        return new


def _known_etag(found: Version, kind: str) -> str:
    """Return the ETag of that kind of a version's bytes; empty when it must be computed."""
    scheme = scheme_of(found.headers)
    if kind_of(found.etag) == kind and (scheme is None or not scheme.is_opaque):
        return found.etag
    has_crc64 = found.checksum_algorithm == "CRC64NVME" and found.checksum_type == "FULL_OBJECT" and found.checksum
    return crc64_etag(found.checksum, found.size) if kind == CRC64NVME and has_crc64 else ""
