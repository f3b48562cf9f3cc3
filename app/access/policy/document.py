"""Reads a policy's bytes into dictionaries and lists, and refuses what no policy may hold."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from sluice_s3.app.access.policy import errors
from sluice_s3.app.access.policy.errors import Malformed

MAX_BYTES = 20 * 1024
"""Longest policy, without white space between tokens ("Bucket policies for Amazon S3", User Guide)."""
MAX_RAW = 1024 * 1024
"""Longest text that is parsed."""

POLICY_FIELDS = frozenset({"Version", "Id", "Statement"})
STATEMENT_FIELDS = frozenset(
    {
        "Sid",
        "Effect",
        "Principal",
        "NotPrincipal",
        "Action",
        "NotAction",
        "Resource",
        "NotResource",
        "Condition",
    }
)
VERSIONS = ("2008-10-17", "2012-10-17")
TOO_LONG = f"Normalized policy document exceeds the maximum allowed size of {MAX_BYTES} bytes."


def parse_document(text: bytes, *, stored: bool = False) -> dict[str, Any]:
    """Return the policy's object with known fields, `Version`, and `Statement` as a non-empty list.

    Numbers are texts, exactly as written. A stored policy (`stored`) may have any length: it was measured when it was
    put. Raises Malformed.
    """
    if len(text) > MAX_RAW and not stored:
        raise Malformed(TOO_LONG)
    if not text.lstrip(b" \t\r\n").startswith(b"{"):
        raise Malformed(errors.FIRST_BYTE)
    try:
        document = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_object,
            parse_int=str,
            parse_float=str,
            parse_constant=_refuse_constant,
        )
        normalized = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except Malformed:
        raise
    except (ValueError, RecursionError):
        raise Malformed(errors.NOT_JSON) from None
    if len(normalized) > MAX_BYTES and not stored:
        raise Malformed(TOO_LONG)
    check_fields(document, POLICY_FIELDS)
    if document.setdefault("Version", VERSIONS[0]) not in VERSIONS:
        raise Malformed(errors.VERSION)
    if not isinstance(document.get("Id", ""), str):
        raise Malformed(errors.SYNTAX)
    document["Statement"] = _statements(document)
    return dict(document)


def _statements(document: dict[str, Any]) -> list[dict[str, Any]]:
    if "Statement" not in document:
        raise Malformed("Missing required field Statement")
    found = document["Statement"]
    statements = found if isinstance(found, list) else [found]
    if not statements:
        raise Malformed(errors.NO_STATEMENT)
    names = set()
    for statement in statements:
        if not isinstance(statement, dict):
            raise Malformed(errors.SYNTAX)
        check_fields(statement, STATEMENT_FIELDS)
        name = statement.get("Sid", "")
        if not isinstance(name, str):
            raise Malformed(errors.SYNTAX)
        if name in names:
            raise Malformed(errors.SAME_SID)
        if name:
            names.add(name)
    return statements


def check_fields(found: dict[str, Any], field_names: frozenset[str]) -> None:
    """Raise Malformed for an unknown field."""
    for name in found:
        if name not in field_names:
            raise Malformed(f"Unknown field {name}")


def find_either(statement: dict[str, Any], name: str) -> tuple[Any, bool]:
    """Return the value of `name` or of `Not` + name, and whether it was negated.

    Raises Malformed unless exactly one of them is present.
    """
    negated = "Not" + name
    if name in statement and negated in statement:
        raise Malformed(errors.SYNTAX)
    if name in statement:
        return statement[name], False
    if negated in statement:
        return statement[negated], True
    raise Malformed(f"Missing required field {name}")


def texts(value: Any, wrong: str) -> list[str]:
    """Return a text or a non-empty list of texts as a list. Raises Malformed(`wrong`)."""
    found = value if isinstance(value, list) else [value]
    if not found or not all(isinstance(text, str) for text in found):
        raise Malformed(wrong)
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Malformed(errors.NOT_JSON)
    return found


def _refuse_constant(_: str) -> NoReturn:
    raise Malformed(errors.NOT_JSON)
