"""CopyObject and UploadPartCopy.

On one store of layout *objects* no byte is written, and bytes are read only where a hash is asked that is not known;
else they are copied.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from app.encryption.customer import CustomerKey
from app.encryption.scheme import SEALED, scheme_of
from app.errors import ConditionalRequestConflict, SourceGone
from app.index.locks import NONE
from app.index.rows import Bucket, Committed, Conditions, Extent, NewVersion, Part, Upload, Version, is_tree
from app.s3 import (
    acls,
    archives,
    checksums,
    conditions,
    copy_source,
    encryption,
    lifecycle,
    locks,
    metadata,
    rights,
    tags,
    versions,
    xml,
)
from app.s3.dispatch import operation
from app.s3.errors import InvalidArgument, InvalidRequest, MethodNotAllowed
from app.s3.logs.configuration import MARK
from app.s3.logs.record import Also
from app.s3.operations.multipart import open_upload, part_number, stored_algorithm, upload_seal
from app.s3.ranges import parse_copy_range
from app.s3.request import S3Request
from app.s3.response import XML, Headers, Response
from app.store import multipart, objects, reading
from app.store.locked import written_down
from app.store.placing import shares
from app.store.sealing import Seal
from app.store.tree_reading import is_placeholder
from storage_drivers.base import Buffer
from storage_drivers.base import Source as DriverSource

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

T = TypeVar("T")
COPIED_BY = "Anonymous users cannot copy objects.  Please authenticate."
MAX_COPY = 5 * 1024**3
"""Bytes that one CopyObject or UploadPartCopy may copy."""
CHANGING = frozenset({"x-amz-storage-class", metadata.REDIRECT})
"""Headers that make a copy onto itself lawful, also when they name what the object has; the class that it gets where
none is named does not, as on AWS."""
ONTO_ITSELF = (
    "This copy request is illegal because it is trying to copy an object to itself without changing the object's "
    "metadata, storage class, website redirect location or encryption attributes."
)


class Source(NamedTuple):
    """What `x-amz-copy-source` names, its bucket authorised."""

    bucket: Bucket
    key: str
    version_id: str | None


async def _source(gateway: Gateway, request: S3Request) -> Source:
    """Parse and authorise the source. Raises InvalidArgument, NoSuchBucket, AccessDenied."""
    bucket, key, version_id = copy_source.parse(request.headers["x-amz-copy-source"])
    row = await gateway.bucket(bucket)
    rights.check_source(request, row, key, version_id)
    if MARK in row.settings:
        operation = "REST.COPY.PART_GET" if request.operation == "UploadPartCopy" else "REST.COPY.OBJECT_GET"
        request.also_logged = [Also(row, operation, key, version_id or "")]
    if version_id is not None:
        versions.check(row, version_id)
    return Source(row, key, version_id)


async def _find(gateway: Gateway, request: S3Request, source: Source) -> Version:
    try:
        version = await gateway.find_for(request, source.bucket, source.key, source.version_id)
    except MethodNotAllowed:
        raise InvalidRequest(
            "The source of a copy request may not specifically refer to a delete marker by version id."
        ) from None
    conditions.check_copy_source(request.headers, version.etag, version.modified)
    archives.check_read(gateway, version, archives.OF_SOURCE)
    if SEALED in version.headers:
        await gateway.store.keyring.refresh()  # its key may be disabled by now
    return version


def _directive(request: S3Request, name: str) -> bool:
    """Whether a directive header says REPLACE. Raises InvalidArgument for an unknown word."""
    value = request.headers.get(name, "COPY")
    if value not in ("COPY", "REPLACE"):
        raise InvalidArgument(f"Unknown {name.split('-')[2]} directive.", ArgumentName=name, ArgumentValue=value)
    return value == "REPLACE"


@operation("PUT", "key", "copy", name="CopyObject", action="s3:PutObject", signed=COPIED_BY)
async def copy_object(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html"""
    bucket, key = request.bucket_row, request.key or ""
    wanted = conditions.write_conditions(request)
    await rights.check_match(gateway, request, tells=conditions.tells(wanted))
    replace = _directive(request, "x-amz-metadata-directive")
    _directive(request, tags.DIRECTIVE)
    given = tags.of_request(request)
    algorithm = checksums.chosen(request)[0]
    storage_class = metadata.storage_class(request)
    written = await acls.written(gateway, request)
    lock = locks.of_new(request)
    source = await _source(gateway, request)
    await encryption.prepare(gateway, request)
    seal = encryption.of_new(gateway, request)
    onto_itself = source.bucket.id == bucket.id and source.key == key and source.version_id is None
    room = gateway.quotas.room(bucket)

    async def describe(found: Version) -> NewVersion:
        if found.size > MAX_COPY:
            raise InvalidRequest(
                f"The specified copy source is larger than the maximum allowable size for a copy source: {MAX_COPY}"
            )
        await room.take(found.size)
        changed = replace or not CHANGING.isdisjoint(request.headers) or encryption.changes(request, seal, found)
        if onto_itself and not changed:
            raise InvalidRequest(ONTO_ITSELF)
        kept_tags = given if tags.takes_tags(request) else metadata.tags(found.headers)
        if kept_tags:
            rights.check_put_tags(request)
            if kept_tags is not given:
                rights.check_source_tags(request, source.bucket, found, source.version_id)
        scheme = None if seal is None else seal.scheme
        kept = metadata.encode(_kept(request, found, replace), written.grants, kept_tags, lock, scheme)
        customer = encryption.source_key(gateway, request, found)
        return await _new_version(gateway, found, kept, storage_class, algorithm, written, customer)

    async def describe_shared(found: Version) -> NewVersion:
        placed = shares(gateway.store, source.bucket, found, gateway.store_of(request, storage_class))
        if not placed or not encryption.is_same(gateway, request, seal, found):
            raise _NotShared
        return await describe(found)

    find = partial(_find, gateway, request, source)
    await encryption.ready(gateway, request, seal)
    async with room:
        try:
            if not _shares(gateway, source, bucket):
                raise _NotShared
            place = (bucket.id, key)
            found, committed = await objects.copy(gateway.store, find, *place, describe_shared, wanted, request.timings)
        except _NotShared:
            found, committed = await _retried(lambda: _copy_bytes(gateway, request, source, describe, wanted, seal))
    if lock != NONE:
        await written_down(gateway.store_of(request), bucket, key, committed, metadata.encode({}, lock=lock))
    version = await gateway.index.version(bucket.id, key, committed.version_id)
    shown = version if version is not None and version.seq == committed.seq else found
    content = (
        f"<LastModified>{xml.timestamp(committed.modified)}</LastModified><ETag>&quot;{shown.etag}&quot;</ETag>"
        + (xml.element("Checksum" + shown.checksum_algorithm, shown.checksum) if shown.checksum else "")
        + xml.optional("ChecksumType", shown.checksum_type)
    )
    headers = [*XML, *versions.of_copied(found), *versions.of_written(committed.version_id)]
    told = (key, shown.size, committed.modified, shown.headers)
    headers += lifecycle.expiration(bucket, gateway.settings.lifecycle_day_seconds, *told)
    headers += encryption.answered(request, None if seal is None else seal.scheme)
    return Response(200, headers, xml.document("CopyObjectResult", content))


