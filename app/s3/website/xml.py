"""Website configurations: parsing, storing and rendering.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketWebsite.html
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element

import orjson

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.errors import InvalidArgument, InvalidRequest, MalformedXML
from sluice_s3.app.s3.wire import xml

SETTING = "website"
"""Name of the bucket's setting."""
ROOT = "WebsiteConfiguration"
ALL, INDEX, ERROR, RULES, RULE = (
    "RedirectAllRequestsTo",
    "IndexDocument",
    "ErrorDocument",
    "RoutingRules",
    "RoutingRule",
)
MAX_RULES = 50
MAX_DOCUMENT = 128 * 1024
"""Bytes of a configuration."""
BAD_PROTOCOL = (
    "Invalid protocol, protocol can be http or https. If not defined the protocol will be selected automatically."
)
NO_CONDITION = (
    "Condition cannot be empty. To redirect all requests without a condition, the condition element shouldn't be "
    "present."
)


class Condition(NamedTuple):
    """When a rule applies. The fields are named as in the document, and empty where absent."""

    HttpErrorCodeReturnedEquals: str = ""
    KeyPrefixEquals: str = ""


class Redirect(NamedTuple):
    """The target of a rule; the fields are named as in the document."""

    HostName: str = ""
    HttpRedirectCode: str = ""
    Protocol: str = ""
    ReplaceKeyPrefixWith: str | None = None
    ReplaceKeyWith: str | None = None


class Rule(NamedTuple):
    """A routing rule; without a condition it applies always."""

    condition: Condition | None
    redirect: Redirect


class Website(NamedTuple):
    """A bucket's website: either it redirects all requests, or it has an index document."""

    all_to: tuple[str, str] | None
    """Host and protocol (or empty) that all requests are redirected to."""
    suffix: str = ""
    error: str = ""
    rules: tuple[Rule, ...] = ()


def website_of(bucket: Bucket) -> Website | None:
    """Return the website of a bucket; None without one."""
    return _parse(bucket.settings) if bucket.settings else None


@lru_cache(maxsize=1024)
def _parse(settings: str) -> Website | None:
    found = orjson.loads(settings).get(SETTING)
    if found is None:
        return None
    all_to, index, error, rules = found
    parsed_rules = tuple(Rule(None if when is None else Condition(*when), Redirect(*where)) for when, where in rules)
    return Website(None if all_to is None else tuple(all_to), index, error, parsed_rules)


def to_setting(site: Website) -> list[Any]:
    """Return a website as it is stored."""
    rules = [[None if rule.condition is None else list(rule.condition), list(rule.redirect)] for rule in site.rules]
    return [site.all_to, site.suffix, site.error, rules]


def parse(document: bytes) -> Website:
    """Parse a website's document. Raises MalformedXML, InvalidArgument, InvalidRequest."""
    tree = xml.parse(document, ROOT)
    xml.check_children(tree, {ALL, INDEX, ERROR, RULES})
    elsewhere, index, error, rules = (_only(tree, name) for name in (ALL, INDEX, ERROR, RULES))
    if elsewhere is not None:
        if len(tree) > 1:
            raise InvalidArgument(
                "RedirectAllRequestsTo cannot be provided in conjunction with other Routing Rules.",
                ArgumentName=ALL,
                ArgumentValue="not null",
            )
        xml.check_children(elsewhere, {"HostName", "Protocol"})
        host = xml.child_text(elsewhere, "HostName")
        if host is None:
            raise MalformedXML()
        if not host:
            raise InvalidRequest('A host name must be provided to redirect all requests (e.g. "example.com").')
        return Website((host, _protocol(elsewhere)))
    if index is None:
        raise InvalidArgument(
            "A value for IndexDocument Suffix must be provided if RedirectAllRequestsTo is empty",
            ArgumentName=INDEX,
            ArgumentValue="null",
        )
    xml.check_children(index, {"Suffix"})
    suffix = xml.child_text(index, "Suffix") or ""
    if not suffix or "/" in suffix:
        raise InvalidArgument("The IndexDocument Suffix is not well formed", ArgumentName=INDEX, ArgumentValue=suffix)
    return Website(None, suffix, _error(error), () if rules is None else _rules(rules))


