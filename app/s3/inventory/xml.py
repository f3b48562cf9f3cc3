"""Configurations of inventories: content, frequency and destination.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketInventoryConfiguration.html
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from xml.etree.ElementTree import Element

import orjson

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.errors import (
    IdMismatch,
    InvalidConfigurationId,
    InvalidS3DestinationBucket,
    MalformedXML,
    NotImplemented,
)
from sluice_s3.app.s3.wire import xml

SETTING = "inventory"
"""Name of the bucket's setting."""
MARK = f'"{SETTING}":'
"""Occurs in the settings of a bucket with inventories."""
ROOT = "InventoryConfiguration"
MAX_CONFIGURATIONS = 1000
"""Configurations of a bucket."""
PAGE_CONFIGURATIONS = 100
"""Configurations on one page of a list."""
ARN = "arn:aws:s3:::"
CSV, PARQUET = "CSV", "Parquet"
ALL = "All"
WEEKLY = "Weekly"
FIELDS = (
    "Size",
    "LastModifiedDate",
    "ETag",
    "StorageClass",
    "IsMultipartUploaded",
    "ReplicationStatus",
    "EncryptionStatus",
    "ObjectLockRetainUntilDate",
    "ObjectLockMode",
    "ObjectLockLegalHoldStatus",
    "IntelligentTieringAccessTier",
    "BucketKeyStatus",
    "ChecksumAlgorithm",
    "ObjectAccessControlList",
    "ObjectOwner",
)
"""Optional fields, in their order in reports."""
NOT_BUILT = frozenset(
    {
        "IntelligentTieringReferenceDate",
        "LifecycleExpirationDate",
        "ObjectLockEventHoldDuration",
        "ObjectLockEventHoldStatus",
    }
)
"""Optional fields of AWS that are not supported here."""
_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Inventory(NamedTuple):
    """One configuration."""

    id: str
    enabled: bool
    bucket: str
    """Name of the destination."""
    account: str
    """Account number of the destination's owner; empty when absent."""
    prefix: str
    format: str
    versions: bool
    """All versions, not only current ones."""
    frequency: str
    filter: str
    """Prefix of the listed keys."""
    fields: tuple[str, ...]
    encryption: str = ""
    """Encryption of the report: empty (the destination's default), or `SSE-S3`."""


def inventories_of(bucket: Bucket) -> dict[str, Inventory]:
    """Return the configurations of a bucket by id, in the order of ids."""
    return _parsed(bucket.settings) if MARK in bucket.settings else {}


@lru_cache(maxsize=256)
def _parsed(settings: str) -> dict[str, Inventory]:
    found = orjson.loads(settings).get(SETTING) or {}
    return {name: Inventory(*found[name])._replace(fields=tuple(found[name][9])) for name in sorted(found)}


def parse_inventory(document: bytes, name: str) -> Inventory:
    """Parse a configuration. Raises MalformedXML, NotImplemented, InvalidS3DestinationBucket."""
    tree = xml.parse(document, ROOT)
    names = {"Destination", "IsEnabled", "Filter", "Id", "IncludedObjectVersions", "OptionalFields", "Schedule"}
    xml.check_children(tree, names)
    if xml.child_text(tree, "Id") != name:
        raise IdMismatch()
    if _ID.fullmatch(name) is None:
        raise InvalidConfigurationId()
    holder, schedule = _child(tree, "Destination"), _child(tree, "Schedule")
    xml.check_children(holder, {"S3BucketDestination"})
    xml.check_children(schedule, {"Frequency"})
    destination = _child(holder, "S3BucketDestination")
    xml.check_children(destination, {"AccountId", "Bucket", "Encryption", "Format", "Prefix"})
    arn = xml.child_text(destination, "Bucket") or ""
    if not arn.startswith(ARN) or len(arn) == len(ARN):
        raise InvalidS3DestinationBucket("Invalid bucket ARN.")
    included = _require_choice(tree, "IncludedObjectVersions", (ALL, "Current"))
    return Inventory(
        name,
        _require_choice(tree, "IsEnabled", ("true", "false")) == "true",
        arn.removeprefix(ARN),
        xml.child_text(destination, "AccountId") or "",
        xml.child_text(destination, "Prefix") or "",
        _format(destination),
        included == ALL,
        _require_choice(schedule, "Frequency", ("Daily", WEEKLY)),
        _filter(tree),
        _fields(tree),
        _encryption(destination),
    )


def _child(parent: Element, name: str) -> Element:
    found = parent.findall(name)
    if len(found) != 1:
        raise MalformedXML()
    return found[0]


def _require_choice(parent: Element, name: str, values: tuple[str, ...]) -> str:
    text = xml.child_text(parent, name)
    if text not in values:
        raise MalformedXML()
    return text


def _format(destination: Element) -> str:
    found = _require_choice(destination, "Format", (CSV, "ORC", PARQUET))
    if found == "ORC" or (found == PARQUET and not has_parquet()):
        raise NotImplemented()
    return found


@lru_cache(maxsize=1)
def has_parquet() -> bool:
    """Return whether the extra `parquet` is installed."""
    try:
        import pyarrow  # noqa: F401 - an extra, and a tenth of a second to import
    except ImportError:
        return False
    return True


def _filter(tree: Element) -> str:
    found = xml.single_child(tree, "Filter")
    if found is None:
        return ""
    xml.check_children(found, {"Prefix"})
    return xml.child_text(found, "Prefix") or ""


def _fields(tree: Element) -> tuple[str, ...]:
    found = xml.single_child(tree, "OptionalFields")
    if found is None:
        return ()
    xml.check_children(found, {"Field"})
    named = {child.text or "" for child in found}
    if not named <= NOT_BUILT.union(FIELDS) or any(len(child) for child in found):
        raise MalformedXML()
    if named & NOT_BUILT:
        raise NotImplemented()
    return tuple(field for field in FIELDS if field in named)


def _encryption(destination: Element) -> str:
    found = xml.single_child(destination, "Encryption")
    if found is None:
        return ""
    if len(found) != 1 or found[0].tag != "SSE-S3":
        raise NotImplemented()
    if len(found[0]):
        raise MalformedXML()
    return "SSE-S3"


def render_inventory(found: Inventory) -> str:
    """Render a configuration without its root element."""
    destination = (
        xml.optional("AccountId", found.account)
        + xml.element("Bucket", ARN + found.bucket)
        + xml.element("Format", found.format)
        + xml.optional("Prefix", found.prefix)
        + ("<Encryption><SSE-S3/></Encryption>" if found.encryption else "")
    )
    content = xml.element("Id", found.id) + xml.element("IsEnabled", str(found.enabled).lower())
    content += f"<Destination><S3BucketDestination>{destination}</S3BucketDestination></Destination>"
    if found.filter:
        content += f"<Filter>{xml.element('Prefix', found.filter)}</Filter>"
    content += xml.element("IncludedObjectVersions", ALL if found.versions else "Current")
    if found.fields:
        content += f"<OptionalFields>{''.join(xml.element('Field', field) for field in found.fields)}</OptionalFields>"
    return content + f"<Schedule>{xml.element('Frequency', found.frequency)}</Schedule>"
