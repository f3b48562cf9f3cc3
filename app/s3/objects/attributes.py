"""GetObjectAttributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.s3.auth import authorization
from sluice_s3.app.s3.encryption import headers as encryption
from sluice_s3.app.s3.errors import InvalidArgument
from sluice_s3.app.s3.objects.find import find_version
from sluice_s3.app.s3.routing import action_for_version, operation
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import conditions, xml
from sluice_s3.app.s3.wire.dates import http_date
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

ATTRIBUTES = frozenset({"ETag", "Checksum", "ObjectParts", "StorageClass", "ObjectSize"})
MAX_PARTS = 1000


@operation("GET", "key", "attributes", name="GetObjectAttributes", action="s3:GetObjectAttributes")
async def get_object_attributes(services: Services, request: S3Request) -> Response:
    """Handle GetObjectAttributes (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAttributes.html)."""
    attributes = [
        name.strip() for name in request.headers.get("x-amz-object-attributes", "").split(",") if name.strip()
    ]
    if not attributes or not ATTRIBUTES.issuperset(attributes):
        raise InvalidArgument("Invalid attribute name specified.", ArgumentName="x-amz-object-attributes")
    # the response reveals the content's hash and size, and so needs that permission too
    version_id = request.query.get("versionId")
    right = action_for_version("s3:GetObject", version_id)
    authorization.require_action(request, right, request.bucket_row, request.key, version_id)
    limit = _number(request, "x-amz-max-parts", MAX_PARTS)
    after = _number(request, "x-amz-part-number-marker", 0)
    version = await find_version(services, request)
    await encryption.check_read(services, request, version)
    headers = [*XML, (b"last-modified", http_date(version.modified // 1000).encode())]
    headers += version_headers.version_header(request.bucket_row, version.version_id)
    if conditions.check_read(request.headers, version.etag, version.modified):
        return Response(304)
    content = ""
    if "ETag" in attributes:
        content += xml.element("ETag", version.etag)
    if "Checksum" in attributes and version.checksum:
        content += f"<Checksum>{checksum_elements(version)}</Checksum>"
    if "ObjectParts" in attributes and version.parts:
        content += await _parts(services, version, after, min(limit, MAX_PARTS))
    if "StorageClass" in attributes:
        content += xml.element("StorageClass", version.storage_class)
    if "ObjectSize" in attributes:
        content += xml.element("ObjectSize", version.size)
    return Response(200, headers, xml.document("GetObjectAttributesResponse", content))


def checksum_elements(version: Version) -> str:
    """Return `ChecksumXXX` and `ChecksumType`; a composite one lacks the number of parts, unlike in headers."""
    name, value = "Checksum" + version.checksum_algorithm, version.checksum.partition("-")[0]
    return xml.element(name, value) + xml.element("ChecksumType", version.checksum_type)


def _number(request: S3Request, name: str, default: int) -> int:
    text = request.headers.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 9:
        raise InvalidArgument(f"Provided {name} not an integer or within integer range", ArgumentName=name)
    return int(text)


async def _parts(services: Services, version: Version, after: int, limit: int) -> str:
    found = await services.index.object_parts(version.body, after, limit + 1)
    page = found[:limit]
    content = xml.element("PartsCount", version.parts) + xml.element("PartNumberMarker", after)
    content += xml.element("NextPartNumberMarker", page[-1].number if page else after)
    content += xml.element("MaxParts", limit) + xml.element("IsTruncated", str(len(found) > limit).lower())
    # parts under a full-object checksum have no checksums of their own
    name = "Checksum" + version.checksum_algorithm if version.checksum_type == "COMPOSITE" else ""
    for part in page:
        checksum = xml.element(name, part.checksum) if name and part.checksum else ""
        content += f"<Part>{xml.element('PartNumber', part.number)}{xml.element('Size', part.size)}{checksum}</Part>"
    return f"<ObjectParts>{content}</ObjectParts>"
