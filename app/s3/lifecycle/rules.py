"""Lifecycle rules in documents and headers; `app.store.lifecycle.evaluator` defines their meaning.

"PutBucketLifecycleConfiguration", Amazon S3 API Reference. A configuration whose first rule has a Filter is of version
2 of the API, which allows no Prefix in the rule itself; and the other way round.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from urllib.parse import quote
from xml.etree.ElementTree import Element

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.errors import InvalidArgument, InvalidRequest, MalformedXML, NotImplemented
from sluice_s3.app.s3.lifecycle import transitions
from sluice_s3.app.s3.lifecycle.transitions import Readers
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.dates import http_date
from sluice_s3.app.s3.wire.response import Headers
from sluice_s3.app.store.lifecycle import evaluator
from sluice_s3.app.store.lifecycle.calendar import LAST_DAY, LifecycleCalendar
from sluice_s3.app.store.lifecycle.evaluator import BASE, FILTER, MARK, Rule, Rules

MAX_RULES = 1000
MAX_ID = 255
MAX_SIZE = 1_099_511_627_776_000
MAX_DAYS = 2**31 - 1
DAY_MS = 86_400_000
MINIMUM = "x-amz-transition-default-minimum-object-size"
MINIMA = ("all_storage_classes_128K", "varies_by_storage_class")
"""The first is the default."""
ACTIONS = frozenset(
    [
        "AbortIncompleteMultipartUpload",
        "Expiration",
        "NoncurrentVersionExpiration",
        "NoncurrentVersionTransition",
        "Transition",
    ]
)
CHILDREN = ACTIONS | {"ID", "Prefix", "Filter", "Status"}
SIZES = ("ObjectSizeGreaterThan", "ObjectSizeLessThan")


# parsing
def parse_rules(document: bytes, minimum: str | None, classes: Collection[str] = ()) -> Rules:
    """Parse a document `LifecycleConfiguration`; `classes` are the storage classes that have a store.

    Raises MalformedXML, InvalidRequest, InvalidArgument, and NotImplemented for transitions to other classes.
    """
    tree = xml.parse(document, "LifecycleConfiguration")
    xml.check_children(tree, {"Rule"})
    if not len(tree):
        raise MalformedXML()
    if len(tree) > MAX_RULES:
        raise InvalidRequest(f"The number of lifecycle rules must not exceed the allowed limit of {MAX_RULES} rules.")
    if minimum is not None and minimum not in MINIMA:
        raise InvalidRequest("Invalid TransitionDefaultMinimumObjectSize found")
    ids: set[str] = set()
    for element in tree:
        xml.check_children(element, CHILDREN)
        _check_id(xml.child_text(element, "ID") or "", ids)
    second = tree[0].find("Filter") is not None
    rules = [_rule(element, second=second) for element in tree]
    if any(one.storage_class not in classes for rule in rules for one in rule.transitions + rule.older_transitions):
        raise NotImplemented()  # nothing would be moved
    return Rules(tuple(rules), minimum or MINIMA[0])


def _check_id(rule_id: str, ids: set[str]) -> None:
    if len(rule_id) > MAX_ID:
        raise InvalidArgument(
            f"ID length should not exceed allowed limit of {MAX_ID}", ArgumentName="ID", ArgumentValue=rule_id[:1024]
        )
    if rule_id in ids:
        raise InvalidArgument(
            "Rule ID must be unique. Found same ID for more than one rule", ArgumentName="ID", ArgumentValue=rule_id
        )
    if rule_id:
        ids.add(rule_id)


def _rule(element: Element, *, second: bool) -> Rule:
    status = xml.child_text(element, "Status")
    if status not in ("Enabled", "Disabled"):
        raise MalformedXML()
    if not any(element.find(name) is not None for name in ACTIONS):
        raise InvalidRequest("At least one action needs to be specified in a rule")
    rule = _filtered(element, second=second)._replace(
        id=xml.child_text(element, "ID") or secrets.token_urlsafe(36), enabled=status == "Enabled"
    )
    rule = _with_expiration(rule, _child(element, "Expiration"))
    noncurrent = _child(element, "NoncurrentVersionExpiration")
    if noncurrent is not None:
        xml.check_children(noncurrent, {"NoncurrentDays", "NewerNoncurrentVersions"})
        newer = _number(noncurrent, "NewerNoncurrentVersions")
        if newer is not None and not second:
            raise InvalidRequest("NewerNoncurrentVersions element can only be used in Lifecycle V2.")
        days = _positive(_number(noncurrent, "NoncurrentDays"), "NoncurrentDays", "NoncurrentVersionExpiration")
        if newer is not None:
            _positive(newer, "NewerNoncurrentVersions", "NoncurrentVersionExpiration")
        rule = rule._replace(noncurrent_days=days, newer=newer)
    ending = _child(element, "AbortIncompleteMultipartUpload")
    if ending is not None:
        xml.check_children(ending, {"DaysAfterInitiation"})
        after = _number(ending, "DaysAfterInitiation")
        rule = rule._replace(abort_days=_positive(after, "DaysAfterInitiation", "AbortIncompleteMultipartUpload"))
    rule = transitions.parse_transitions(rule, element, Readers(_number, _midnight))
    for name, children in (
        ("ExpiredObjectDeleteMarker", rule.markers),
        ("AbortIncompleteMultipartUpload", rule.abort_days),
    ):
        if children is not None and not rule.of_keys_only:
            raise InvalidRequest(f"{name} cannot be specified with {'Tags' if rule.tags else 'Object Size'}.")
    return rule


def _child(element: Element, name: str) -> Element | None:
    found = element.findall(name)
    if len(found) > 1:
        raise MalformedXML()
    return found[0] if found else None


def _filtered(element: Element, *, second: bool) -> Rule:
    """Parse the filter of a rule, without its actions."""
    prefix, children = xml.child_text(element, "Prefix"), _child(element, FILTER)
    if prefix is None and children is None:
        raise MalformedXML()
    if prefix is not None and second:
        raise InvalidRequest(
            "Base level prefix cannot be used in Lifecycle V2, prefixes are only supported in the Filter."
        )
    if children is None:
        return Rule("", False, BASE, prefix=_prefix(prefix))
    if not second:
        raise InvalidRequest("Filter element can only be used in Lifecycle V2.")
    xml.check_children(children, {"Prefix", "Tag", "And", *SIZES})
    if not len(children):
        return Rule("", False, FILTER)
    if len(children) > 1:
        raise MalformedXML()
    form, holder = children[0].tag, children
    if form == "And":
        holder = children[0]
        xml.check_children(holder, {"Prefix", "Tag", *SIZES})
        if len(holder) < 2:
            raise MalformedXML()
    tags = tuple(_tag(tag) for tag in holder.findall("Tag"))
    if len(dict(tags)) < len(tags):
        raise InvalidRequest("Duplicate Tag Keys are not allowed.")
    larger, smaller = (_number(holder, name) for name in SIZES)
    for name, size, least in zip(SIZES, (larger, smaller), (0, 1), strict=True):
        if size is not None and not least <= size <= MAX_SIZE:
            raise InvalidRequest(f"'{name}' should be between {least} and {MAX_SIZE}.")
    if larger is not None and smaller is not None and smaller <= larger:
        raise InvalidRequest("'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'.")
    prefix = _prefix(xml.child_text(holder, "Prefix"))
    return Rule("", False, form, prefix=prefix, tags=tags, larger=larger, smaller=smaller)


def _prefix(prefix: str | None) -> str | None:
    if prefix is not None and len(prefix.encode()) > 1024:
        raise InvalidRequest("The maximum size of a prefix is 1024.")
    return prefix


def _tag(element: Element) -> tuple[str, str]:
    xml.check_children(element, {"Key", "Value"})
    key, value = xml.child_text(element, "Key"), xml.child_text(element, "Value")
    if not key or value is None:
        raise MalformedXML()
    return key, value


def _with_expiration(rule: Rule, element: Element | None) -> Rule:
    if element is None:
        return rule
    xml.check_children(element, {"Date", "Days", "ExpiredObjectDeleteMarker"})
    if len(element) != 1:
        raise MalformedXML()
    days, date, markers = (xml.child_text(element, name) for name in ("Days", "Date", "ExpiredObjectDeleteMarker"))
    if days is not None:
        return rule._replace(days=_positive(_number(element, "Days"), "Days", "Expiration"))
    if date is not None:
        return rule._replace(date=_midnight(date))
    if markers not in ("true", "false"):
        raise MalformedXML()
    return rule._replace(markers=markers == "true")


def _number(element: Element, name: str) -> int | None:
    text = xml.child_text(element, name)
    if text is None:
        return None
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise MalformedXML()
    return int(text.strip())


def _positive(number: int | None, name: str, action: str) -> int:
    if number is None or number > MAX_DAYS:
        raise MalformedXML()
    if number <= 0:
        raise InvalidArgument(
            f"'{name}' for {action} action must be a positive integer", ArgumentName=name, ArgumentValue=number
        )
    return number


def _midnight(text: str) -> int:
    try:
        found = datetime.fromisoformat(text.strip()) if "-" in text else None
    except ValueError:
        found = None
    if found is None:
        raise MalformedXML()
    when = int((found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp() * 1000)
    if when > LAST_DAY:
        raise MalformedXML()
    if when % DAY_MS:
        raise InvalidArgument("'Date' must be at midnight GMT", ArgumentName="Date", ArgumentValue=text[:64])
    return when


# rendering
def render_rules(rules: Rules) -> bytes:
    """Render rules as a document."""
    return xml.document("LifecycleConfiguration", "".join(map(_render_rule, rules.rules)))


def _render_rule(rule: Rule) -> str:
    content = xml.element("ID", rule.id)
    content += _render_filter(rule) + xml.element("Status", "Enabled" if rule.enabled else "Disabled")
    if rule.days is not None:
        content += f"<Expiration><Days>{rule.days}</Days></Expiration>"
    if rule.date is not None:
        content += f"<Expiration><Date>{xml.timestamp(rule.date)}</Date></Expiration>"
    if rule.markers is not None:
        marker = xml.element("ExpiredObjectDeleteMarker", str(rule.markers).lower())
        content += f"<Expiration>{marker}</Expiration>"
    if rule.noncurrent_days is not None:
        days = xml.element("NoncurrentDays", rule.noncurrent_days)
        newer = xml.optional("NewerNoncurrentVersions", rule.newer)
        content += f"<NoncurrentVersionExpiration>{days}{newer}</NoncurrentVersionExpiration>"
    content += transitions.render_transitions(rule)
    if rule.abort_days is not None:
        days = xml.element("DaysAfterInitiation", rule.abort_days)
        content += f"<AbortIncompleteMultipartUpload>{days}</AbortIncompleteMultipartUpload>"
    return f"<Rule>{content}</Rule>"


def _render_filter(rule: Rule) -> str:
    prefix = "" if rule.prefix is None else xml.element("Prefix", rule.prefix)
    if rule.form == BASE:
        return prefix
    tags = "".join(f"<Tag>{xml.element('Key', key)}{xml.element('Value', value)}</Tag>" for key, value in rule.tags)
    sizes = "".join(
        xml.element(name, size)
        for name, size in zip(SIZES, (rule.larger, rule.smaller), strict=True)
        if size is not None
    )
    content = prefix + tags + sizes
    return f"<Filter>{f'<And>{content}</And>' if rule.form == 'And' else content}</Filter>"


# headers
def expiration_header(bucket: Bucket, seconds: int, key: str, size: int, modified: int, stored_headers: str) -> Headers:
    """Return `x-amz-expiration` of a current object, if a rule expires it.

    `seconds` is the length of a day, `stored_headers` the row's headers.
    """
    if MARK not in bucket.settings:
        return []
    tags: Mapping[str, str] = evaluator.tags_of(stored_headers)
    found = evaluator.expiry(evaluator.rules_of(bucket).rules, LifecycleCalendar(seconds), key, size, modified, tags)
    if found is None:
        return []
    value = f'expiry-date="{http_date(found[0] // 1000)}", rule-id="{quote(found[1], safe="")}"'
    return [(b"x-amz-expiration", value.encode())]


def abort_header(bucket: Bucket, seconds: int, key: str, initiated: int) -> Headers:
    """Return `x-amz-abort-date` and `x-amz-abort-rule-id` of an open upload, if a rule aborts it."""
    if MARK not in bucket.settings:
        return []
    found = evaluator.abort(evaluator.rules_of(bucket).rules, LifecycleCalendar(seconds), key, initiated)
    if found is None:
        return []
    date = http_date(found[0] // 1000).encode()
    return [(b"x-amz-abort-date", date), (b"x-amz-abort-rule-id", quote(found[1], safe="").encode())]
