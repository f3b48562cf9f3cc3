"""CreateMultipartUpload, UploadPart, AbortMultipartUpload."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.index.rows import Extent, Part, Upload
from app.s3 import acls, checksums, locks, metadata, rights, tags, xml
from app.s3.body import Body, document
from app.s3.dispatch import operation
from app.s3.errors import InvalidArgument, InvalidRequest
from app.s3.request import S3Request
from app.s3.response import XML, Headers, Response
from app.store import multipart

if TYPE_CHECKING:
    from app.s3.gateway import Gateway


@operation("POST", "key", "uploads", name="CreateMultipartUpload", action="s3:PutObject")
async def create_multipart_upload(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateMultipartUpload.html"""
    bucket = request.bucket_row
    algorithm, kind = checksums.chosen(request)
    await document(request)
    written = await acls.written(gateway, request)
    given = tags.of_request(request)
    if given:
        rights.check_put_tags(request)
    upload = await gateway.index.create_upload(
        bucket.id,
        request.key or "",
        metadata.encode(metadata.kept_headers(request), written.grants, given, locks.of_request(request)),
        metadata.storage_class(request),
        algorithm,
        kind,
        written.owner_id,
    )
    headers: Headers = list(XML)
    if algorithm:
        headers += [(b"x-amz-checksum-algorithm", algorithm.encode()), (b"x-amz-checksum-type", kind.encode())]
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
    """The open upload that a request names. Raises NoSuchUpload."""
    return await multipart.find(
        gateway.store, request.bucket_row.id, request.key or "", request.query.get("uploadId", "")
    )


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

    def describe(extents: tuple[Extent, ...]) -> Part:
        return Part(number, body.size or 0, body.etag, 0, body.algorithm, body.checksum, extents)

    async with gateway.quotas.room(request.bucket_row) as room:
        await room.take(body.size, 0)
        await multipart.put_part(gateway.store_of(request), upload, body, describe, request.timings)
    return Response(
        200,
        [
            (b"etag", b'"' + body.etag.encode() + b'"'),
            (b"x-amz-checksum-" + body.algorithm.lower().encode(), body.checksum.encode()),
        ],
    )


@operation("DELETE", "key", "uploadId", name="AbortMultipartUpload", action="s3:AbortMultipartUpload")
async def abort_multipart_upload(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_AbortMultipartUpload.html"""
    await gateway.index.abort_upload(await open_upload(gateway, request))
    return Response(204)
