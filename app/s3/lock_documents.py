"""Object lock as documents and headers write it: a bucket's configuration, and retention and legal hold of objects.

"PutObjectLockConfiguration", "PutObjectRetention" and "PutObjectLegalHold", Amazon S3 API Reference.
"""

from __future__ import annotations

import math
import time
from datetime import datetime
from typing import NamedTuple
from xml.etree.ElementTree import Element

from app.index.locks import MODES, NONE, Lock
from app.s3 import xml
from app.s3.errors import InvalidArgument, InvalidRetentionPeriod, MalformedXML, NotImplemented

MODE, UNTIL, HOLD = HEADERS = (
    "x-amz-object-lock-mode",
    "x-amz-object-lock-retain-until-date",
    "x-amz-object-lock-legal-hold",
)
HOLDS = {"ON": True, "OFF": False}
MAX_DAYS, MAX_YEARS = 36500, 100
DEFAULT_EVENT_HOLD = "DefaultEventHold"
EVENT_HOLDS = ("EventHold", "EventHoldDuration")
"""A third kind of lock that AWS has, which is not built."""
PAST = "The retain until date must be in the future!"


class Default(NamedTuple):
    """The retention that a bucket gives new objects; none with an empty mode. Days or years, the other is 0."""

    mode: str = ""
    days: int = 0
    years: int = 0


def moment(text: str) -> int | None:
    """Milliseconds since the epoch of a date and time in ISO 8601 with its zone, else None."""
    try:
        found = datetime.fromisoformat(text.strip())
        return None if found.tzinfo is None else math.ceil(found.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None


def now() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def default_of_document(document: bytes) -> Default:
    """The default retention that a document gives. Raises MalformedXML, InvalidRetentionPeriod."""
    tree = xml.parse(document, "ObjectLockConfiguration")
    xml.check_children(tree, {"ObjectLockEnabled", "Rule"})
    if xml.text_of(tree, "ObjectLockEnabled") != "Enabled":
        raise MalformedXML()
    rule = xml.only_child(tree, "Rule")
    if rule is None:
        return Default()
    xml.check_children(rule, {"DefaultRetention"})
    given = xml.only_child(rule, "DefaultRetention")
    if given is None:
        raise MalformedXML()
    xml.check_children(given, {"Mode", "Days", "Years", DEFAULT_EVENT_HOLD})
    _refuse_event_holds(given)
    mode, days, years = (xml.text_of(given, name) for name in ("Mode", "Days", "Years"))
    if mode not in MODES or (days is None) == (years is None):
        raise MalformedXML()
    if years is None:
        return Default(mode, days=_period(days or "", MAX_DAYS))
    return Default(mode, years=_period(years, MAX_YEARS))


def _refuse_event_holds(given: Element) -> None:
    if any(child.tag in (DEFAULT_EVENT_HOLD, *EVENT_HOLDS) for child in given):
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


def default_document(default: Default) -> bytes:
    """The document that shows what `default_of_document` reads."""
    rule = ""
    if default.mode:
        period = xml.element("Years", default.years) if default.years else xml.element("Days", default.days)
        rule = f"<Rule><DefaultRetention>{xml.element('Mode', default.mode)}{period}</DefaultRetention></Rule>"
    return xml.document("ObjectLockConfiguration", f"<ObjectLockEnabled>Enabled</ObjectLockEnabled>{rule}")


def retention_of_document(document: bytes) -> Lock:
    """Mode and end of the retention that a document gives, both empty to take it away. Raises MalformedXML,
    InvalidArgument for one that has ended."""
    tree = xml.parse(document, "Retention")
    xml.check_children(tree, {"Mode", "RetainUntilDate", *EVENT_HOLDS})
    _refuse_event_holds(tree)
    mode, date = xml.text_of(tree, "Mode"), xml.text_of(tree, "RetainUntilDate")
    if mode is None and date is None:
        return NONE
    until = None if date is None else moment(date)
    if mode not in MODES or until is None:
        raise MalformedXML()
    if until <= now():
        raise InvalidArgument(PAST, ArgumentName="RetainUntilDate", ArgumentValue=date)
    return Lock(mode, until)


def retention_document(lock: Lock) -> bytes:
    """The document that shows a retention."""
    content = xml.element("Mode", lock.mode) + xml.element("RetainUntilDate", xml.timestamp(lock.until))
    return xml.document("Retention", content)


def hold_of_document(document: bytes) -> bool:
    """Whether a document puts a legal hold or takes it. Raises MalformedXML."""
    tree = xml.parse(document, "LegalHold")
    xml.check_children(tree, {"Status"})
    status = xml.text_of(tree, "Status")
    if status not in HOLDS:
        raise MalformedXML()
    return HOLDS[status]


def hold_document(hold: bool) -> bytes:
    """The document that shows whether there is a legal hold."""
    return xml.document("LegalHold", xml.element("Status", "ON" if hold else "OFF"))
