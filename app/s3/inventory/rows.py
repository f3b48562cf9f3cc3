"""The row values of an inventory, and the rendering of its files.

"Amazon S3 Inventory list", Amazon S3 User Guide.
"""

from __future__ import annotations

import base64
import csv
import gzip
import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from sluice_s3.app.access.acl import FULL_CONTROL, GROUPS, Grant
from sluice_s3.app.encryption.scheme import scheme_of
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.schema.tables import CURRENT, MARKER, OLD_MARKER
from sluice_s3.app.index.versioning.rows import ListedVersionEntry
from sluice_s3.app.s3.inventory.xml import CSV, Inventory
from sluice_s3.app.s3.wire import metadata, xml
from sluice_s3.app.store.etags import is_multipart

ALWAYS_COLUMNS = ("Bucket", "Key")
VERSION_COLUMNS = ("VersionId", "IsLatest", "IsDeleteMarker")
NEEDS_VERSION = frozenset(
    {
        "EncryptionStatus",
        "ObjectLockRetainUntilDate",
        "ObjectLockMode",
        "ObjectLockLegalHoldStatus",
        "BucketKeyStatus",
        "ObjectAccessControlList",
        "ObjectOwner",
    }
)
"""Fields that a listing lacks: they need a lookup of each version."""


class Entry(NamedTuple):
    """A listed version, with its row where a field needs it."""

    listed: ListedVersionEntry
    version: Version | None

    @property
    def is_marker(self) -> bool:
        """It is a delete marker."""
        return self.listed.state in (MARKER, OLD_MARKER)


def inventory_columns(found: Inventory) -> list[str]:
    """Return the columns of a report, as a manifest names them."""
    return [*ALWAYS_COLUMNS, *(VERSION_COLUMNS if found.versions else ()), *found.fields]


def _encryption(entry: Entry) -> str:
    assert entry.version is not None
    scheme = scheme_of(entry.version.headers)
    if scheme is None:
        return "NOT-SSE"
    return {"AES256": "SSE-S3", "aws:kms": "SSE-KMS", "aws:kms:dsse": "DSSE-KMS"}.get(scheme.method, "SSE-C")


def _bucket_key(entry: Entry) -> str:
    assert entry.version is not None
    scheme = scheme_of(entry.version.headers)
    return "" if scheme is None else "ENABLED" if scheme.bucket_key else "DISABLED"


def _retained(entry: Entry) -> str:
    assert entry.version is not None
    until = metadata.lock(entry.version.headers).until
    return xml.timestamp(until) if until else ""


def _mode(entry: Entry) -> str:
    assert entry.version is not None
    return metadata.lock(entry.version.headers).mode


def _owner(entry: Entry) -> str:
    assert entry.version is not None
    return entry.version.owner_id


def _hold(entry: Entry) -> str:
    assert entry.version is not None
    return {None: "", True: "ON", False: "OFF"}[metadata.lock(entry.version.headers).hold]


def _acl(entry: Entry) -> str:
    assert entry.version is not None
    owner = entry.version.owner_id
    grants = metadata.grants(entry.version.headers) or (Grant(owner, FULL_CONTROL),)
    entries = [
        {
            **({"uri": one.grantee} if one.grantee.startswith(GROUPS) else {"canonicalId": one.grantee}),
            "type": "Group" if one.grantee.startswith(GROUPS) else "CanonicalUser",
            "permission": one.permission,
        }
        for one in grants
    ]
    return base64.b64encode(orjson.dumps({"version": "2022-11-10", "status": "AVAILABLE", "grants": entries})).decode()


VALUES: dict[str, Callable[[Entry], Any]] = {
    "Size": lambda entry: None if entry.is_marker else entry.listed.size,
    "LastModifiedDate": lambda entry: entry.listed.modified,
    "ETag": lambda entry: entry.listed.etag,
    "StorageClass": lambda entry: "" if entry.is_marker else entry.listed.storage_class,
    "IsMultipartUploaded": lambda entry: is_multipart(entry.listed.etag),
    "ReplicationStatus": lambda entry: "",
    "EncryptionStatus": _encryption,
    "ObjectLockRetainUntilDate": _retained,
    "ObjectLockMode": _mode,
    "ObjectLockLegalHoldStatus": _hold,
    "IntelligentTieringAccessTier": lambda entry: "",
    "BucketKeyStatus": _bucket_key,
    "ChecksumAlgorithm": lambda entry: entry.listed.checksum_algorithm,
    "ObjectAccessControlList": _acl,
    "ObjectOwner": _owner,
}
NOT_OF_MARKERS = NEEDS_VERSION | {"IsMultipartUploaded"}


def row_values(found: Inventory, source: Bucket, entry: Entry) -> list[Any]:
    """Return the values of the columns: texts, integers, booleans; `LastModifiedDate` in milliseconds."""
    listed = entry.listed
    values: list[Any] = [source.name, listed.key]
    if found.versions:
        values += [listed.version_id, listed.state in (CURRENT, MARKER), entry.is_marker]
    for field in found.fields:
        values.append("" if entry.is_marker and field in NOT_OF_MARKERS else VALUES[field](entry))
    return values


def render_file(found: Inventory, rows: Sequence[Sequence[Any]]) -> tuple[bytes, str, str]:
    """Render a file of rows. Returns its bytes, the end of its name and its type. Slow: call it in a thread."""
    if found.format == CSV:
        return _csv(found, rows), "csv.gz", "application/x-gzip"
    return _parquet(found, rows), "parquet", "application/octet-stream"


def _csv(found: Inventory, rows: Sequence[Sequence[Any]]) -> bytes:
    columns = inventory_columns(found)
    written = io.StringIO()
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([_text(name, value) for name, value in zip(columns, row, strict=True)] for row in rows)
    return gzip.compress(written.getvalue().encode(), 6, mtime=0)


def _text(name: str, value: Any) -> str:
    if name == "Key":
        return quote(value, safe="/-_.~*", errors="surrogatepass")
    if name == "LastModifiedDate":
        return xml.timestamp(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _parquet(found: Inventory, rows: Sequence[Sequence[Any]]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    kinds = {
        "Size": pa.int64(),
        "LastModifiedDate": pa.timestamp("ms", tz="UTC"),
        "IsLatest": pa.bool_(),
        "IsDeleteMarker": pa.bool_(),
        "IsMultipartUploaded": pa.bool_(),
    }
    columns = inventory_columns(found)
    arrays = []
    for column, name in enumerate(columns):
        kind = kinds.get(name, pa.string())
        arrays.append(pa.array([_plain(row[column], kind == pa.string()) for row in rows], kind))
    table = pa.table(dict(zip(map(snake_case, columns), arrays, strict=True)))
    written = io.BytesIO()
    parquet.write_table(table, written, compression="snappy")
    return written.getvalue()


def _plain(value: Any, text: bool) -> Any:
    return value if text else None if value == "" else value


def snake_case(name: str) -> str:
    """Return the name of a column in a Parquet file."""
    return {"ETag": "e_tag"}.get(name) or "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in name)[1:]
