"""What an object has beside its bytes: content headers, metadata, tags, lock, class, ACL, checksum."""

from __future__ import annotations

from datetime import UTC, datetime
from email.header import Header
from typing import Any
from urllib.parse import urlencode

from botocore.exceptions import ClientError

from sluice_s3.app.transfer.bodies import address
from sluice_s3.app.transfer.endpoints import Bucket
from sluice_s3.app.transfer.errors import NOT_BUILT, code_of, is_not_built
from sluice_s3.app.transfer.listing import Entry

_HEADERS = ("CacheControl", "ContentDisposition", "ContentLanguage", "ContentType", "WebsiteRedirectLocation")
ALGORITHMS = ("CRC64NVME", "CRC32", "CRC32C", "SHA1", "SHA256")
LOCK = ("ObjectLockMode", "ObjectLockRetainUntilDate", "ObjectLockLegalHoldStatus")
OPTIONAL = {
    "tags": ("Tagging",),
    "object lock": LOCK,
    "ACL": ("ACL",),
    "redirect": ("WebsiteRedirectLocation",),
    "checksum": (*(f"Checksum{name}" for name in ALGORITHMS), "ChecksumAlgorithm", "ChecksumType"),
    "storage class": ("StorageClass",),
}
"""Parameters of a write that an endpoint may lack: without them the object can still be copied."""
_GROUP = "http://acs.amazonaws.com/groups/global/"
CANNED = {
    frozenset[tuple[str, str]](): "",
    frozenset({("AllUsers", "READ")}): "public-read",
    frozenset({("AllUsers", "READ"), ("AllUsers", "WRITE")}): "public-read-write",
    frozenset({("AuthenticatedUsers", "READ")}): "authenticated-read",
}
"""Canned ACLs by what they grant to groups."""


def of_response(response: dict[str, Any], classes: dict[str, str]) -> dict[str, Any]:
    """Return the parameters of a write that has what an answer to GetObject or HeadObject has.

    `classes` maps storage classes.
    """
    found = {name: response[name] for name in _HEADERS if response.get(name)}
    if response.get("ExpiresString"):
        found["Expires"] = response["ExpiresString"]
    # `aws-chunked` is of the upload; some servers keep it
    encoding = [one.strip() for one in response.get("ContentEncoding", "").split(",")]
    if kept := ",".join(one for one in encoding if one not in ("", "aws-chunked")):
        found["ContentEncoding"] = kept
    found["Metadata"] = {name: to_ascii(value) for name, value in response.get("Metadata", {}).items()}
    original = response.get("StorageClass", "STANDARD")
    if (storage_class := classes.get(original, original)) != "STANDARD":
        found["StorageClass"] = storage_class
    until = response.get("ObjectLockRetainUntilDate")
    if response.get("ObjectLockMode") and until is not None and until > datetime.now(UTC):
        found |= {"ObjectLockMode": response["ObjectLockMode"], "ObjectLockRetainUntilDate": until}
    if response.get("ObjectLockLegalHoldStatus") == "ON":
        found["ObjectLockLegalHoldStatus"] = "ON"
    return found


def to_ascii(value: str) -> str:
    """Return a value of metadata as AWS answers it: RFC 2047 where it is not ASCII."""
    if value.isascii():
        return value
    try:
        value = value.encode("latin-1").decode()  # a server that sends UTF-8 as it is
    except UnicodeError:
        pass
    return Header(value, "utf-8", maxlinelen=100_000).encode()


def checksum(response: dict[str, Any]) -> dict[str, str]:
    """Return the parameter with the checksum of the whole body, where the source gave one."""
    for name in ALGORITHMS:
        value = response.get(f"Checksum{name}", "")
        if value and "-" not in value and response.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT":
            return {f"Checksum{name}": value}
    return {}


def checksum_of_parts(response: dict[str, Any]) -> dict[str, str]:
    """Return the parameters of an upload whose object gets a checksum of the source's kind."""
    for name in ALGORITHMS:
        if value := response.get(f"Checksum{name}", ""):
            kind = response.get("ChecksumType") or ("COMPOSITE" if "-" in value else "FULL_OBJECT")
            return {"ChecksumAlgorithm": name, "ChecksumType": kind}
    return {}


def tagging(bucket: Bucket, entry: Entry) -> dict[str, str]:
    """Return the parameter with the tags of a version."""
    try:
        tags = bucket.client.get_object_tagging(**address(bucket, entry)).get("TagSet", ())
    except ClientError as error:
        if not is_not_built(error) and code_of(error) != "NoSuchTagSet":
            raise
        return {}
    return {"Tagging": urlencode([(tag["Key"], tag["Value"]) for tag in tags])} if tags else {}


def groups_of(grants: list[dict[str, Any]]) -> frozenset[tuple[str, str]]:
    """Return what an ACL grants to groups; grants to accounts have no meaning elsewhere."""
    return frozenset(
        (grant["Grantee"]["URI"].removeprefix(_GROUP), grant["Permission"])
        for grant in grants
        if grant.get("Grantee", {}).get("URI")
    )


def canned_acl(bucket: Bucket, entry: Entry) -> str | None:
    """Return the canned ACL that grants to groups what a version's does; None if there is none."""
    return CANNED.get(groups_of(bucket.client.get_object_acl(**address(bucket, entry)).get("Grants", [])))


def part_at_fault(error: ClientError, arguments: dict[str, Any]) -> str:
    """Return which optional part of a write its endpoint refused; empty for none."""
    code = code_of(error)
    present = [name for name, parameters in OPTIONAL.items() if not arguments.keys().isdisjoint(parameters)]
    named = {
        "InvalidStorageClass": "storage class",
        "AccessControlListNotSupported": "ACL",
        "AccessDenied": "ACL",  # a public one where the public access block forbids it
        "InvalidTag": "tags",
        "InvalidRequest": "object lock",
        "ObjectLockConfigurationNotFoundError": "object lock",
    }.get(code, "")
    if named in present:
        return named
    if code in NOT_BUILT or is_not_built(error):
        return present[0] if present else ""
    return ""
