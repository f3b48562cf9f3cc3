"""The policy of a form: until when and with what fields its maker lets others upload.

"POST policy", Amazon S3 API Reference (sigv4-HTTPPOSTConstructPolicy).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from app.s3.dates import parse_iso
from app.s3.errors import AccessDenied, InvalidPolicyDocument
from app.s3.forms.form import FILE, IGNORED

EXEMPT = frozenset({"policy", FILE, "x-amz-signature", "signature", "awsaccesskeyid"})
"""Fields that no condition needs to name."""
EQ, STARTS_WITH, LENGTH = "eq", "starts-with", "content-length-range"
DEFAULTED = "x-amz-server-side-encryption"
"""Where a condition lets it be anything, the bucket's default may stand in its place, as on Ceph."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Condition(NamedTuple):
    """What a field must be or begin with."""

    operator: str
    field: str
    """In lower case."""
    value: str

    def holds(self, given: str | None) -> bool:
        """Whether a field's value is right. Several types with commas between them must each be.

        A field that is not there is not, as on AWS, even where any value would be right.
        """
        if given is None:
            return self.operator == STARTS_WITH and not self.value and self.field == DEFAULTED
        if self.operator == EQ:
            return given == self.value
        values = [value.strip() for value in given.split(",")] if self.field == "content-type" else [given]
        return all(value.startswith(self.value) for value in values)

    def shown(self) -> str:
        """The condition as the answer names it."""
        return orjson.dumps([self.operator, f"${self.field}", self.value]).decode()


class PostPolicy(NamedTuple):
    """A policy."""

    expires: int
    """Seconds since the epoch."""
    conditions: tuple[Condition, ...]
    smallest: int
    largest: int | None
    """Bytes of the file; None: it says nothing of that."""

    def check(self, fields: Mapping[str, str], now: float) -> None:
        """Raises AccessDenied when it has expired, when a condition fails, and for fields that it does not name."""
        if now >= self.expires:
            raise AccessDenied("Invalid according to Policy: Policy expired.")
        for condition in self.conditions:
            if not condition.holds(fields.get(condition.field)):
                raise AccessDenied(f"Invalid according to Policy: Policy Condition failed: {condition.shown()}")
        named = {condition.field for condition in self.conditions} | EXEMPT
        extra = [field for field in fields if field not in named and not field.startswith(IGNORED)]
        if extra:
            raise AccessDenied(f"Invalid according to Policy: Extra input fields: {', '.join(extra)}")


def parse(encoded: str) -> PostPolicy:
    """The policy of a form's field. Raises InvalidPolicyDocument."""
    try:
        text = base64.b64decode(re.sub(r"\s", "", encoded), validate=True).decode("utf-8")
        # `\$` is a dollar in a policy and nothing in JSON
        found = orjson.loads(_ESCAPED.sub(lambda match: "$" if match[1] == "$" else match[0], text))
    except (binascii.Error, ValueError):
        raise _invalid("Invalid JSON.") from None
    if not isinstance(found, dict):
        raise _invalid("Invalid JSON.")
    conditions = found.get("conditions")
    if not isinstance(conditions, list):
        raise _invalid("Policy missing conditions.")
    expiration = found.get("expiration")
    if expiration is None:
        raise _invalid("Policy missing expiration.")
    expires = parse_iso(expiration) if isinstance(expiration, str) and "T" in expiration else None
    if expires is None:
        raise _invalid(f"Invalid 'expiration' value: '{str(expiration)[:64]}'")
    tests: list[Condition] = []
    smallest, largest = 0, None
    for condition in conditions:
        match condition:
            case [str(operator), least, most] if operator.lower() == LENGTH:
                smallest = max(smallest, _bytes(least))
                largest = _bytes(most) if largest is None else min(largest, _bytes(most))
            case [str(operator), str(field), str(value)] if operator.lower() in (EQ, STARTS_WITH):
                tests.append(_condition(operator.lower(), field, value))
            case dict():
                tests.append(_simple(condition))
            case _:
                raise _invalid(f"Invalid Condition: {orjson.dumps(condition).decode()[:128]}")
    return PostPolicy(expires, tuple(tests), smallest, largest)


def _condition(operator: str, field: str, value: str) -> Condition:
    if len(field) < 2 or field[0] != "$":
        raise _invalid(f"Invalid Condition: the field of {operator} must begin with $.")
    return Condition(operator, field[1:].lower(), value)


def _simple(condition: dict[str, Any]) -> Condition:
    if len(condition) != 1:
        raise _invalid("Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.")
    ((field, value),) = condition.items()
    if not isinstance(value, str):
        raise _invalid("Invalid Simple-Condition: value must be a string.")
    return Condition(EQ, field.lower(), value)


def _bytes(value: Any) -> int:
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise _invalid("Invalid content-length-range.")
    return int(text)


def _invalid(fault: str) -> InvalidPolicyDocument:
    return InvalidPolicyDocument(f"Invalid Policy: {fault}")
