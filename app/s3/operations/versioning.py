"""PutBucketVersioning, GetBucketVersioning, ListObjectVersions."""

from __future__ import annotations

from itertools import repeat
from time import perf_counter
from typing import TYPE_CHECKING

from app.index.schema import CURRENT, ENABLED, MARKER, OLD_MARKER, SUSPENDED, UNVERSIONED
from app.index.version_rows import ListedAny, VersionsPage
from app.s3 import archives, versions, xml
from app.s3.body import document
from app.s3.dispatch import operation
from app.s3.errors import (
    AccessDenied,
    IllegalVersioningConfigurationException,
    InvalidArgument,
    MalformedXML,
    NotImplemented,
)
from app.s3.operations.listing import MAX_KEYS, Encode, opening
from app.s3.parameters import integer, url_encoding
from app.s3.request import S3Request
from app.s3.response import XML, Response

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

ROOT = "VersioningConfiguration"
STATUS = {"Enabled": ENABLED, "Suspended": SUSPENDED}
SHOWN = {UNVERSIONED: "", **{number: f"<Status>{name}</Status>" for name, number in STATUS.items()}}


@operation("GET", "bucket", "versioning", name="GetBucketVersioning", action="s3:GetBucketVersioning")
async def get_bucket_versioning(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetBucketVersioning.html"""
    return Response(200, list(XML), xml.document(ROOT, SHOWN[request.bucket_row.versioning]))


@operation("PUT", "bucket", "versioning", name="PutBucketVersioning", action="s3:PutBucketVersioning")
async def put_bucket_versioning(gateway: Gateway, request: S3Request) -> Response:
    """There are no devices here that MFA delete could ask, so that it cannot be enabled.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketVersioning.html
    """
    tree = xml.parse(await document(request), ROOT)
    xml.check_children(tree, {"Status", "MfaDelete"})
    status, mfa_delete = xml.text_of(tree, "Status"), xml.text_of(tree, "MfaDelete")
    if mfa_delete not in (None, "Enabled", "Disabled"):
        raise MalformedXML()
    if mfa_delete == "Enabled":
        raise AccessDenied("Mfa Authentication must be used for this request")
    if status is None:
        raise IllegalVersioningConfigurationException()
    if status not in STATUS:
        raise MalformedXML()
    if gateway.tree_of(request.bucket_row) is not None:
        raise NotImplemented()  # a plain file has one version, which others may change
    await gateway.index.set_versioning(request.bucket_row.id, STATUS[status])
    return Response(200)


@operation("GET", "bucket", "versions", name="ListObjectVersions", action="s3:ListBucketVersions")
async def list_object_versions(gateway: Gateway, request: S3Request) -> Response:
    """https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html"""
    query = request.query
    headers = archives.asks_status(request)
    encode = xml.url_encode if url_encoding(request) else xml.escape
    limit = integer(request, "max-keys", MAX_KEYS, 0, MAX_KEYS, cap=True)
    key_marker, version_marker = query.get("key-marker", ""), query.get("version-id-marker")
    if version_marker is not None and not key_marker:
        raise InvalidArgument(
            "A version-id marker cannot be specified without a key marker.",
            ArgumentName="version-id-marker",
            ArgumentValue=version_marker,
        )
    if version_marker and not versions.is_possible(request.bucket_row, version_marker):
        raise InvalidArgument(
            "Invalid version id specified", ArgumentName="version-id-marker", ArgumentValue=version_marker[:1024]
        )
    started = perf_counter()
    page = await gateway.index.list_versions(
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
    content = f"{opening(request, encode, encode)}{markers}{limits}{_entries(request, page, encode)}"
    return Response(200, list(XML), xml.document("ListVersionsResult", content))


def _entries(request: S3Request, page: VersionsPage, encode: Encode) -> str:
    owner = xml.owner(*request.bucket_owner)
    parts = [_entry(entry, encode(entry.key), owner) for entry in page.entries]
    if page.headers:
        parts = [archives.with_status(*each) for each in zip(parts, repeat("</Version>"), page.headers, strict=False)]
    parts += [f"<CommonPrefixes><Prefix>{encode(prefix)}</Prefix></CommonPrefixes>" for prefix in page.prefixes]
    return "".join(parts)


def _entry(entry: ListedAny, key: str, owner: str) -> str:
    """A `Version` or a `DeleteMarker`; the key is encoded already."""
    latest = "true" if entry.state in (CURRENT, MARKER) else "false"
    which = (
        f"<Key>{key}</Key><VersionId>{entry.version_id}</VersionId><IsLatest>{latest}</IsLatest>"
        f"<LastModified>{xml.timestamp(entry.modified)}</LastModified>"
    )
    if entry.state in (MARKER, OLD_MARKER):
        return f"<DeleteMarker>{which}{owner}</DeleteMarker>"
    checksum = ""
    if entry.checksum_algorithm:
        checksum = xml.element("ChecksumAlgorithm", entry.checksum_algorithm)
        checksum += xml.element("ChecksumType", entry.checksum_type)
    return (
        f"<Version>{which}<ETag>&quot;{entry.etag}&quot;</ETag>{checksum}<Size>{entry.size}</Size>{owner}"
        f"<StorageClass>{entry.storage_class}</StorageClass></Version>"
    )
