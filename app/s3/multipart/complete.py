"""CompleteMultipartUpload."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element

from sluice_s3.app.encryption.scheme import CUSTOMER, scheme_of
from sluice_s3.app.index.multipart.rows import Part, Upload
from sluice_s3.app.index.objects.rows import NULL_VERSION, NewVersion
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import (
    InvalidPart,
    InvalidPartOrder,
    InvalidRequest,
    MalformedXML,
    NoSuchUpload,
)
from sluice_s3.app.s3.lifecycle import rules as lifecycle
from sluice_s3.app.s3.multipart.uploads import part_checksum_algorithm
from sluice_s3.app.s3.object_lock import headers as lock_headers
from sluice_s3.app.s3.objects.write import check_time, url_of
from sluice_s3.app.s3.request_body import RequestBody
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import checksums, conditions, xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Headers, Response
from sluice_s3.app.store import multipart, reading
from sluice_s3.app.store.etags import multipart_etag
from sluice_s3.app.store.journals.wait import wait_until_journaled

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

NamedPart = tuple[int, str, dict[str, str]]
"""A part in the document: number, ETag, checksums by algorithm."""
PART = frozenset({"PartNumber", "ETag", *("Checksum" + name for name in checksums.ALGORITHMS)})
"""Children of a Part; any other is MalformedXML, as on AWS."""


@operation("POST", "key", "uploadId", name="CompleteMultipartUpload", action="s3:PutObject")
async def complete_multipart_upload(services: Services, request: S3Request) -> Response:
    """Handle CompleteMultipartUpload: choose the parts of the object, without reading or writing a byte.

    Repeating it returns the same result.
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html
    """
    bucket, key = request.bucket_row, request.key or ""
    preconditions = conditions.write_conditions(request)
    # the checksum headers are those of the object, not of this document
    promised = checksums.expected_checksum(request, complete=True)
    document = await RequestBody(request, checksum="", etag="", promised=False).collect()
    upload_id = request.query.get("uploadId", "")
    upload = await services.index.upload(bucket.id, key, upload_id)
    authorization.authorize_upload(request, upload)
    if upload is None:
        raise NoSuchUpload(UploadId=upload_id)
    check_time(services, request, preconditions)
    if conditions.reveals_object_state(preconditions):
        await authorization.authorize_precondition(services, request, upload_headers=upload.headers)
    named = _named(document, request.query.get("uploadId"))
    if upload.completed_seq:
        return await _repeat_result(services, request, upload, named)
    encryption.check_complete(services, request, upload)
    chosen = await multipart.choose(services.store, upload, [(number, etag) for number, etag, _ in named])
    _check_checksums(upload, chosen, named)
    new = _describe(upload, chosen)._replace(headers=lock_headers.headers_of_completed_upload(bucket, upload.headers))
    _check_promised(request, upload, new, promised)
    tree = services.tree_of(bucket)
    async with services.quotas.room(bucket) as room:
        await room.take(0)  # its bytes count as parts already
        if tree is None:
            committed = await multipart.complete(services.store, upload, chosen, new, preconditions, request.timings)
        else:
            pieces = reading.bytes_of_parts(services.store, chosen)
            committed = await tree.complete(bucket, upload, chosen, pieces, new, preconditions, request.timings)
    await wait_until_journaled(services.store_of(request), bucket, key, committed, new.headers)
    response = _result(request, new.etag, new.checksum_algorithm, new.checksum_type, new.checksum)
    response.headers += version_headers.headers_of_put(committed.version_id) + _encryption(request, new.headers)
    version_fields = (key, new.size, committed.modified, new.headers)
    response.headers += lifecycle.expiration_header(bucket, services.settings.lifecycle_day_seconds, *version_fields)
    return response


def _encryption(request: S3Request, stored_headers: str) -> Headers:
    scheme = scheme_of(stored_headers)
    if scheme is not None and scheme.method == CUSTOMER and not request.sse:
        return []
    return encryption.response_headers(request, scheme)


def _named(document: bytes, upload_id: str | None) -> list[NamedPart]:
    """Return the parts of the document. Raises MalformedXML, InvalidPartOrder."""
    tree = xml.parse(document, "CompleteMultipartUpload")
    xml.check_children(tree, {"Part"})
    parts = tree.findall("Part")
    if not 1 <= len(parts) <= multipart.MAX_PARTS:
        raise MalformedXML()
    named = [_named_part(element) for element in parts]
    if any(before[0] >= after[0] for before, after in pairwise(named)):
        raise InvalidPartOrder(UploadId=upload_id)
    return named


def _named_part(element: Element) -> NamedPart:
    xml.check_children(element, PART)
    number, etag = xml.child_text(element, "PartNumber"), xml.child_text(element, "ETag")
    if number is None or etag is None:
        raise MalformedXML()
    number = number.strip()
    if not (number.isascii() and number.isdigit()) or len(number) > 9:
        raise MalformedXML()
    if not 1 <= int(number) <= multipart.MAX_PARTS:
        raise InvalidPart(PartNumber=number)
    by_algorithm = {name: xml.child_text(element, "Checksum" + name) for name in checksums.ALGORITHMS}
    return int(number), etag.strip().strip('"').lower(), {name: value for name, value in by_algorithm.items() if value}


def _check_checksums(upload: Upload, chosen: Sequence[Part], named: Sequence[NamedPart]) -> None:
    """Require that the document's part checksums equal the stored ones. Raises InvalidPart, InvalidRequest."""
    for part, (number, etag, part_checksums) in zip(chosen, named, strict=True):
        for algorithm, value in part_checksums.items():
            if upload.checksum_algorithm and algorithm != upload.checksum_algorithm:
                raise InvalidRequest(
                    f"The upload was created using the {upload.checksum_algorithm} checksum algorithm."
                )
            if algorithm == part.checksum_algorithm and value != part.checksum:
                raise InvalidPart(UploadId=upload.upload_id, PartNumber=number, ETag=etag)