class _NotShared(Exception):
    """The bytes must be written anew: for another store, as a plain file, or encrypted in another way."""


def _shares(gateway: Gateway, source: Source, bucket: Bucket) -> bool:
    """Whether a copy can hold the source's blobs: they are on one store, and no plain files."""
    return source.bucket.store == bucket.store and gateway.tree_of(bucket) is None


async def _retried(copy: Callable[[], Awaitable[T]]) -> T:
    """A copy of bytes; begun again when they are a plain file that others change just now."""
    for _ in range(objects.COPY_ATTEMPTS):
        try:
            return await copy()
        except SourceGone:
            continue
    raise ConditionalRequestConflict()


async def _copy_bytes(
    gateway: Gateway,
    request: S3Request,
    source: Source,
    describe: Callable[[Version], Awaitable[NewVersion]],
    wanted: Conditions | None,
    seal: Seal | None,
) -> tuple[Version, Committed]:
    bucket, key = request.bucket_row, request.key or ""
    found = await _find(gateway, request, source)
    hashed = _Hashed(await describe(found), found, seal)
    tree = gateway.tree_of(bucket)
    if tree is not None and hashed.is_known and is_tree(found.body) and source.bucket.store == bucket.store:
        pieces = tree.slices(found.body, found.size)
        return found, await tree.put_pieces(bucket, key, pieces, hashed.describe, wanted, request.timings)
    customer = encryption.source_key(gateway, request, found)
    body = reading.VersionBytes(gateway.store, found, 0, found.size, hashed.take, customer)
    if tree is not None:
        return found, await tree.put(bucket, key, body, hashed.describe, wanted, request.timings)
    place = (gateway.store_of(request, metadata.storage_class(request)), bucket.id, key)
    written: DriverSource = body if seal is None else seal.source(body)
    return found, await objects.put(*place, written, hashed.describe, wanted, request.timings)