def _only(parent: Element, name: str) -> Element | None:
    found = parent.findall(name)
    if len(found) > 1:
        raise MalformedXML()
    return found[0] if found else None


def _error(element: Element | None) -> str:
    if element is None:
        return ""
    xml.check_children(element, {"Key"})
    key = xml.child_text(element, "Key")
    if not key:
        raise InvalidArgument("The ErrorDocument Key is not well formed", ArgumentName=ERROR, ArgumentValue="")
    return key


def _protocol(element: Element) -> str:
    protocol = xml.child_text(element, "Protocol") or ""
    if protocol not in ("", "http", "https"):
        raise InvalidRequest(BAD_PROTOCOL)
    return protocol


def _rules(element: Element) -> tuple[Rule, ...]:
    xml.check_children(element, {RULE})
    if not len(element):
        raise MalformedXML()
    if len(element) > MAX_RULES:
        raise InvalidRequest(f"{len(element)} routing rules provided, the number of routing rules is limited to 50.")
    return tuple(_rule(one) for one in element)


def _rule(element: Element) -> Rule:
    xml.check_children(element, {"Condition", "Redirect"})
    condition, redirect = _only(element, "Condition"), _only(element, "Redirect")
    if redirect is None:
        raise MalformedXML()
    return Rule(None if condition is None else _condition(condition), _redirect(redirect))


def _condition(element: Element) -> Condition:
    xml.check_children(element, set(Condition._fields))
    found = Condition(*(xml.child_text(element, name) or "" for name in Condition._fields))
    code = found.HttpErrorCodeReturnedEquals
    if not any(found):
        raise InvalidRequest(NO_CONDITION)
    if code and not (_is_code(code) and "400" <= code <= "599"):
        raise InvalidRequest(f"The provided HTTP error code ({code}) is not valid. Valid codes are 4XX or 5XX.")
    return found


def _redirect(element: Element) -> Redirect:
    xml.check_children(element, set(Redirect._fields))
    texts = {name: xml.child_text(element, name) for name in Redirect._fields}
    found = Redirect(
        texts["HostName"] or "",
        texts["HttpRedirectCode"] or "",
        _protocol(element),
        texts["ReplaceKeyPrefixWith"],
        texts["ReplaceKeyWith"],
    )
    if found.ReplaceKeyPrefixWith is not None and found.ReplaceKeyWith is not None:
        raise InvalidRequest("You can only define ReplaceKeyPrefix or ReplaceKey but not both.")
    code = found.HttpRedirectCode
    if code and not (_is_code(code) and "301" <= code <= "399"):
        raise InvalidRequest(f"The provided HTTP redirect code ({code}) is not valid. Valid codes are 3XX except 300.")
    if found == Redirect():
        raise MalformedXML()
    return found


def _is_code(text: str) -> bool:
    return len(text) == 3 and text.isascii() and text.isdigit()


def document(found: Website) -> bytes:
    """Render a website as a document."""
    if found.all_to is not None:
        host, protocol = found.all_to
        content = xml.element("HostName", host) + xml.optional("Protocol", protocol)
        return xml.document(ROOT, f"<{ALL}>{content}</{ALL}>")
    content = f"<{INDEX}>{xml.element('Suffix', found.suffix)}</{INDEX}>"
    if found.error:
        content += f"<{ERROR}>{xml.element('Key', found.error)}</{ERROR}>"
    if found.rules:
        content += f"<{RULES}>{''.join(map(_render_rule, found.rules))}</{RULES}>"
    return xml.document(ROOT, content)


def _render_rule(rule: Rule) -> str:
    condition = ""
    if rule.condition is not None:
        content = "".join(xml.optional(name, value) for name, value in rule.condition._asdict().items())
        condition = f"<Condition>{content}</Condition>"
    where = rule.redirect
    content = "".join(xml.optional(name, getattr(where, name)) for name in Redirect._fields[:3])
    for name in Redirect._fields[3:]:
        value = getattr(where, name)
        content += "" if value is None else xml.element(name, value)
    return f"<{RULE}>{condition}<Redirect>{content}</Redirect></{RULE}>"
