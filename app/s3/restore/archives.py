"""Archived objects, which must be restored before they are read, and restore requests.

"Restoring an archived object", Amazon S3 User Guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sluice_s3.app.index.object_lock.retention_clock import clock
from sluice_s3.app.index.objects.rows import Version
from sluice_s3.app.index.plain_files.rows import is_plain_file
from sluice_s3.app.index.restore import state as restore_state
from sluice_s3.app.s3.errors import InvalidArgument, InvalidObjectState, MalformedXML, NotImplemented
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request

if TYPE_CHECKING:
    from sluice_s3.app.s3.services import Services

TIERS = ("Standard", "Bulk", "Expedited")
MAX_DAYS = 2**31 - 1
SUPPORTED = frozenset({"Days", "GlacierJobParameters", "Tier", "Description"})
NOT_BUILT = frozenset({"Type", "SelectParameters", "OutputLocation"})
SOURCE_ARCHIVED = "Operation is not valid for the source object's storage class"
NO_ARCHIVE = "Restore is not allowed for the object's current storage class"
STATUS = "x-amz-optional-object-attributes"


class RestoreRequest(NamedTuple):
    """The requested days and tier of a restore."""

    days: int
    tier: str


def is_archived(services: Services, version: Version) -> bool:
    """Return whether a version must be restored before it can be read. Plain files are never archived."""
    return version.storage_class in services.archives and not is_plain_file(version.body)


def require_restored(services: Services, version: Version, message: str | None = None) -> None:
    """Raise InvalidObjectState for an archived version that is not restored."""
    if is_archived(services, version):
        restore = restore_state.restore_state(version.headers)
        if restore is None or restore.until <= clock.now_ms():
            raise InvalidObjectState(message, StorageClass=version.storage_class)


def parse_restore_request(document: bytes) -> RestoreRequest:
    """Parse a document `RestoreRequest`. Raises MalformedXML, InvalidArgument, NotImplemented."""
    tree = xml.parse(document, "RestoreRequest")
    xml.check_children(tree, SUPPORTED | NOT_BUILT)
    if any(child.tag in NOT_BUILT for child in tree):
        raise NotImplemented()
    days = (xml.child_text(tree, "Days") or "").strip()
    if not days.removeprefix("-").isdecimal() or not days.isascii() or len(days) > 18:
        raise MalformedXML()
    if not 1 <= int(days) <= MAX_DAYS:
        raise InvalidArgument("restoration days should be at least 1", ArgumentName="Days", ArgumentValue=days)
    tiers = [xml.child_text(tree, "Tier")]
    for parameters in tree.findall("GlacierJobParameters"):
        xml.check_children(parameters, {"Tier"})
        tiers.append(xml.child_text(parameters, "Tier"))
    found = [tier for tier in tiers if tier is not None]
    if any(tier not in TIERS for tier in found) or len(tree.findall("GlacierJobParameters")) > 1:
        raise MalformedXML()
    return RestoreRequest(int(days), found[-1] if found else TIERS[0])


def wants_restore_status(request: S3Request) -> bool:
    """Return whether a listing must contain restore states. Raises InvalidArgument."""
    names = request.headers.get(STATUS)
    if names is None:
        return False
    attributes = {name.strip() for name in names.split(",")} - {""}
    if not attributes <= {"RestoreStatus"}:
        raise InvalidArgument("Invalid attribute name specified.", ArgumentName=STATUS, ArgumentValue=names[:1024])
    return bool(attributes)


def add_restore_status(entry: str, closing: str, headers: str) -> str:
    """Add the restore state in `headers` to an entry of a listing.

    `closing` is the entry's end tag.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_RestoreStatus.html
    """
    restore = restore_state.restore_state(headers)
    if restore is None:
        return entry
    status = xml.element("IsRestoreInProgress", "false" if restore.until else "true")
    if restore.until:
        status += xml.element("RestoreExpiryDate", xml.timestamp(restore.until))
    return f"{entry.removesuffix(closing)}<RestoreStatus>{status}</RestoreStatus>{closing}"