class _Hashed:
    """The version that a copy of bytes makes: one blob, so that what is of parts must be made anew.

    So must the ETag of a file that others made and that is not hashed yet, and one that was no MD5 where it must be.
    """

    def __init__(self, new: NewVersion, found: Version, seal: Seal | None) -> None:
        if not new.checksum:
            new = new._replace(checksum_algorithm="CRC64NVME")
        self._new = new
        self._seal = seal
        before = scheme_of(found.headers)
        unhashed = new.parts or is_placeholder(found) or (before is not None and before.is_opaque)
        self._md5 = hashlib.md5(usedforsecurity=False) if unhashed else None
        unknown = new.checksum_type == "COMPOSITE" or not new.checksum
        self._checksum = checksums.ALGORITHMS[new.checksum_algorithm].new() if unknown else None

    @property
    def is_known(self) -> bool:
        """No byte needs to be looked at."""
        return self._md5 is None and self._checksum is None

    def take(self, piece: Buffer) -> None:
        """A piece of the body."""
        if self._md5 is not None:
            self._md5.update(piece)
        if self._checksum is not None:
            self._checksum.update(piece)

    def describe(self, locator: str) -> NewVersion:
        """The version, once its body was taken whole."""
        new = self._new._replace(body=locator, parts=0)
        if self._md5 is not None:
            new = new._replace(etag=self._md5.hexdigest())
        if self._seal is not None:
            new = new._replace(etag=self._seal.etag(new.etag))
        if self._checksum is not None:
            new = new._replace(checksum_type="FULL_OBJECT", checksum=self._checksum.digest_base64())
        return new


def _kept(request: S3Request, found: Version, replace: bool) -> dict[str, str]:
    """The headers that a copy keeps: those of the request with `replace`, else those of its source."""
    if replace:
        return metadata.kept_headers(request)
    kept = metadata.decode(found.headers)
    kept.pop(metadata.REDIRECT, None)
    return kept | metadata.redirect(request)


async def _new_version(
    gateway: Gateway,
    found: Version,
    kept: str,
    storage_class: str,
    algorithm: str,
    written: acls.Written,
    customer: CustomerKey | None,
) -> NewVersion:
    checksum = found.checksum_algorithm, found.checksum_type, found.checksum
    if algorithm and (algorithm != found.checksum_algorithm or found.checksum_type != "FULL_OBJECT"):
        hasher = checksums.ALGORITHMS[algorithm].new()
        await reading.feed(gateway.store, found, 0, found.size, hasher.update, customer)
        checksum = algorithm, "FULL_OBJECT", hasher.digest_base64()
    return NewVersion(
        found.size,
        found.etag,
        kept,
        storage_class,
        *checksum,
        body=found.body,
        parts=found.parts,
        owner_id=written.owner_id,
    )


