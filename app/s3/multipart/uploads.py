"""CreateMultipartUpload, UploadPart, AbortMultipartUpload."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from sluice_s3.app import errors as domain
from sluice_s3.app.encryption.scheme import SEALED
from sluice_s3.app.index.multipart.rows import Extent, Part, Upload
from sluice_s3.app.s3.acl import grants as acls
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import InvalidArgument, InvalidRequest
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.request_body import RequestBody, read_document
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.tagging import tags
from sluice_s3.app.s3.wire import checksums, metadata, xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Headers, Response
from sluice_s3.app.store import multipart
from sluice_s3.app.store.encryption.encrypted_source import ObjectEncryption

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services


@operation(
    "POST",
    "key",
    "uploads",
    name="CreateMultipartUpload",
    action="s3:PutObject",
    anonymous_error="Anonymous users cannot initiate multipart uploads.  Please authenticate.",
)
async def create_multipart_upload(services: Services, request: S3Request) -> Response:
    """Handle CreateMultipartUpload (https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html)."""
    bucket = request.bucket_row
    algorithm, kind = checksums.requested_algorithm(request)
    await read_document(request)
    written = await acls.ownership_of_new_object(services, request)
    object_tags = tags.requested_tags(request)
    if object_tags:
        authorization.authorize_tags(request)
    await encryption.load_keyring(services, request)
    seal = encryption.encryption_of_new_object(services, request)
    scheme = None if seal is None else seal.scheme
    lock = lock_headers.parse_lock(request)
    upload = await services.index.create_upload(
        bucket.id,
        request.key or "",
        metadata.pack_headers(metadata.object_headers(request), written.grants, object_tags, lock, scheme),
        metadata.storage_class(request),
        algorithm,
        kind,
        written.owner_id,
    )
    headers: Headers = [*XML, *encryption.response_headers(request, scheme)]
    if algorithm:
        headers += [(b"x-amz-checksum-algorithm", algorithm.encode()), (b"x-amz-checksum-type", kind.encode())]
    headers += lifecycle.abort_header(bucket, services.settings.lifecycle_day_seconds, upload.key, upload.initiated)
    content = (
        xml.element("Bucket", request.bucket)
        + xml.element("Key", request.key)
        + xml.element("UploadId", upload.upload_id)
    )
    return Response(200, headers, xml.document("InitiateMultipartUploadResult", content))


def part_number(request: S3Request) -> int:
    """Return the `partNumber` of the query. Raises InvalidArgument unless it is 1 to 10,000."""
    text = request.query.get("partNumber", "")
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not 1 <= int(text) <= multipart.MAX_PARTS:
        raise InvalidArgument(
            "Part number must be an integer between 1 and 10000, inclusive",
            ArgumentName="partNumber",
            ArgumentValue=text[:64],
        )
    return int(text)


async def require_open_upload(services: Services, request: S3Request) -> Upload:
    """Return the open upload of a request, with the caller's open permissions resolved.

    Raises NoSuchUpload, or AccessDenied for a missing upload whose absence only its initiator may know.
    """
    address = (request.bucket_row.id, request.key or "", request.query.get("uploadId", ""))
    try:
        found = await multipart.find_upload(services.store, *address)
    except domain.NoSuchUpload:
        authorization.authorize_upload(request, None)
        raise
    authorization.authorize_upload(request, found)
    return found


def part_checksum_algorithm(upload: Upload) -> str:
    """Return the checksum algorithm stored for each part: the upload's, else CRC64NVME as on AWS."""
    return upload.checksum_algorithm or "CRC64NVME"


@operation("PUT", "key", "uploadId", name="UploadPart", action="s3:PutObject", streams=True)
async def upload_part(services: Services, request: S3Request) -> Response:
    """Handle UploadPart (https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPart.html)."""
    number = part_number(request)
    upload = await require_open_upload(services, request)
    algorithm, kind = part_checksum_algorithm(upload), services.etag_kind(request, upload.storage_class)
    body = RequestBody(request, checksum=algorithm, fixed=True, etag=kind, largest=services.settings.max_put)
    if upload.checksum_algorithm and body.promised_algorithm not in ("", upload.checksum_algorithm):
        raise InvalidRequest(
            f"Checksum Type mismatch occurred, expected checksum Type: {upload.checksum_algorithm.lower()}, "
            f"actual checksum Type: {body.promised_algorithm.lower()}"
        )

    seal = await part_encryption(services, request, upload)

    def etag() -> str:
        return body.etag if seal is None else seal.etag(body.etag)

    def describe(extents: tuple[Extent, ...]) -> Part:
        return Part(number, body.size or 0, etag(), 0, body.algorithm, body.checksum, extents)

    source = body if seal is None else seal.source(body)
    async with services.quotas.room(request.bucket_row) as room:
        body.admit = partial(room.take, objects=0)
        await room.take(body.size, 0)
        store = services.store_of(request, upload.storage_class)
        await multipart.put_part(store, upload, source, describe, request.timings)
    return Response(
        200,
        [
            (b"etag", b'"' + etag().encode() + b'"'),
            (b"x-amz-checksum-" + body.algorithm.lower().encode(), body.checksum.encode()),
            *encryption.response_headers(request, None if seal is None else seal.scheme),
        ],
    )


async def part_encryption(services: Services, request: S3Request, upload: Upload) -> ObjectEncryption | None:
    """Return the encryption of an upload's part; None without. Raises InvalidRequest, InvalidArgument."""
    if SEALED in upload.headers:
        await services.store.keyring.refresh()
    seal = encryption.encryption_of_part(services, request, upload)
    await encryption.wait_until_key_journaled(services, request, seal)
    return seal


@operation("DELETE", "key", "uploadId", name="AbortMultipartUpload", action="s3:AbortMultipartUpload")
async def abort_multipart_upload(services: Services, request: S3Request) -> Response:
    """Handle AbortMultipartUpload (https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html)."""
    await services.index.abort_upload(await require_open_upload(services, request))
    return Response(204)
