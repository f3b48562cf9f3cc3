"""GetObjectAttributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.index.rows import Version
from app.s3 import conditions, encryption, rights, versions, xml
from app.s3.dates import http_date
from app.s3.dispatch import operation, right_on
from app.s3.errors import InvalidArgument
from app.s3.operations.object_read import find
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

ATTRIBUTES = frozenset({"ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"})
MAX_PARTS = 1000


@operation("GET", "key", "attributes", name="GetObjectAttributes", action="s3:GetObjectAttributes")
async def get_object_attributes(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAttributes.html"""
    asked = [name.strip() for name in request.headers.get("x-amz-object-attributes", "").split(",") if name.strip()]
    if not asked or not ATTRIBUTES.issuperset(asked):
        raise InvalidArgument("Invalid attribute name specified.", ArgumentName="x-amz-object-attributes")
    # it tells what is in the object, and so needs the right to that as well
    version_id = request.query.get("versionId")
    right = right_on("s3:GetObject", version_id)
    rights.check(request, right, request.bucket_row, request.key, version_id)
    limit = _number(request, "x-amz-max-parts", MAX_PARTS)
    after = _number(request, "x-amz-part-number-marker", 0)
    version = await find(gateway, request)
    await encryption.check_read(gateway, request, version)
    headers = [*XML, (b"last-modified", http_date(version.modified // 1000).encode())]
    headers += versions.of(request.bucket_row, version.version_id)
    if conditions.check_read(request.headers, version.etag, version.modified):
        return Response(304)
    content = ""
    if "ETag" in asked:
        content += xml.element("ETag", version.etag)
    if "Checksum" in asked and version.checksum:
        content += f"<Checksum>{checksum_elements(version)}</Checksum>"
    if "ObjectParts" in asked and version.parts:
        content += await _parts(gateway, version, after, min(limit, MAX_PARTS))
    if "StorageClass" in asked:
        content += xml.element("StorageClass", version.storage_class)
    if "ObjectSize" in asked:
        content += xml.element("ObjectSize", version.size)
    return Response(200, headers, xml.document("GetObjectAttributesResponse", content))


def checksum_elements(version: Version) -> str:
    """`ChecksumXXX` and `ChecksumType` of an object: a composite one without the number of parts, unlike in headers."""
    name, value = "Checksum" + version.checksum_algorithm, version.checksum.partition("-")[0]
    return xml.element(name, value) + xml.element("ChecksumType", version.checksum_type)


def _number(request: S3Request, name: str, default: int) -> int:
    text = request.headers.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise InvalidArgument(f"Provided {name} not an integer or within integer range", ArgumentName=name)
    return int(text)


async def _parts(gateway: Gateway, version: Version, after: int, limit: int) -> str:
    found = await gateway.index.object_parts(version.body, after, limit + 1)
    shown = found[:limit]
    content = xml.element("PartsCount", version.parts) + xml.element("PartNumberMarker", after)
    content += xml.element("NextPartNumberMarker", shown[-1].number if shown else after)
    content += xml.element("MaxParts", limit) + xml.element("IsTruncated", str(len(found) > limit).lower())
    # the parts of a full-object checksum have none of their own to show
    name = "Checksum" + version.checksum_algorithm if version.checksum_type == "COMPOSITE" else ""
    for part in shown:
        checksum = xml.element(name, part.checksum) if name and part.checksum else ""
        content += f"<Part>{xml.element('PartNumber', part.number)}{xml.element('Size', part.size)}{checksum}</Part>"
    return f"<ObjectParts>{content}</ObjectParts>"
