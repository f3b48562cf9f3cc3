"""The policy of a form: its expiry, and the fields that it allows in uploads.

"POST policy", Amazon S3 API Reference (sigv4-HTTPPOSTConstructPolicy).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from sluice_s3.app.s3.errors import AccessDenied, InvalidPolicyDocument
from sluice_s3.app.s3.objects.upload_form import FILE, IGNORED
from sluice_s3.app.s3.wire.dates import parse_iso

EXEMPT = frozenset({"policy", FILE, "x-amz-signature", "signature", "awsaccesskeyid"})
"""Fields that need no condition."""
EQ, STARTS_WITH, LENGTH = "eq", "starts-with", "content-length-range"
DEFAULTED = "x-amz-server-side-encryption"
"""May be absent if its condition allows any value, as on Ceph. The bucket's default then applies."""
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class Condition(NamedTuple):
    """A required value or prefix of a field."""

    operator: str
    field: str
    """In lower case."""
    value: str

    def is_met(self, text: str | None) -> bool:
        """Return whether a field's value meets the condition; of comma-separated types each must.

        An absent field does not, as on AWS, even where any value would.
        """
        if text is None:
            return self.operator == STARTS_WITH and not self.value and self.field == DEFAULTED
        if self.operator == EQ:
            return text == self.value
        values = [value.strip() for value in text.split(",")] if self.field == "content-type" else [text]
        return all(value.startswith(self.value) for value in values)

    def render(self) -> str:
        """Return the condition as the error names it."""
        return orjson.dumps([self.operator, f"${self.field}", self.value]).decode()


class PostPolicy(NamedTuple):
    """A parsed policy."""

    expires: int
    """Seconds since the epoch."""
    conditions: tuple[Condition, ...]
    smallest: int
    largest: int | None
    """Bytes of the file; None: no limit."""

    def check(self, fields: Mapping[str, str], now: float) -> None:
        """Raise AccessDenied for an expired policy, a failed condition, or a field without a condition."""
        if now >= self.expires:
            raise AccessDenied("Invalid according to Policy: Policy expired.")
        for condition in self.conditions:
            if not condition.is_met(fields.get(condition.field)):
                raise AccessDenied(f"Invalid according to Policy: Policy Condition failed: {condition.render()}")
        named = {condition.field for condition in self.conditions} | EXEMPT
        extra = [field for field in fields if field not in named and not field.startswith(IGNORED)]
        if extra:
            raise AccessDenied(f"Invalid according to Policy: Extra input fields: {', '.join(extra)}")


def parse_post_policy(encoded: str) -> PostPolicy:
    """Parse the policy of a form's field. Raises InvalidPolicyDocument."""
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
