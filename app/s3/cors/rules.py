"""Cross-origin rules of buckets, and the response headers for browsers.

"Using cross-origin resource sharing (CORS)", Amazon S3 User Guide. Rules allow no request: they only say which
responses a browser may pass to its page.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from xml.etree.ElementTree import Element

import orjson

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.s3.errors import AccessForbidden, BadRequest, InvalidRequest, MalformedXML
from sluice_s3.app.s3.wire import xml
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Headers, Response

SETTING = "cors"
"""Name of the bucket's setting."""
METHODS = ("GET", "PUT", "HEAD", "POST", "DELETE")
MAX_RULES = 100
MAX_ID = 255
MAX_DOCUMENT = 64 * 1024
"""Bytes of a configuration."""
ORIGIN, METHOD, HEADERS = "origin", "access-control-request-method", "access-control-request-headers"
VARY = b"Origin, Access-Control-Request-Headers, Access-Control-Request-Method"
NOT_ALLOWED = (
    "CORSResponse: This CORS request is not allowed. This is usually because the evalution of Origin, request method / "
    "Access-Control-Request-Method or Access-Control-Request-Headers are not whitelisted by the resource's CORS spec."
)
"""As AWS writes it."""


class Rule(NamedTuple):
    """A rule; the fields are named as in its document, where lists repeat their element."""

    ID: str | None
    AllowedHeader: list[str]
    AllowedMethod: list[str]
    AllowedOrigin: list[str]
    ExposeHeader: list[str]
    MaxAgeSeconds: int | None

    def allows(self, origin: str, method: str, header_names: list[str]) -> bool:
        """Return whether a page of an origin may use a method with these headers. They are in lower case."""
        return (
            method in self.AllowedMethod
            and any(_matches(pattern, origin) for pattern in self.AllowedOrigin)
            and all(any(_matches(pattern.lower(), name) for pattern in self.AllowedHeader) for name in header_names)
        )


def _matches(pattern: str, text: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return text == pattern
    return len(text) >= len(before) + len(after) and text.startswith(before) and text.endswith(after)


def rules_of(bucket: Bucket) -> list[Rule]:
    """Return the rules of a bucket."""
    return _parsed(bucket.settings) if bucket.settings else []


@lru_cache(maxsize=1024)
def _parsed(settings: str) -> list[Rule]:
    return [Rule(*rule) for rule in orjson.loads(settings).get(SETTING, [])]


def parse(document: bytes) -> list[Rule]:
    """Parse a document `CORSConfiguration`. Raises MalformedXML, InvalidRequest."""
    tree = xml.parse(document, "CORSConfiguration")
    xml.check_children(tree, {"CORSRule"})
    if not len(tree):
        raise MalformedXML()
    if len(tree) > MAX_RULES:
        raise InvalidRequest(f"The number of CORS rules should not exceed allowed limit of {MAX_RULES} rules.")
    return [_rule(element) for element in tree]


def _rule(element: Element) -> Rule:
    xml.check_children(element, set(Rule._fields))
    if any(len(child) for child in element):
        raise MalformedXML()
    name, age = xml.child_text(element, "ID"), xml.child_text(element, "MaxAgeSeconds")
    if age is not None and not (age.strip().isascii() and age.strip().isdigit() and len(age.strip()) <= 9):
        raise MalformedXML()
    headers, methods, origins, exposed = (
        [child.text or "" for child in element.findall(field)] for field in Rule._fields[1:5]
    )
    if not methods or not origins:
        raise MalformedXML()
    if name is not None and len(name) > MAX_ID:
        raise InvalidRequest(f"The ID of a CORS rule may have {MAX_ID} characters.")
    for method in methods:
        if method not in METHODS:
            raise InvalidRequest(f"Found unsupported HTTP method in CORS config. Unsupported method is {method}")
    for field, values in (("AllowedOrigin", origins), ("AllowedHeader", headers)):
        for value in values:
            if value.count("*") > 1:
                raise InvalidRequest(f'{field} "{value}" can not have more than one wildcard.')
    for value in exposed:
        if "*" in value:
            raise InvalidRequest(
                f'ExposeHeader "{value}" contains wildcard. We currently do not support wildcard for ExposeHeader.'
            )
        if not value.isascii() or not value.isprintable():
            raise InvalidRequest(f'ExposeHeader "{value}" contains invalid character.')
    return Rule(name, headers, methods, origins, exposed, None if age is None else int(age))


def document(rules: list[Rule]) -> bytes:
    """Render rules as a document."""
    content = ""
    for rule in rules:
        fields = ((name, value if isinstance(value, list) else [value]) for name, value in rule._asdict().items())
        elements = (xml.element(name, one) for name, values in fields for one in values if one is not None)
        content += f"<CORSRule>{''.join(elements)}</CORSRule>"
    return xml.document("CORSConfiguration", content)


def headers(bucket: Bucket, request: S3Request) -> Headers:
    """Return the headers of the first matching rule. Empty without a match, or without an origin."""
    origin = request.headers.get(ORIGIN)
    if origin is None or not bucket.settings:
        return []
    method = request.headers.get(METHOD, request.method)
    header_list = request.headers.get(HEADERS, "").lower()
    header_names = [name.strip() for name in header_list.split(",") if name.strip()]
    rule = next((rule for rule in rules_of(bucket) if rule.allows(origin, method, header_names)), None)
    if rule is None:
        return []
    anywhere = "*" in rule.AllowedOrigin
    found: Headers = [(b"access-control-allow-origin", b"*" if anywhere else origin.encode("latin-1"))]
    if not anywhere:
        found.append((b"access-control-allow-credentials", b"true"))
    found.append((b"access-control-allow-methods", ", ".join(rule.AllowedMethod).encode()))
    if header_names:
        found.append((b"access-control-allow-headers", ", ".join(header_names).encode("latin-1")))
    if rule.ExposeHeader:
        found.append((b"access-control-expose-headers", ", ".join(rule.ExposeHeader).encode()))
    if rule.MaxAgeSeconds is not None:
        found.append((b"access-control-max-age", b"%d" % rule.MaxAgeSeconds))
    return [*found, (b"vary", VARY)]


def check_preflight(request: S3Request) -> None:
    """Raise BadRequest for a preflight request that lacks a header or names an unsupported method.

    https://docs.aws.amazon.com/AmazonS3/latest/API/RESTOPTIONSobject.html
    """
    for name in (ORIGIN, METHOD):
        if name not in request.headers:
            raise BadRequest(f"Insufficient information. {name.title()} request header needed.")
    method = request.headers[METHOD]
    if method not in METHODS:
        raise BadRequest(f"Invalid Access-Control-Request-Method: {method}")


def preflight(bucket: Bucket | None, request: S3Request) -> Response:
    """Answer a preflight request. Raises AccessForbidden."""

    def refused(message: str | None = None) -> AccessForbidden:
        kind = "OBJECT" if request.key is not None else "BUCKET"
        return AccessForbidden(message, Method=request.headers[METHOD], ResourceType=kind)

    if bucket is None:
        raise refused("CORSResponse: Bucket not found")
    if not rules_of(bucket):
        raise refused()
    found = headers(bucket, request)
    if not found:
        raise refused(NOT_ALLOWED)
    return Response(200, found)
