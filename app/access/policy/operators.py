"""Compares a request's value with a policy's value, for each condition operator.

"IAM JSON policy elements: Condition operators", IAM User Guide. An operator works in two steps: `prepare` parses the
policy's value once, and raises Malformed for an invalid one; the function that it returns compares every value.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple, TypeVar

from sluice_s3.app.access.policy import errors
from sluice_s3.app.access.policy.errors import Malformed
from sluice_s3.app.access.policy.variables import Template, Values
from sluice_s3.app.access.policy.wildcards import Pattern, Work

T = TypeVar("T")

Holds = Callable[[str, Values, Work], bool | None]
"""Returns whether a request's value matches. None when the policy's own value has no meaning for the request."""
Prepare = Callable[[str, bool], Holds]
"""Takes a policy's value, and whether it may have variables."""

ARN_PARTS = 6
READING = 60
"""Steps to parse a number, a time or an address."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,64}(?:\.[0-9]{1,64})?")
_DATE = re.compile(
    r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2})(?:T([0-9]{2}):([0-9]{2})(?::([0-9]{2})(\.[0-9]{1,9})?)?"
    r"(Z|[+-][0-9]{2}:?[0-9]{2}))?)?)?"
)


class Operator(NamedTuple):
    """An operator without its set operator and `IfExists`."""

    prepare: Prepare
    negated: bool = False


def _string(fold: Callable[[str], str] = str) -> Prepare:
    def prepare(text: str, variables: bool) -> Holds:
        template = Template(text, variables=variables)

        def holds(value: str, values: Values, work: Work) -> bool | None:
            expected = template.plain(values, work)
            return None if expected is None else fold(value) == fold(expected)

        return holds

    return prepare


def _like(text: str, variables: bool) -> Holds:
    template = Template(text, variables=variables)

    def holds(value: str, values: Values, work: Work) -> bool | None:
        pattern = template.pattern(values, work)
        return None if pattern is None else pattern.matches(value, work)

    return holds


def _arn(text: str, variables: bool) -> Holds:
    """Compare part by part, so that no wildcard matches a colon; ArnEquals takes wildcards too."""
    if len(text.split(":", ARN_PARTS - 1)) < ARN_PARTS and text != "*":
        raise Malformed(errors.CONDITION_VALUE)
    # a variable's default may hold a colon: the template is split, not the filled text
    templates = [Template(part, variables=variables) for part in _arn_parts(text)]

    def holds(value: str, values: Values, work: Work) -> bool | None:
        patterns: list[Pattern] = []
        for template in templates:
            pattern = template.pattern(values, work)
            if pattern is None:
                return None
            patterns.append(pattern)
        parts = value.split(":", ARN_PARTS - 1)
        if len(parts) < ARN_PARTS:
            return False
        return all(pattern.matches(part, work) for pattern, part in zip(patterns, parts, strict=True))

    return holds


def _arn_parts(text: str) -> list[str]:
    if text == "*":
        return ["*"] * ARN_PARTS
    parts: list[str] = []
    depth = start = 0
    for position, sign in enumerate(text):
        if sign == "{" and text[position - 1 : position] == "$":
            depth += 1
        elif sign == "}":
            depth = max(depth - 1, 0)
        elif sign == ":" and not depth and len(parts) < ARN_PARTS - 1:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    if len(parts) < ARN_PARTS:
        raise Malformed(errors.CONDITION_VALUE)
    return parts


def _typed(read: Callable[[str], T | None], compare: Callable[[T, T], bool]) -> Prepare:
    def prepare(text: str, variables: bool) -> Holds:
        expected = read(text)
        if expected is None:
            raise Malformed(errors.CONDITION_VALUE)

        def holds(value: str, values: Values, work: Work) -> bool:
            work.spend(READING)
            found = read(value)
            return found is not None and compare(found, expected)

        return holds

    return prepare


def number(text: str) -> Decimal | None:
    """Parse a decimal number; None if it is none."""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def moment(text: str) -> Decimal | None:
    """Return seconds since the epoch of such a number or a W3C date; else None.

    https://www.w3.org/TR/NOTE-datetime
    """
    match = _DATE.fullmatch(text)
    if match is None:
        return number(text)
    # four digits are a year: nobody means the first hours of 1970
    year, month, day, hour, minute, second = (
        int(match[n] or d) for n, d in zip(range(1, 7), (0, 1, 1, 0, 0, 0), strict=True)
    )
    found = _instant(year, month, day, hour, minute, second)
    if found is None:
        return None
    return found + Decimal(match[7] or 0) - _offset(match[8] or "Z")


def _instant(*fields: int) -> Decimal | None:
    try:
        year, month, day, hour, minute, second = fields
        return Decimal(int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp()))
    except (ValueError, OverflowError):
        return None


def _offset(zone: str) -> int:
    if zone == "Z":
        return 0
    seconds = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
    return -seconds if zone[0] == "-" else seconds


def boolean(text: str) -> bool | None:
    """Parse `true` or `false` in any case; None for other texts."""
    return {"true": True, "false": False}.get(text.lower())


def _same(found: bool, expected: bool) -> bool:
    return found is expected


class Range(NamedTuple):
    """A range of IPv4 or IPv6 addresses, as numbers, with its prefix length."""

    version: int
    first: int
    last: int
    prefix: int


@lru_cache(maxsize=4096)
def network(text: str) -> Range | None:
    """Parse an address or a CIDR range; None if it is neither.

    IPv4 in IPv6 (`::ffff:a.b.c.d`) is the IPv4 address.
    """
    try:
        found = ip_network(text, strict=False)
    except ValueError:
        return None
    if isinstance(found, IPv6Network) and found.prefixlen >= 96:
        inner = found.network_address.ipv4_mapped
        if inner is not None:
            found = IPv4Network((inner, found.prefixlen - 96))
    return Range(found.version, int(found.network_address), int(found.broadcast_address), found.prefixlen)


def _inside(found: Range, expected: Range) -> bool:
    return found.version == expected.version and expected.first <= found.first and found.last <= expected.last


def _binary(text: str, variables: bool) -> Holds:
    try:
        expected = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Malformed(errors.CONDITION_VALUE) from None
    return lambda value, values, work: value.encode("utf-8", "surrogatepass") == expected


def _ordered(kind: str, read: Callable[[str], Decimal | None]) -> dict[str, Operator]:
    return {
        f"{kind}Equals": Operator(_typed(read, lambda found, expected: found == expected)),
        f"{kind}NotEquals": Operator(_typed(read, lambda found, expected: found == expected), negated=True),
        f"{kind}LessThan": Operator(_typed(read, lambda found, expected: found < expected)),
        f"{kind}LessThanEquals": Operator(_typed(read, lambda found, expected: found <= expected)),
        f"{kind}GreaterThan": Operator(_typed(read, lambda found, expected: found > expected)),
        f"{kind}GreaterThanEquals": Operator(_typed(read, lambda found, expected: found >= expected)),
    }


OPERATORS: dict[str, Operator] = {
    "StringEquals": Operator(_string()),
    "StringNotEquals": Operator(_string(), negated=True),
    "StringEqualsIgnoreCase": Operator(_string(str.lower)),
    "StringNotEqualsIgnoreCase": Operator(_string(str.lower), negated=True),
    "StringLike": Operator(_like),
    "StringNotLike": Operator(_like, negated=True),
    **_ordered("Numeric", number),
    **_ordered("Date", moment),
    "Bool": Operator(_typed(boolean, _same)),
    "BinaryEquals": Operator(_binary),
    "IpAddress": Operator(_typed(network, _inside)),
    "NotIpAddress": Operator(_typed(network, _inside), negated=True),
    "ArnEquals": Operator(_arn),
    "ArnLike": Operator(_arn),
    "ArnNotEquals": Operator(_arn, negated=True),
    "ArnNotLike": Operator(_arn, negated=True),
}
