"""PutObject with `x-amz-write-offset-bytes`: bytes behind those that an object has.

"Appending data to objects in directory buckets", Amazon S3 User Guide. Here it is for every bucket that never kept
versions. What the object was made with stays; each append becomes a part of it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from app.encryption.scheme import SEALED, scheme_of
from app.index import restores
from app.index.rows import NewVersion, Version
from app.s3 import archives, checksums, conditions, encryption, lifecycle
from app.s3.body import Body
from app.s3.errors import (
    InvalidArgument,
    InvalidObjectState,
    InvalidRequest,
    InvalidWriteOffset,
    MissingContentLength,
    NotImplemented,
    TooManyParts,
)
from app.s3.request import S3Request
from app.s3.response import Headers, Response
from app.store import appending
from app.store.multipart import MAX_PARTS
from app.store.sealing import Seal

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

OFFSET = "x-amz-write-offset-bytes"
OF_THE_OBJECT = ("x-amz-meta-", "x-amz-acl", "x-amz-grant-", "x-amz-tagging", "x-amz-storage-class", "x-amz-website-")
"""Headers that say what an object is: for one that is there they come too late."""
TOO_MANY = "You have attempted to add more parts than the maximum of 10000 that are allowed for this object."


def offset_of(request: S3Request) -> int:
    """The offset of the header. Raises InvalidArgument."""
    text = request.headers[OFFSET].strip()
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise InvalidArgument(ArgumentName=OFFSET, ArgumentValue=text[:64])
    return int(text)


async def existing(gateway: Gateway, request: S3Request) -> Version | None:
    """The object that a request appends to; None when it makes one. Raises InvalidWriteOffset, NotImplemented."""
    bucket, offset = request.bucket_row, offset_of(request)
    if gateway.tree_of(bucket) is not None or bucket.versioning:
        raise NotImplemented(Header=OFFSET)
    found = await gateway.index.version(bucket.id, request.key or "")
    if (0 if found is None else found.size) != offset:
        raise InvalidWriteOffset()
    return found


async def append(gateway: Gateway, request: S3Request, found: Version) -> Response:
    """Append to an object as it was found, or as it is by then if the offset is still right."""
    if any(name.startswith(OF_THE_OBJECT) for name in request.amazon):
        raise InvalidRequest("What an object is made with cannot be given again when it is appended to.")
    _parts(found)
    if archives.is_archived(gateway, found) or restores.of(found.headers) is not None:
        raise InvalidObjectState(StorageClass=found.storage_class)  # what is back for a while is a copy
    wanted = conditions.write_conditions(request)
    bucket, key = request.bucket_row, request.key or ""
    algorithm = found.checksum_algorithm if _combines(found) else "CRC64NVME"
    body = Body(request, checksum=algorithm, fixed=True, largest=gateway.settings.max_put)
    if body.size is None:
        raise MissingContentLength()
    if body.size == 0:
        raise InvalidRequest("Request body cannot be empty when 'write offset' is specified")

    seal = await _seal(gateway, request, found)

    def describe(old: Version) -> NewVersion:
        if scheme_of(old.headers) != scheme_of(found.headers):
            raise InvalidWriteOffset()  # it is another object by now
        return _described(old, body, body.etag if seal is None else seal.etag(body.etag), algorithm)

    async def find() -> Version:
        again = await existing(gateway, request)
        if again is None:
            raise InvalidWriteOffset()
        return again

    async with gateway.quotas.room(bucket) as room:
        await room.take(body.size, 0)
        store = gateway.store_of(request, found.storage_class)
        source = body if seal is None else seal.source(body)
        how = (find, source, body.size, describe, lambda: body.checksum, wanted)
        new, committed = await appending.append(store, bucket.id, key, found, *how)
    headers: Headers = [(b"etag", b'"%b"' % new.etag.encode()), (b"x-amz-object-size", b"%d" % new.size)]
    if new.checksum:
        name = b"x-amz-checksum-" + new.checksum_algorithm.lower().encode()
        headers += [(name, new.checksum.encode()), (b"x-amz-checksum-type", b"FULL_OBJECT")]
    told = (key, new.size, committed.modified, new.headers)
    headers += lifecycle.expiration(bucket, gateway.settings.lifecycle_day_seconds, *told)
    headers += encryption.answered(request, None if seal is None else seal.scheme)
    return Response(200, headers)


async def _seal(gateway: Gateway, request: S3Request, found: Version) -> Seal | None:
    """How what is appended is encrypted: by a data key of its own, under the key that the object was made with."""
    if SEALED in found.headers:
        await gateway.store.keyring.refresh()
    seal = encryption.of_upload(gateway, request, found)
    await encryption.ready(gateway, request, seal)
    return seal


def _combines(found: Version) -> bool:
    """The object's checksum can be told from those of its parts."""
    return found.checksum_type == "FULL_OBJECT" and found.checksum_algorithm.startswith("CRC") and bool(found.checksum)


def _parts(old: Version) -> int:
    """The parts of an object with one more. Raises TooManyParts."""
    parts = max(old.parts, 1) + 1
    if parts > MAX_PARTS:
        raise TooManyParts(TOO_MANY)
    return parts


def _described(old: Version, body: Body, etag: str, algorithm: str) -> NewVersion:
    """The object with the body behind it. Its ETag is one of all ETags that it had, and no MD5."""
    assert body.size is not None
    parts = _parts(old)
    made = hashlib.md5(f"{old.etag}{etag}".encode(), usedforsecurity=False).hexdigest()
    checksum = ("", "", "")
    if _combines(old) and old.checksum_algorithm == algorithm:
        combined = checksums.combine_full_object(algorithm, [(old.checksum, old.size), (body.checksum, body.size)])
        checksum = (algorithm, "FULL_OBJECT", combined)
    kept = (old.headers, old.storage_class)
    return NewVersion(old.size + body.size, f"{made}-{parts}", *kept, *checksum, "", parts, old.owner_id)
