"""Where the access log of a bucket goes: what a request may say of it, and how it is kept and shown.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketLogging.html
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from xml.etree.ElementTree import Element

import orjson

from app.access.acl import FULL_CONTROL, GROUPS, MAX_GRANTS, READ, WRITE
from app.index.rows import Bucket
from app.s3 import xml
from app.s3.acls import INSTANCE, Named
from app.s3.errors import MalformedXML

SETTING = "logging"
"""Name of the bucket's setting."""
MARK = f'"{SETTING}":'
"""In a bucket's settings when it has a log: a name with a quote before it stands nowhere else in JSON."""
ROOT, ENABLED, FORMAT = "BucketLoggingStatus", "LoggingEnabled", "TargetObjectKeyFormat"
SIMPLE, PARTITIONED, SOURCE = "SimplePrefix", "PartitionedPrefix", "PartitionDateSource"
EVENT_TIME, DELIVERY_TIME = "EventTime", "DeliveryTime"
PERMISSIONS = (FULL_CONTROL, READ, WRITE)
MAX_PREFIX = 512
"""Characters: what comes behind it must fit into a key."""


class Logging(NamedTuple):
    """Where a log goes. `format` is empty when none was named, SIMPLE, EVENT_TIME or DELIVERY_TIME."""

    bucket: str
    prefix: str
    format: str = ""
    grants: tuple[tuple[str, str], ...] = ()
    """Grantees (an id, or the URI of a group) and what each may do with the log's objects."""


def logging_of(bucket: Bucket) -> Logging | None:
    """Where the log of a bucket goes, None when it has none."""
    return _parsed(bucket.settings) if MARK in bucket.settings else None


@lru_cache(maxsize=1024)
def _parsed(settings: str) -> Logging | None:
    found = orjson.loads(settings).get(SETTING)
    if found is None:
        return None
    name, prefix, form, grants = found
    return Logging(name, prefix, form, tuple((grantee, permission) for grantee, permission in grants))


def parse(document: bytes) -> tuple[Logging, list[Named]] | None:
    """What a document asks for, and the grantees as it names them; None for no log. Raises MalformedXML."""
    tree = xml.parse(document, ROOT)
    xml.check_children(tree, {ENABLED})
    found = tree.findall(ENABLED)
    if len(found) > 1:
        raise MalformedXML()
    if not found:
        return None
    enabled = found[0]
    xml.check_children(enabled, {"TargetBucket", "TargetPrefix", "TargetGrants", FORMAT})
    name, prefix = xml.text_of(enabled, "TargetBucket"), xml.text_of(enabled, "TargetPrefix")
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
    source = xml.text_of(found[0], SOURCE) or EVENT_TIME
    if source not in (EVENT_TIME, DELIVERY_TIME):
        raise MalformedXML()
    return source


def _grants(enabled: Element) -> list[Named]:
    found = _only(enabled, "TargetGrants")
    if found is None:
        return []
    xml.check_children(found, {"Grant"})
    if len(found) > MAX_GRANTS:
        raise MalformedXML()
    return [_grant(element) for element in found]


def _grant(element: Element) -> Named:
    xml.check_children(element, {"Grantee", "Permission"})
    grantee, permission = _only(element, "Grantee"), xml.text_of(element, "Permission")
    if grantee is None or permission not in PERMISSIONS:
        raise MalformedXML()
    for kind, name in (("id", "ID"), ("uri", "URI"), ("emailAddress", "EmailAddress")):
        value = xml.text_of(grantee, name)
        if value is not None:
            return Named(kind, value, permission)
    raise MalformedXML()


def document(found: Logging | None) -> bytes:
    """The document that shows where a log goes."""
    if found is None:
        return xml.document(ROOT, "")
    content = xml.element("TargetBucket", found.bucket) + xml.element("TargetPrefix", found.prefix)
    if found.grants:
        content += f"<TargetGrants>{''.join(_shown(*grant) for grant in found.grants)}</TargetGrants>"
    if found.format == SIMPLE:
        content += f"<{FORMAT}><{SIMPLE}/></{FORMAT}>"
    elif found.format:
        content += f"<{FORMAT}><{PARTITIONED}>{xml.element(SOURCE, found.format)}</{PARTITIONED}></{FORMAT}>"
    return xml.document(ROOT, f"<{ENABLED}>{content}</{ENABLED}>")


def _shown(grantee: str, permission: str) -> str:
    group = grantee.startswith(GROUPS)
    kind, name = ("Group", "URI") if group else ("CanonicalUser", "ID")
    return (
        f'<Grant><Grantee xmlns:xsi="{INSTANCE}" xsi:type="{kind}">{xml.element(name, grantee)}</Grantee>'
        f"{xml.element('Permission', permission)}</Grant>"
    )