@operation("PUT", "key", "uploadId+copy", name="UploadPartCopy", action="s3:PutObject", signed=COPIED_BY)
async def upload_part_copy(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPartCopy.html"""
    number = part_number(request)
    source = await _source(gateway, request)
    upload = await open_upload(gateway, request)
    seal = await upload_seal(gateway, request, upload)
    wanted = request.headers.get("x-amz-copy-source-range")
    store = gateway.store_of(request, upload.storage_class)

    def bounds(found: Version) -> tuple[int, int]:
        offset, length = (0, found.size) if wanted is None else parse_copy_range(wanted, found.size)
        if length > MAX_COPY:
            raise InvalidRequest(
                f"The specified copy source is larger than the maximum allowable size for a copy source: {MAX_COPY}"
            )
        return offset, length

    room = gateway.quotas.room(request.bucket_row)

    async def describe(found: Version) -> tuple[Part, int, int]:
        offset, length = bounds(found)
        whole = length == found.size or SEALED not in found.headers
        placed = shares(gateway.store, source.bucket, found, store)
        if not (placed and whole and encryption.is_same(gateway, request, seal, found)):
            raise _NotShared
        await room.take(length, 0)
        customer = encryption.source_key(gateway, request, found)
        return await _hash(gateway, upload, number, found, offset, length, customer, seal), offset, length

    async def copy() -> tuple[Version, Part, Committed]:
        found = await find()
        offset, length = bounds(found)
        await room.take(length, 0)
        hashes = _PartHashes(upload, number, length, seal)
        customer = encryption.source_key(gateway, request, found)
        body = reading.VersionBytes(gateway.store, found, offset, length, hashes.take, customer)
        written: DriverSource = body if seal is None else seal.source(body)
        made = await multipart.put_part(store, upload, written, hashes.part, request.timings)
        return found, hashes.part(()), made

    find = partial(_find, gateway, request, source)
    async with room:
        try:
            if not _shares(gateway, source, request.bucket_row):
                raise _NotShared
            found, part, committed = await multipart.copy_part(gateway.store, find, upload, describe, request.timings)
        except _NotShared:
            found, part, committed = await _retried(copy)
    content = (
        f"<LastModified>{xml.timestamp(committed.modified)}</LastModified><ETag>&quot;{part.etag}&quot;</ETag>"
        + (xml.element("Checksum" + part.checksum_algorithm, part.checksum) if upload.checksum_algorithm else "")
    )
    headers: Headers = [*XML, *versions.of_copied(found)]
    headers += encryption.answered(request, None if seal is None else seal.scheme)
    return Response(200, headers, xml.document("CopyPartResult", content))


async def _hash(
    gateway: Gateway,
    upload: Upload,
    number: int,
    found: Version,
    offset: int,
    length: int,
    customer: CustomerKey | None,
    seal: Seal | None,
) -> Part:
    """The part with its ETag and checksum: the source's where they are of the same bytes, else made by reading them."""
    algorithm = stored_algorithm(upload)
    whole = length == found.size and not found.parts
    if whole and found.checksum_algorithm == algorithm and found.checksum_type == "FULL_OBJECT":
        return Part(number, length, found.etag, 0, algorithm, found.checksum, ())
    hashes = _PartHashes(upload, number, length, seal)
    await reading.feed(gateway.store, found, offset, length, hashes.take, customer)
    return hashes.part(())


class _PartHashes:
    """ETag and checksum of a part that is made by copying."""

    def __init__(self, upload: Upload, number: int, size: int, seal: Seal | None) -> None:
        self._seal = seal
        self._number = number
        self._size = size
        self._algorithm = stored_algorithm(upload)
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._checksum = checksums.ALGORITHMS[self._algorithm].new()

    def take(self, piece: Buffer) -> None:
        """A piece of its bytes."""
        self._md5.update(piece)
        self._checksum.update(piece)

    def part(self, extents: tuple[Extent, ...]) -> Part:
        """The part, once all its bytes were taken."""
        md5 = self._md5.hexdigest()
        etag = md5 if self._seal is None else self._seal.etag(md5)
        hashes = etag, 0, self._algorithm, self._checksum.digest_base64()
        return Part(self._number, self._size, *hashes, extents)
