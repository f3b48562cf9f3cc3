"""ListParts and ListMultipartUploads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sluice_s3.app.index.multipart.rows import Part, Upload
from sluice_s3.app.s3.acl import grants as acls
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.multipart.uploads import require_open_upload
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.query_parameters import parse_integer, wants_url_encoding
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

MAX_PARTS = 1000
MAX_UPLOADS = 1000


@operation("GET", "key", "uploadId", name="ListParts", action="s3:ListMultipartUploadParts")
async def list_parts(services: Services, request: S3Request) -> Response:
    """Handle ListParts (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListParts.html)."""
    limit = parse_integer(request, "max-parts", MAX_PARTS, 0, MAX_PARTS, cap=True)
    after = parse_integer(request, "part-number-marker", 0, 0, 2**31 - 1)
    encode = xml.url_encode if wants_url_encoding(request) else xml.escape
    upload = await require_open_upload(services, request)
    found = await services.index.parts(upload, after, limit + 1)
    page = found[:limit]
    truncated = len(found) > limit and limit > 0
    people = await _people(services, request, [upload])
    content = (
        xml.element("Bucket", request.bucket)
        + f"<Key>{encode(upload.key)}</Key>"
        + xml.element("UploadId", upload.upload_id)
        + people[upload.owner_id]
        + xml.element("StorageClass", upload.storage_class)
        + xml.element("PartNumberMarker", after)
        + xml.element("NextPartNumberMarker", page[-1].number if page else 0)
        + xml.element("MaxParts", limit)
        + xml.element("IsTruncated", str(truncated).lower())
        + _algorithm(upload)
        + "".join(_part(part, upload) for part in page)
    )
    seconds = services.settings.lifecycle_day_seconds
    ends = lifecycle.abort_header(request.bucket_row, seconds, upload.key, upload.initiated)
    return Response(200, [*XML, *ends], xml.document("ListPartsResult", content))


async def _people(services: Services, request: S3Request, uploads: Sequence[Upload]) -> dict[str, str]:
    """Return `Initiator` and `Owner` elements by owner of uploads; here both are the same account."""
    names = await acls.display_names(services, request, {upload.owner_id for upload in uploads})
    return {
        owner: xml.owner_element(owner, name, "Initiator") + xml.owner_element(owner, name)
        for owner, name in names.items()
    }


def _algorithm(upload: Upload) -> str:
    return xml.optional("ChecksumAlgorithm", upload.checksum_algorithm) + xml.optional(
        "ChecksumType", upload.checksum_type
    )


def _part(part: Part, upload: Upload) -> str:
    # without an algorithm of the upload, only the whole object's checksum is listed
    has_checksum = part.checksum and part.checksum_algorithm == upload.checksum_algorithm
    checksum = xml.element("Checksum" + part.checksum_algorithm, part.checksum) if has_checksum else ""
    return (
        f"<Part>{xml.element('PartNumber', part.number)}<LastModified>{xml.timestamp(part.modified)}</LastModified>"
        f"<ETag>&quot;{part.etag}&quot;</ETag>{xml.element('Size', part.size)}{checksum}</Part>"
    )


@operation("GET", "bucket", "uploads", name="ListMultipartUploads", action="s3:ListBucketMultipartUploads")
async def list_multipart_uploads(services: Services, request: S3Request) -> Response:
    """Handle ListMultipartUploads (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListMultipartUploads.html)."""
    query = request.query
    encode = xml.url_encode if wants_url_encoding(request) else xml.escape
    limit = parse_integer(request, "max-uploads", MAX_UPLOADS, 0, MAX_UPLOADS, cap=True)
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    key_marker, id_marker = query.get("key-marker", ""), query.get("upload-id-marker", "")
    if not key_marker:
        id_marker = ""
    uploads: list[Upload] = []
    prefixes: list[str] = []
    truncated = False
    if limit:
        uploads, prefixes, truncated = await services.index.uploads(
            request.bucket_row.id, prefix, delimiter, key_marker, id_marker, limit
        )
    next_key, next_id = "", ""
    if truncated:
        next_key, next_id = _last(uploads, prefixes)
    people = await _people(services, request, uploads)
    keys = xml.encode_all([upload.key for upload in uploads], encode)
    content = (
        xml.element("Bucket", request.bucket)
        + f"<KeyMarker>{encode(key_marker)}</KeyMarker>"
        + xml.element("UploadIdMarker", id_marker)
        + (f"<NextKeyMarker>{encode(next_key)}</NextKeyMarker>" if truncated else "")
        + (xml.element("NextUploadIdMarker", next_id) if truncated else "")
        + f"<Prefix>{encode(prefix)}</Prefix>"
        + (f"<Delimiter>{encode(delimiter)}</Delimiter>" if delimiter else "")
        + ("<EncodingType>url</EncodingType>" if query.get("encoding-type") else "")
        + xml.element("MaxUploads", limit)
        + xml.element("IsTruncated", str(truncated).lower())
        + "".join(
            f"<Upload><Key>{key}</Key>{xml.element('UploadId', upload.upload_id)}"
            f"{people[upload.owner_id]}{xml.element('StorageClass', upload.storage_class)}"
            f"<Initiated>{xml.timestamp(upload.initiated)}</Initiated>{_algorithm(upload)}</Upload>"
            for upload, key in zip(uploads, keys, strict=True)
        )
        + "".join(xml.common_prefixes(prefixes, encode))
    )
    return Response(200, list(XML), xml.document("ListMultipartUploadsResult", content))


def _last(uploads: list[Upload], prefixes: list[str]) -> tuple[str, str]:
    """Return the markers after the last entry or common prefix. The later one counts."""
    if prefixes and (not uploads or prefixes[-1].encode() > uploads[-1].key.encode()):
        return prefixes[-1], ""
    return uploads[-1].key, uploads[-1].upload_id
