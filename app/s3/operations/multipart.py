"""CreateMultipartUpload, UploadPart, AbortMultipartUpload."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app import errors as domain
from app.encryption.scheme import SEALED
from app.index.rows import Extent, Part, Upload
from app.s3 import acls, checksums, encryption, lifecycle, locks, metadata, rights, tags, xml
from app.s3.body import Body, document
from app.s3.dispatch import operation
from app.s3.errors import InvalidArgument, InvalidRequest
from app.s3.request import S3Request
from app.s3.response import XML, Headers, Response
from app.store import multipart
from app.store.sealing import Seal

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


@operation(
    "POST",
    "key",
    "uploads",
    name="CreateMultipartUpload",
    action="s3:PutObject",
    signed="Anonymous users cannot initiate multipart uploads.  Please authenticate.",
)
async def create_multipart_upload(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html"""
    bucket = request.bucket_row
    algorithm, kind = checksums.chosen(request)
    await document(request)
    written = await acls.written(gateway, request)
    given = tags.of_request(request)
    if given:
        rights.check_put_tags(request)
    await encryption.prepare(gateway, request)
    seal = encryption.of_new(gateway, request)
    scheme = None if seal is None else seal.scheme
    lock = locks.of_request(request)
    upload = await gateway.index.create_upload(
        bucket.id,
        request.key or "",
        metadata.encode(metadata.kept_headers(request), written.grants, given, lock, scheme),
        metadata.storage_class(request),
        algorithm,
        kind,
        written.owner_id,
    )
    headers: Headers = [*XML, *encryption.answered(request, scheme)]
    if algorithm:
        headers += [(b"x-amz-checksum-algorithm", algorithm.encode()), (b"x-amz-checksum-type", kind.encode())]
    headers += lifecycle.abort(bucket, gateway.settings.lifecycle_day_seconds, upload.key, upload.initiated)
    content = (
        xml.element("Bucket", request.bucket)
        + xml.element("Key", request.key)
        + xml.element("UploadId", upload.upload_id)
    )
    return Response(200, headers, xml.document("InitiateMultipartUploadResult", content))


def part_number(request: S3Request) -> int:
    """The `partNumber` of the query. Raises InvalidArgument unless it is 1 to 10,000."""
    text = request.query.get("partNumber", "")
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not 1 <= int(text) <= multipart.MAX_PARTS:
        raise InvalidArgument(
            "Part number must be an integer between 1 and 10000, inclusive",
            ArgumentName="partNumber",
            ArgumentValue=text[:64],
        )
    return int(text)


async def open_upload(gateway: Gateway, request: S3Request) -> Upload:
    """The open upload that a request names, with what was left open of the right to it decided.

    Raises NoSuchUpload, and AccessDenied also for one that there is not when only its maker could know.
    """
    place = (request.bucket_row.id, request.key or "", request.query.get("uploadId", ""))
    try:
        found = await multipart.find(gateway.store, *place)
    except domain.NoSuchUpload:
        rights.check_upload(request, None)
        raise
    rights.check_upload(request, found)
    return found


def stored_algorithm(upload: Upload) -> str:
    """The algorithm of the checksum kept for each part: what the upload names, else CRC64NVME as on AWS."""
    return upload.checksum_algorithm or "CRC64NVME"


@operation("PUT", "key", "uploadId", name="UploadPart", action="s3:PutObject", streams=True)
async def upload_part(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPart.html"""
    number = part_number(request)
    upload = await open_upload(gateway, request)
    body = Body(request, checksum=stored_algorithm(upload), fixed=True, largest=gateway.settings.max_put)
    if upload.checksum_algorithm and body.promised_algorithm not in ("", upload.checksum_algorithm):
        raise InvalidRequest(
            f"Checksum Type mismatch occurred, expected checksum Type: {upload.checksum_algorithm.lower()}, "
            f"actual checksum Type: {body.promised_algorithm.lower()}"
        )

    seal = await upload_seal(gateway, request, upload)

    def etag() -> str:
        return body.etag if seal is None else seal.etag(body.etag)

    def describe(extents: tuple[Extent, ...]) -> Part:
        return Part(number, body.size or 0, etag(), 0, body.algorithm, body.checksum, extents)

    source = body if seal is None else seal.source(body)
    async with gateway.quotas.room(request.bucket_row) as room:
        body.admit = partial(room.take, objects=0)
        await room.take(body.size, 0)
        store = gateway.store_of(request, upload.storage_class)
        await multipart.put_part(store, upload, source, describe, request.timings)
    return Response(
        200,
        [
            (b"etag", b'"' + etag().encode() + b'"'),
            (b"x-amz-checksum-" + body.algorithm.lower().encode(), body.checksum.encode()),
            *encryption.answered(request, None if seal is None else seal.scheme),
        ],
    )


async def upload_seal(gateway: Gateway, request: S3Request, upload: Upload) -> Seal | None:
    """How a part of an upload is encrypted, None when it is not. Raises InvalidRequest, InvalidArgument."""
    if SEALED in upload.headers:
        await gateway.store.keyring.refresh()
    seal = encryption.of_upload(gateway, request, upload)
    await encryption.ready(gateway, request, seal)
    return seal


@operation("DELETE", "key", "uploadId", name="AbortMultipartUpload", action="s3:AbortMultipartUpload")
async def abort_multipart_upload(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html"""
    await gateway.index.abort_upload(await open_upload(gateway, request))
    return Response(204)
