"""PutObject with `x-amz-write-offset-bytes`: appends bytes to an object.

"Appending data to objects in directory buckets", Amazon S3 User Guide. Here every bucket that has never kept versions
supports it. The object keeps its metadata; each append becomes a part of it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sluice_s3.app.encryption.scheme import SEALED, scheme_of
from sluice_s3.app.index.objects.rows import NewVersion, Version
from sluice_s3.app.index.restore import state as restore_state
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import (
    InvalidArgument,
    InvalidObjectState,
    InvalidRequest,
    InvalidWriteOffset,
    MissingContentLength,
    NotImplemented,
    TooManyParts,
)
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.request_body import RequestBody
from sluice_s3.app.s3.restore import archives
from sluice_s3.app.s3.wire import checksums, conditions
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers, Response
from sluice_s3.app.store import append as appending
from sluice_s3.app.store.encryption.encrypted_source import ObjectEncryption
from sluice_s3.app.store.multipart import MAX_PARTS

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

OFFSET = "x-amz-write-offset-bytes"
OBJECT_HEADERS = ("x-amz-meta-", "x-amz-acl", "x-amz-grant-", "x-amz-tagging", "x-amz-storage-class", "x-amz-website-")
"""Headers that describe an object: an append cannot change them."""
TOO_MANY = "You have attempted to add more parts than the maximum of 10000 that are allowed for this object."


def offset_of(request: S3Request) -> int:
    """Return the offset of the header. Raises InvalidArgument."""
    text = request.headers[OFFSET].strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InvalidArgument(ArgumentName=OFFSET, ArgumentValue=text[:64])
    return int(text)


async def object_to_append_to(services: Services, request: S3Request) -> Version | None:
    """Return the object that a request appends to; None when it creates one.

    Raises InvalidWriteOffset, NotImplemented, and AccessDenied for an object that the caller may not read.
    """
    bucket, offset = request.bucket_row, offset_of(request)
    if services.tree_of(bucket) is not None or bucket.versioning:
        raise NotImplemented(Header=OFFSET)
    found = await services.index.version(bucket.id, request.key or "")
    authorization.authorize_append(request, found)  # first: whether the offset is correct reveals the size
    if (0 if found is None else found.size) != offset:
        raise InvalidWriteOffset()
    return found


async def append(services: Services, request: S3Request, found: Version) -> Response:
    """Append to `found`, or to its present state if the offset is still correct."""
    if any(name.startswith(OBJECT_HEADERS) for name in request.amazon):
        raise InvalidRequest("What an object is made with cannot be given again when it is appended to.")
    _parts(found)
    if archives.is_archived(services, found) or restore_state.restore_state(found.headers) is not None:
        raise InvalidObjectState(StorageClass=found.storage_class)  # a restored object is a temporary copy
    preconditions = conditions.write_conditions(request)
    bucket, key = request.bucket_row, request.key or ""
    algorithm = found.checksum_algorithm if has_combinable_checksum(found) else "CRC64NVME"
    etag = services.etag_kind(request, found.storage_class)
    body = RequestBody(request, checksum=algorithm, fixed=True, etag=etag, largest=services.settings.max_put)
    if body.size is None:
        raise MissingContentLength()
    if body.size == 0:
        raise InvalidRequest("Request body cannot be empty when 'write offset' is specified")

    seal = await _seal(services, request, found)

    def describe(old: Version) -> NewVersion:
        if scheme_of(old.headers) != scheme_of(found.headers):
            raise InvalidWriteOffset()  # it is another object now
        return _appended_version(old, body, body.etag if seal is None else seal.etag(body.etag), algorithm)

    async def find() -> Version:
        again = await object_to_append_to(services, request)
        if again is None:
            raise InvalidWriteOffset()
        return again

    async with services.quotas.room(bucket) as room:
        await room.take(body.size, 0)
        store = services.store_of(request, found.storage_class)
        source = body if seal is None else seal.source(body)
        append_arguments = (find, source, body.size, describe, lambda: body.checksum, preconditions)
        new, committed = await appending.append(store, bucket.id, key, found, *append_arguments)
    headers: Headers = [(b"etag", b'"%b"' % new.etag.encode()), (b"x-amz-object-size", b"%d" % new.size)]
    if new.checksum:
        name = b"x-amz-checksum-" + new.checksum_algorithm.lower().encode()
        headers += [(name, new.checksum.encode()), (b"x-amz-checksum-type", b"FULL_OBJECT")]
    version_fields = (key, new.size, committed.modified, new.headers)
    headers += lifecycle.expiration_header(bucket, services.settings.lifecycle_day_seconds, *version_fields)
    headers += encryption.response_headers(request, None if seal is None else seal.scheme)
    return Response(200, headers)


async def _seal(services: Services, request: S3Request, found: Version) -> ObjectEncryption | None:
    """Return the encryption of appended bytes: a new data key under the object's key."""
    if SEALED in found.headers:
        await services.store.keyring.refresh()
    seal = encryption.encryption_of_part(services, request, found)
    await encryption.wait_until_key_journaled(services, request, seal)
    return seal


def has_combinable_checksum(found: Version) -> bool:
    """Return whether the object's checksum can be combined from those of its parts."""
    return found.checksum_type == "FULL_OBJECT" and found.checksum_algorithm.startswith("CRC") and bool(found.checksum)


def _parts(old: Version) -> int:
    """Return the number of parts plus one. Raises TooManyParts."""
    parts = max(old.parts, 1) + 1
    if parts > MAX_PARTS:
        raise TooManyParts(TOO_MANY)
    return parts


def _appended_version(old: Version, body: RequestBody, etag: str, algorithm: str) -> NewVersion:
    """Return the object with the body appended. Its ETag is a hash of all its ETags, and no MD5 of the content."""
    assert body.size is not None
    parts = _parts(old)
    digest = hashlib.md5(f"{old.etag}{etag}".encode(), usedforsecurity=False).hexdigest()
    checksum = ("", "", "")
    if has_combinable_checksum(old) and old.checksum_algorithm == algorithm:
        combined = checksums.combine_full_object(algorithm, [(old.checksum, old.size), (body.checksum, body.size)])
        checksum = (algorithm, "FULL_OBJECT", combined)
    stored_fields = (old.headers, old.storage_class)
    return NewVersion(old.size + body.size, f"{digest}-{parts}", *stored_fields, *checksum, "", parts, old.owner_id)