def _describe(upload: Upload, chosen: Sequence[Part]) -> NewVersion:
    """Return the version of the chosen parts."""
    algorithm = part_checksum_algorithm(upload)
    kind = upload.checksum_type or "FULL_OBJECT"
    if kind == "COMPOSITE":
        checksum = checksums.composite(algorithm, [part.checksum for part in chosen])
    else:
        checksum = checksums.combine_full_object(algorithm, [(part.checksum, part.size) for part in chosen])
    return NewVersion(
        size=sum(part.size for part in chosen),
        etag=multipart_etag([part.etag for part in chosen]),
        headers=upload.headers,
        storage_class=upload.storage_class,
        checksum_algorithm=algorithm,
        checksum_type=kind,
        checksum=checksum,
        body="",
        parts=len(chosen),
        owner_id=upload.owner_id,
    )


def _check_promised(request: S3Request, upload: Upload, new: NewVersion, promised: checksums.ExpectedChecksum) -> None:
    """Check the headers for size and checksum of the whole object. Raises InvalidRequest, BadDigest."""
    size = request.headers.get("x-amz-mp-object-size")
    if size is not None and size != str(new.size):
        raise InvalidRequest(
            f"The provided 'x-amz-mp-object-size' header value {size[:32]} does not match what was computed."
        )
    if promised.type and promised.type != new.checksum_type:
        raise InvalidRequest(
            f"The upload was created using the {new.checksum_type} checksum mode. "
            "The complete request must use the same checksum mode."
        )
    if not promised.value:
        return
    # a composite checksum may lack the number of parts, but must not have a wrong one
    same = promised.value in (new.checksum, new.checksum.partition("-")[0])
    if promised.algorithm != new.checksum_algorithm or not same:
        raise checksums.mismatch(promised.algorithm)


async def _repeat_result(
    services: Services, request: S3Request, upload: Upload, named: Sequence[NamedPart]
) -> Response:
    """Return the recorded result for the same parts, while their version exists. Raises NoSuchUpload."""
    version = await services.index.version(upload.bucket_id, upload.key, upload.completed_version_id)
    if version is None or (version.version_id == NULL_VERSION and version.seq != upload.completed_seq):
        raise NoSuchUpload(UploadId=upload.upload_id)
    if version.etag != multipart_etag([etag for _, etag, _ in named]):
        raise InvalidPart(UploadId=upload.upload_id)
    await wait_until_journaled(services.store_of(request), request.bucket_row, upload.key, version, version.headers)
    response = _result(request, version.etag, version.checksum_algorithm, version.checksum_type, version.checksum)
    response.headers += version_headers.headers_of_put(version.version_id) + _encryption(request, version.headers)
    return response


def _result(request: S3Request, etag: str, algorithm: str, kind: str, checksum: str) -> Response:
    content = (
        xml.element("Location", url_of(request))
        + xml.element("Bucket", request.bucket)
        + xml.element("Key", request.key)
        + f"<ETag>&quot;{etag}&quot;</ETag>"
    )
    if checksum:
        content += xml.element("Checksum" + algorithm, checksum) + xml.element("ChecksumType", kind)
    return Response(200, list(XML), xml.document("CompleteMultipartUploadResult", content))
