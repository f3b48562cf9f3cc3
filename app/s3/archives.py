"""Objects of archived storage classes: they are read once they were restored, and what asks for that.

"Restoring an archived object", Amazon S3 User Guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from app.index import restores
from app.index.lock_clock import clock
from app.index.rows import Version, is_tree
from app.s3 import xml
from app.s3.errors import InvalidArgument, InvalidObjectState, MalformedXML, NotImplemented
from app.s3.request import S3Request

if TYPE_CHECKING:
    from app.s3.gateway import Gateway

TIERS = ("Standard", "Bulk", "Expedited")
MAX_DAYS = 2**31 - 1
BUILT = frozenset({"Days", "GlacierJobParameters", "Tier", "Description"})
NOT_BUILT = frozenset({"Type", "SelectParameters", "OutputLocation"})
OF_SOURCE = "Operation is not valid for the source object's storage class"
NO_ARCHIVE = "Restore is not allowed for the object's current storage class"
STATUS = "x-amz-optional-object-attributes"


class Asked(NamedTuple):
    """What a request wants back, for how long."""

    days: int
    tier: str


def is_archived(gateway: Gateway, version: Version) -> bool:
    """Whether a version must be restored before it can be read. Plain files are never archived."""
    return version.storage_class in gateway.archives and not is_tree(version.body)


def check_read(gateway: Gateway, version: Version, message: str | None = None) -> None:
    """Raises InvalidObjectState for an archived version that is not back."""
    if is_archived(gateway, version):
        restore = restores.of(version.headers)
        if restore is None or restore.until <= clock.now_ms():
            raise InvalidObjectState(message, StorageClass=version.storage_class)


def parse(document: bytes) -> Asked:
    """What a document `RestoreRequest` asks for. Raises MalformedXML, InvalidArgument, NotImplemented."""
    tree = xml.parse(document, "RestoreRequest")
    xml.check_children(tree, BUILT | NOT_BUILT)
    if any(child.tag in NOT_BUILT for child in tree):
        raise NotImplemented()
    days = (xml.text_of(tree, "Days") or "").strip()
    if not days.removeprefix("-").isdecimal() or not days.isascii() or len(days) > 18:
        raise MalformedXML()
    if not 1 <= int(days) <= MAX_DAYS:
        raise InvalidArgument("restoration days should be at least 1", ArgumentName="Days", ArgumentValue=days)
    tiers = [xml.text_of(tree, "Tier")]
    for parameters in tree.findall("GlacierJobParameters"):
        xml.check_children(parameters, {"Tier"})
        tiers.append(xml.text_of(parameters, "Tier"))
    found = [tier for tier in tiers if tier is not None]
    if any(tier not in TIERS for tier in found) or len(tree.findall("GlacierJobParameters")) > 1:
        raise MalformedXML()
    return Asked(int(days), found[-1] if found else TIERS[0])


def asks_status(request: S3Request) -> bool:
    """Whether a listing is to tell what is restored. Raises InvalidArgument."""
    names = request.headers.get(STATUS)
    if names is None:
        return False
    asked = {name.strip() for name in names.split(",")} - {""}
    if not asked <= {"RestoreStatus"}:
        raise InvalidArgument("Invalid attribute name specified.", ArgumentName=STATUS, ArgumentValue=names[:1024])
    return bool(asked)


def with_status(entry: str, closing: str, headers: str) -> str:
    """An entry of a listing that tells how it stands with the version of these headers; `closing` is its end.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreStatus.html
    """
    restore = restores.of(headers)
    if restore is None:
        return entry
    status = xml.element("IsRestoreInProgress", "false" if restore.until else "true")
    if restore.until:
        status += xml.element("RestoreExpiryDate", xml.timestamp(restore.until))
    return f"{entry.removesuffix(closing)}<RestoreStatus>{status}</RestoreStatus>{closing}"
