"""Rules of lifecycle and CORS, which a TOML file has under the names of AWS's JSON, as AWS's XML documents."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from sluice_s3.app.init_file.changes import InitError
from sluice_s3.app.init_file.document import suggestion
from sluice_s3.app.s3.wire import xml

Names = Mapping[str, Any]
"""Names that a table may have, with those of its own tables; None: a value or a list of values."""

_TAG = {"Key": None, "Value": None}
_SIZES = {"Prefix": None, "ObjectSizeGreaterThan": None, "ObjectSizeLessThan": None}
_WHEN = {"Date": None, "Days": None}
LIFECYCLE: Names = {
    "ID": None,
    "Status": None,
    "Prefix": None,
    "Filter": {**_SIZES, "Tag": _TAG, "And": {**_SIZES, "Tags": _TAG}},
    "Expiration": {**_WHEN, "ExpiredObjectDeleteMarker": None},
    "NoncurrentVersionExpiration": {"NoncurrentDays": None, "NewerNoncurrentVersions": None},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": None},
    "Transitions": {**_WHEN, "StorageClass": None},
    "NoncurrentVersionTransitions": {"NoncurrentDays": None, "NewerNoncurrentVersions": None, "StorageClass": None},
}
"""https://docs.aws.amazon.com/AmazonS3/latest/API/API_LifecycleRule.html"""
CORS: Names = {
    "ID": None,
    "AllowedHeaders": None,
    "AllowedMethods": None,
    "AllowedOrigins": None,
    "ExposeHeaders": None,
    "MaxAgeSeconds": None,
}
"""https://docs.aws.amazon.com/AmazonS3/latest/API/API_CORSRule.html"""
_LISTS = frozenset(
    {"Tags", "Transitions", "NoncurrentVersionTransitions"}
    | {"AllowedHeaders", "AllowedMethods", "AllowedOrigins", "ExposeHeaders"}
)
"""Names whose XML elements are one for each member, in the singular."""


def lifecycle_xml(rules: list[dict[str, Any]]) -> bytes:
    """Render lifecycle rules. A rule without an ID gets its number, so that it stays the same. Raises InitError."""
    named = [{"ID": f"rule-{number}", **rule} for number, rule in enumerate(rules, 1)]
    return _render("LifecycleConfiguration", "Rule", named, LIFECYCLE)


def cors_xml(rules: list[dict[str, Any]]) -> bytes:
    """Render CORS rules. Raises InitError."""
    return _render("CORSConfiguration", "CORSRule", rules, CORS)


def _render(root: str, element: str, rules: list[dict[str, Any]], names: Names) -> bytes:
    return xml.document(root, "".join(_nested(element, rule, names) for rule in rules))


def _nested(element: str, value: Any, names: Names | None) -> str:
    if names is None:
        return xml.element(element, _text(element, value))
    if not isinstance(value, dict):
        raise InitError(f"{element} must be a table")
    content = ""
    for name, inner in value.items():
        if name not in names:
            raise InitError(f"{element}: there is no key {name!r}{suggestion(name, names)}")
        if name not in _LISTS:
            content += _nested(name, inner, names[name])
            continue
        if not isinstance(inner, list):
            raise InitError(f"{name} must be a list")
        content += "".join(_nested(name.removesuffix("s"), one, names[name]) for one in inner)
    return f"<{element}>{content}</{element}>"


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, date):
        return f"{value.isoformat()}T00:00:00Z"
    if isinstance(value, (str, int)):
        return str(value)
    raise InitError(f"{name} must be a text or a number")
