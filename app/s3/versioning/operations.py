"""PutBucketVersioning, GetBucketVersioning, ListObjectVersions."""

from __future__ import annotations

from itertools import repeat
from time import perf_counter
from typing import TYPE_CHECKING

from sluice_s3.app.index.schema.tables import CURRENT, ENABLED, MARKER, OLD_MARKER, SUSPENDED, UNVERSIONED
from sluice_s3.app.index.versioning.rows import ListedVersionEntry, VersionsPage
from sluice_s3.app.s3.errors import (
    AccessDenied,
    IllegalVersioningConfigurationException,
    InvalidArgument,
    MalformedXML,
    NotImplemented,
)
from sluice_s3.app.s3.objects.listing import MAX_KEYS, Encode, render_checksum, render_list_header
from sluice_s3.app.s3.request_body import read_document
from sluice_s3.app.s3.restore import archives
from sluice_s3.app.s3.routing import operation
from sluice_s3.app.s3.versioning import headers as version_headers
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.query_parameters import parse_integer, wants_url_encoding
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import XML, Response

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

ROOT = "VersioningConfiguration"
STATUS = {"Enabled": ENABLED, "Suspended": SUSPENDED}
SHOWN = {UNVERSIONED: "", **{number: f"<Status>{name}</Status>" for name, number in STATUS.items()}}


@operation("GET", "bucket", "versioning", name="GetBucketVersioning", action="s3:GetBucketVersioning")
async def get_bucket_versioning(services: Services, request: S3Request) -> Response:
    """Handle GetBucketVersioning (https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketVersioning.html)."""
    return Response(200, list(XML), xml.document(ROOT, SHOWN[request.bucket_row.versioning]))


@operation("PUT", "bucket", "versioning", name="PutBucketVersioning", action="s3:PutBucketVersioning")
async def put_bucket_versioning(services: Services, request: S3Request) -> Response:
    """Handle PutBucketVersioning. MFA delete cannot be enabled, as there are no MFA devices.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketVersioning.html
    """
    tree = xml.parse(await read_document(request), ROOT)
    xml.check_children(tree, {"Status", "MfaDelete"})
    status, mfa_delete = xml.child_text(tree, "Status"), xml.child_text(tree, "MfaDelete")
    if mfa_delete not in (None, "Enabled", "Disabled"):
        raise MalformedXML()
    if mfa_delete == "Enabled":
        raise AccessDenied("Mfa Authentication must be used for this request")
    if status is None:
        raise IllegalVersioningConfigurationException()
    if status not in STATUS:
        raise MalformedXML()
    if services.tree_of(request.bucket_row) is not None:
        raise NotImplemented()  # a plain file has one version, which other programs may change
    await services.index.set_versioning(request.bucket_row.id, STATUS[status])
    return Response(200)


@operation("GET", "bucket", "versions", name="ListObjectVersions", action="s3:ListBucketVersions")
async def list_object_versions(services: Services, request: S3Request) -> Response:
    """Handle ListObjectVersions (https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html)."""
    query = request.query
    headers = archives.wants_restore_status(request)
    encode = xml.url_encode if wants_url_encoding(request) else xml.escape
    limit = parse_integer(request, "max-keys", MAX_KEYS, 0, MAX_KEYS, cap=True)
    key_marker, version_marker = query.get("key-marker", ""), query.get("version-id-marker")
    if version_marker is not None and not key_marker:
        raise InvalidArgument(
            "A version-id marker cannot be specified without a key marker.",
            ArgumentName="version-id-marker",
            ArgumentValue=version_marker,
        )
    if version_marker and not version_headers.may_exist(request.bucket_row, version_marker):
        raise InvalidArgument(
            "Invalid version id specified", ArgumentName="version-id-marker", ArgumentValue=version_marker[:1024]
        )
    started = perf_counter()
    page = await services.index.list_versions(
        request.bucket_row.id,
        query.get("prefix", ""),
        query.get("delimiter", ""),
        key_marker,
        version_marker or "",
        limit,
        headers=headers,
    )
    request.timings["index"] = perf_counter() - started
    markers = f"<KeyMarker>{encode(key_marker)}</KeyMarker>{xml.element('VersionIdMarker', version_marker or '')}"
    if page.truncated:
        markers += f"<NextKeyMarker>{encode(page.last_key)}</NextKeyMarker>"
        markers += xml.optional("NextVersionIdMarker", page.last_version_id)
    limits = f"<MaxKeys>{limit}</MaxKeys><IsTruncated>{str(page.truncated).lower()}</IsTruncated>"
    content = f"{render_list_header(request, encode, encode)}{markers}{limits}"
    return Response(200, list(XML), xml.document("ListVersionsResult", content, *_entries(request, page, encode)))


def _entries(request: S3Request, page: VersionsPage, encode: Encode) -> list[str]:
    owner = xml.owner_element(*request.bucket_owner)
    keys = xml.encode_all([entry.key for entry in page.entries], encode)
    parts = [_entry(entry, key, owner) for entry, key in zip(page.entries, keys, strict=True)]
    if page.headers:
        parts = [
            archives.add_restore_status(*each) for each in zip(parts, repeat("</Version>"), page.headers, strict=False)
        ]
    return parts + xml.common_prefixes(page.prefixes, encode)


def _entry(entry: ListedVersionEntry, key: str, owner: str) -> str:
    """Render a `Version` or a `DeleteMarker`; the key is already encoded."""
    latest = "true" if entry.state in (CURRENT, MARKER) else "false"
    which = (
        f"<Key>{key}</Key><VersionId>{entry.version_id}</VersionId><IsLatest>{latest}</IsLatest>"
        f"<LastModified>{xml.timestamp(entry.modified)}</LastModified>"
    )
    if entry.state in (MARKER, OLD_MARKER):
        return f"<DeleteMarker>{which}{owner}</DeleteMarker>"
    checksum = render_checksum(entry.checksum_algorithm, entry.checksum_type)
    return (
        f"<Version>{which}<ETag>&quot;{entry.etag}&quot;</ETag>{checksum}<Size>{entry.size}</Size>{owner}"
        f"<StorageClass>{entry.storage_class}</StorageClass></Version>"
    )
