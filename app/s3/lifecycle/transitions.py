"""Transitions in lifecycle documents; `app.store.lifecycle.storage_classes` defines their meaning.

"Transitioning objects using Amazon S3 Lifecycle", Amazon S3 User Guide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from xml.etree.ElementTree import Element

from sluice_s3.app.s3.errors import InvalidArgument, InvalidRequest, MalformedXML
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.store.lifecycle.evaluator import Rule
from sluice_s3.app.store.lifecycle.storage_classes import ARCHIVES, Transition

CLASSES = {
    "GLACIER": 0,
    "STANDARD_IA": 30,
    "ONEZONE_IA": 30,
    "INTELLIGENT_TIERING": 0,
    "DEEP_ARCHIVE": 0,
    "GLACIER_IR": 0,
}
"""Classes that transitions may name, each with the least age in days."""
INFREQUENT = ("STANDARD_IA", "ONEZONE_IA")
MIN_STAY_DAYS = 30
"""Days that objects stay in these classes before they are archived."""


class Readers(NamedTuple):
    """The parsers for numbers and dates of a document."""

    number: Callable[[Element, str], int | None]
    midnight: Callable[[str], int]


def parse_transitions(rule: Rule, element: Element, read: Readers) -> Rule:
    """Return the rule with the transitions of its element. Raises MalformedXML, InvalidRequest, InvalidArgument."""
    current = tuple(_current(one, read) for one in element.findall("Transition"))
    older = tuple(_older(one, read) for one in element.findall("NoncurrentVersionTransition"))
    for name, found in (("Transition", current), ("NoncurrentVersionTransition", older)):
        if len({one.storage_class for one in found}) < len(found):
            raise InvalidRequest(f"'StorageClass' must be different for '{name}' actions in same 'Rule'")
    rule = rule._replace(transitions=current, older_transitions=older)
    if current or older:
        _check_order(rule)
    return rule


def _current(element: Element, read: Readers) -> Transition:
    xml.check_children(element, {"Date", "Days", "StorageClass"})
    date = xml.child_text(element, "Date")
    days = _days(element, "Days", "Transition", read)
    if (days is None) == (date is None):
        raise MalformedXML()
    return Transition(_class(element), days, None if date is None else read.midnight(date))


def _older(element: Element, read: Readers) -> Transition:
    xml.check_children(element, {"NoncurrentDays", "NewerNoncurrentVersions", "StorageClass"})
    days = _days(element, "NoncurrentDays", "NoncurrentVersionTransition", read)
    if days is None:
        raise MalformedXML()
    newer = read.number(element, "NewerNoncurrentVersions")
    if newer is not None and newer <= 0:
        raise InvalidArgument(
            "'NewerNoncurrentVersions' for NoncurrentVersionTransition action must be a positive integer",
            ArgumentName="NewerNoncurrentVersions",
            ArgumentValue=newer,
        )
    return Transition(_class(element), days, None, newer)


def _class(element: Element) -> str:
    found = xml.child_text(element, "StorageClass")
    if found not in CLASSES:
        raise MalformedXML()
    return found


def _days(element: Element, name: str, action: str, read: Readers) -> int | None:
    days, kind = read.number(element, name), _class(element)
    if days is not None and days < CLASSES[kind]:
        raise InvalidArgument(
            f"'{name}' in {action} action must be greater than or equal to {CLASSES[kind]} for storageClass '{kind}'",
            ArgumentName=name,
            ArgumentValue=days,
        )
    if days is not None and days > 2**31 - 1:
        raise MalformedXML()
    return days


def _check_order(rule: Rule) -> None:
    """Check the order of transitions and expiry, and the least stays between them."""
    of = f"for filter '(prefix={rule.prefix or ''})'"
    days = [one.days for one in rule.transitions if one.days is not None]
    dates = [one.date for one in rule.transitions if one.date is not None]
    if (days and (dates or rule.date is not None)) or (dates and rule.days is not None):
        raise InvalidRequest(
            f"Found mixed 'Date' and 'Days' based Expiration and Transition actions in lifecycle rule {of}"
        )
    older = [one.days for one in rule.older_transitions if one.days is not None]
    for name, action, before, last in (
        ("Days", "Transition", days, rule.days),
        ("Date", "Transition", dates, rule.date),
        ("NoncurrentDays", "NoncurrentVersionTransition", older, rule.noncurrent_days),
    ):
        if last is not None and before and max(before) >= last:
            expiration = action.replace("Transition", "Expiration")
            raise InvalidArgument(
                f"'{name}' in the {expiration} action {of} must be greater than '{name}' in the {action} action",
                ArgumentName=name,
                ArgumentValue=last,
            )
    for name, found in (("Transition", rule.transitions), ("NoncurrentVersionTransition", rule.older_transitions)):
        days_by_class = {one.storage_class: one.days for one in found if one.days is not None}
        for first in INFREQUENT:
            for second in sorted(ARCHIVES & days_by_class.keys()):
                if first in days_by_class and days_by_class[second] < days_by_class[first] + MIN_STAY_DAYS:
                    raise InvalidArgument(
                        f"'Days' in the '{name}' action for StorageClass '{second}' {of} must be {MIN_STAY_DAYS} days "
                        f"more than 'Days' in the '{name}' action for StorageClass '{first}'"
                    )


def render_transitions(rule: Rule) -> str:
    """Render the transitions of a rule."""
    content = ""
    for one in rule.transitions:
        when = xml.optional("Days", one.days)
        if one.date is not None:
            when = xml.element("Date", xml.timestamp(one.date))
        content += f"<Transition>{when}{xml.element('StorageClass', one.storage_class)}</Transition>"
    for one in rule.older_transitions:
        when = xml.optional("NoncurrentDays", one.days) + xml.optional("NewerNoncurrentVersions", one.newer)
        kind = xml.element("StorageClass", one.storage_class)
        content += f"<NoncurrentVersionTransition>{when}{kind}</NoncurrentVersionTransition>"
    return content
