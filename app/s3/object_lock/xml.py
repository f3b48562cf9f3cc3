"""Documents and headers of object lock: a bucket's configuration, and objects' retention and legal hold.

"PutObjectLockConfiguration", "PutObjectRetention" and "PutObjectLegalHold", Amazon S3 API Reference.
"""

from __future__ import annotations

import math
import time
from datetime import datetime
from typing import NamedTuple
from xml.etree.ElementTree import Element

from sluice_s3.app.index.object_lock.protection import MODES, NONE, Lock
from sluice_s3.app.s3.errors import InvalidArgument, InvalidRetentionPeriod, MalformedXML, NotImplemented
from sluice_s3.app.s3.wire import xml

MODE, UNTIL, HOLD = HEADERS = (
    "x-amz-object-lock-mode",
    "x-amz-object-lock-retain-until-date",
    "x-amz-object-lock-legal-hold",
)
HOLDS = {"ON": True, "OFF": False}
MAX_DAYS, MAX_YEARS = 36500, 100
DEFAULT_EVENT_HOLD = "DefaultEventHold"
EVENT_HOLDS = ("EventHold", "EventHoldDuration")
"""A third kind of lock on AWS, not supported here."""
PAST = "The retain until date must be in the future!"


class DefaultRetention(NamedTuple):
    """The default retention of a bucket's new objects; none with an empty mode.

    Either days or years are set, the other is 0.
    """

    mode: str = ""
    days: int = 0
    years: int = 0


def parse_timestamp(text: str) -> int | None:
    """Return milliseconds since the epoch of an ISO 8601 time with zone. None for other texts."""
    try:
        found = datetime.fromisoformat(text.strip())
        return None if found.tzinfo is None else math.ceil(found.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def now_ms() -> int:
    """Return the milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def parse_default_retention(document: bytes) -> DefaultRetention:
    """Parse a default retention. Raises MalformedXML, InvalidRetentionPeriod."""
    tree = xml.parse(document, "ObjectLockConfiguration")
    xml.check_children(tree, {"ObjectLockEnabled", "Rule"})
    if xml.child_text(tree, "ObjectLockEnabled") != "Enabled":
        raise MalformedXML()
    rule = xml.single_child(tree, "Rule")
    if rule is None:
        return DefaultRetention()
    xml.check_children(rule, {"DefaultRetention"})
    retention = xml.single_child(rule, "DefaultRetention")
    if retention is None:
        raise MalformedXML()
    xml.check_children(retention, {"Mode", "Days", "Years", DEFAULT_EVENT_HOLD})
    _refuse_event_holds(retention)
    mode, days, years = (xml.child_text(retention, name) for name in ("Mode", "Days", "Years"))
    if mode not in MODES or (days is None) == (years is None):
        raise MalformedXML()
    if years is None:
        return DefaultRetention(mode, days=_period(days or "", MAX_DAYS))
    return DefaultRetention(mode, years=_period(years, MAX_YEARS))


def _refuse_event_holds(parent: Element) -> None:
    if any(child.tag in (DEFAULT_EVENT_HOLD, *EVENT_HOLDS) for child in parent):
        raise NotImplemented()


def _period(text: str, most: int) -> int:
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit()):
        raise MalformedXML()
    if text.strip() != digits or len(digits) > 9 or int(digits) == 0:
        raise InvalidRetentionPeriod()
    if int(digits) > most:
        raise InvalidRetentionPeriod("Default retention period too large")
    return int(digits)


def render_default_retention(default: DefaultRetention) -> bytes:
    """Render a default retention as a document."""
    rule = ""
    if default.mode:
        period = xml.element("Years", default.years) if default.years else xml.element("Days", default.days)
        rule = f"<Rule><DefaultRetention>{xml.element('Mode', default.mode)}{period}</DefaultRetention></Rule>"
    return xml.document("ObjectLockConfiguration", f"<ObjectLockEnabled>Enabled</ObjectLockEnabled>{rule}")


def parse_retention(document: bytes) -> Lock:
    """Parse a retention; mode and end are empty to remove it.

    Raises MalformedXML, and InvalidArgument for one that has ended.
    """
    tree = xml.parse(document, "Retention")
    xml.check_children(tree, {"Mode", "RetainUntilDate", *EVENT_HOLDS})
    _refuse_event_holds(tree)
    mode, date = xml.child_text(tree, "Mode"), xml.child_text(tree, "RetainUntilDate")
    if mode is None and date is None:
        return NONE
    until = None if date is None else parse_timestamp(date)
    if mode not in MODES or until is None:
        raise MalformedXML()
    if until <= now_ms():
        raise InvalidArgument(PAST, ArgumentName="RetainUntilDate", ArgumentValue=date)
    return Lock(mode, until)


def render_retention(lock: Lock) -> bytes:
    """Render a retention as a document."""
    content = xml.element("Mode", lock.mode) + xml.element("RetainUntilDate", xml.timestamp(lock.until))
    return xml.document("Retention", content)


def parse_legal_hold(document: bytes) -> bool:
    """Return whether a document sets or removes a legal hold. Raises MalformedXML."""
    tree = xml.parse(document, "LegalHold")
    xml.check_children(tree, {"Status"})
    status = xml.child_text(tree, "Status")
    if status not in HOLDS:
        raise MalformedXML()
    return HOLDS[status]


def render_legal_hold(hold: bool) -> bytes:
    """Render a legal hold as a document."""
    return xml.document("LegalHold", xml.element("Status", "ON" if hold else "OFF"))
