"""Logging configurations: destination, parsing and rendering.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLogging.html
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from xml.etree.ElementTree import Element

import orjson

from sluice_s3.app.access.acl import FULL_CONTROL, GROUPS, MAX_GRANTS, READ, WRITE
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.acl.grants import INSTANCE, RequestedGrant
from sluice_s3.app.s3.errors import MalformedXML
from sluice_s3.app.s3.wire import xml

SETTING = "logging"
"""Name of the bucket's setting."""
MARK = f'"{SETTING}":'
"""Occurs in the settings of a bucket with a log. Nowhere else in JSON does a quote precede the name."""
ROOT, ENABLED, FORMAT = "BucketLoggingStatus", "LoggingEnabled", "TargetObjectKeyFormat"
SIMPLE, PARTITIONED, SOURCE = "SimplePrefix", "PartitionedPrefix", "PartitionDateSource"
EVENT_TIME, DELIVERY_TIME = "EventTime", "DeliveryTime"
PERMISSIONS = (FULL_CONTROL, READ, WRITE)
MAX_PREFIX = 512
"""Characters: the rest of the key must fit behind it."""


class Logging(NamedTuple):
    """The destination of a log. `format` is empty (none named), SIMPLE, EVENT_TIME or DELIVERY_TIME."""

    bucket: str
    prefix: str
    format: str = ""
    grants: tuple[tuple[str, str], ...] = ()
    """Grantees and their permissions on the log's objects. A grantee is an id, or the URI of a group."""


def logging_of(bucket: Bucket) -> Logging | None:
    """Return the logging configuration of a bucket; None without."""
    return _parse(bucket.settings) if MARK in bucket.settings else None


@lru_cache(maxsize=1024)
def _parse(settings: str) -> Logging | None:
    found = orjson.loads(settings).get(SETTING)
    if found is None:
        return None
    name, prefix, form, grants = found
    return Logging(name, prefix, form, tuple((grantee, permission) for grantee, permission in grants))


def parse(document: bytes) -> tuple[Logging, list[RequestedGrant]] | None:
    """Return the configuration of a document, and its grantees as named; None to disable.

    Raises MalformedXML.
    """
    tree = xml.parse(document, ROOT)
    xml.check_children(tree, {ENABLED})
    found = tree.findall(ENABLED)
    if len(found) > 1:
        raise MalformedXML()
    if not found:
        return None
    enabled = found[0]
    xml.check_children(enabled, {"TargetBucket", "TargetPrefix", "TargetGrants", FORMAT})
    name, prefix = xml.child_text(enabled, "TargetBucket"), xml.child_text(enabled, "TargetPrefix")
    if not name or prefix is None or len(prefix) > MAX_PREFIX:
        raise MalformedXML()
    return Logging(name, prefix, _format(enabled)), _grants(enabled)


def _only(parent: Element, name: str) -> Element | None:
    found = parent.findall(name)
    if len(found) > 1:
        raise MalformedXML()
    return found[0] if found else None


def _format(enabled: Element) -> str:
    found = _only(enabled, FORMAT)
    if found is None:
        return ""
    xml.check_children(found, {SIMPLE, PARTITIONED})
    if len(found) != 1:
        raise MalformedXML()
    if found[0].tag == SIMPLE:
        return SIMPLE
    xml.check_children(found[0], {SOURCE})
    source = xml.child_text(found[0], SOURCE) or EVENT_TIME
    if source not in (EVENT_TIME, DELIVERY_TIME):
        raise MalformedXML()
    return source


def _grants(enabled: Element) -> list[RequestedGrant]:
    found = _only(enabled, "TargetGrants")
    if found is None:
        return []
    xml.check_children(found, {"Grant"})
    if len(found) > MAX_GRANTS:
        raise MalformedXML()
    return [_grant(element) for element in found]


def _grant(element: Element) -> RequestedGrant:
    xml.check_children(element, {"Grantee", "Permission"})
    grantee, permission = _only(element, "Grantee"), xml.child_text(element, "Permission")
    if grantee is None or permission not in PERMISSIONS:
        raise MalformedXML()
    for kind, name in (("id", "ID"), ("uri", "URI"), ("emailAddress", "EmailAddress")):
        value = xml.child_text(grantee, name)
        if value is not None:
            return RequestedGrant(kind, value, permission)
    raise MalformedXML()


def document(found: Logging | None) -> bytes:
    """Render a configuration as a document."""
    if found is None:
        return xml.document(ROOT, "")
    content = xml.element("TargetBucket", found.bucket) + xml.element("TargetPrefix", found.prefix)
    if found.grants:
        content += f"<TargetGrants>{''.join(_render_grant(*grant) for grant in found.grants)}</TargetGrants>"
    if found.format == SIMPLE:
        content += f"<{FORMAT}><{SIMPLE}/></{FORMAT}>"
    elif found.format:
        content += f"<{FORMAT}><{PARTITIONED}>{xml.element(SOURCE, found.format)}</{PARTITIONED}></{FORMAT}>"
    return xml.document(ROOT, f"<{ENABLED}>{content}</{ENABLED}>")


def _render_grant(grantee: str, permission: str) -> str:
    group = grantee.startswith(GROUPS)
    kind, name = ("Group", "URI") if group else ("CanonicalUser", "ID")
    return (
        f'<Grant><Grantee xmlns:xsi="{INSTANCE}" xsi:type="{kind}">{xml.element(name, grantee)}</Grantee>'
        f"{xml.element('Permission', permission)}</Grant>"
    )
