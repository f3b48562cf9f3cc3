"""From the bytes of a policy to plain dictionaries and lists, with everything refused that no policy may hold."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from app.access.policy import malformed
from app.access.policy.malformed import Malformed

MAX_BYTES = 20 * 1024
"""Longest policy, without the white space between its tokens ("Bucket policies for Amazon S3", User Guide)."""
MAX_RAW = 1024 * 1024
"""Longest text that is looked at."""

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


def read(text: bytes, *, kept: bool = False) -> dict[str, Any]:
    """The outermost object of a policy: its fields known, `Version` given and `Statement` a list with an element.

    Numbers are text, as they stand there. What is `kept` may be of any length: it was measured when it was put.
    Raises Malformed.
    """
    if len(text) > MAX_RAW and not kept:
        raise Malformed(TOO_LONG)
    if not text.lstrip(b" \t\r\n").startswith(b"{"):
        raise Malformed(malformed.FIRST_BYTE)
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
        raise Malformed(malformed.NOT_JSON) from None
    if len(normalized) > MAX_BYTES and not kept:
        raise Malformed(TOO_LONG)
    check_fields(document, POLICY_FIELDS)
    if document.setdefault("Version", VERSIONS[0]) not in VERSIONS:
        raise Malformed(malformed.VERSION)
    if not isinstance(document.get("Id", ""), str):
        raise Malformed(malformed.SYNTAX)
    document["Statement"] = _statements(document)
    return dict(document)


def _statements(document: dict[str, Any]) -> list[dict[str, Any]]:
    if "Statement" not in document:
        raise Malformed("Missing required field Statement")
    found = document["Statement"]
    statements = found if isinstance(found, list) else [found]
    if not statements:
        raise Malformed(malformed.NO_STATEMENT)
    names = set()
    for statement in statements:
        if not isinstance(statement, dict):
            raise Malformed(malformed.SYNTAX)
        check_fields(statement, STATEMENT_FIELDS)
        name = statement.get("Sid", "")
        if not isinstance(name, str):
            raise Malformed(malformed.SYNTAX)
        if name in names:
            raise Malformed(malformed.SAME_SID)
        if name:
            names.add(name)
    return statements


def check_fields(found: dict[str, Any], known: frozenset[str]) -> None:
    """Raises Malformed for a field that there is none of."""
    for name in found:
        if name not in known:
            raise Malformed(f"Unknown field {name}")


def one_of(statement: dict[str, Any], name: str) -> tuple[Any, bool]:
    """What stands in `name` or in `Not` + name, and whether it was that. Raises Malformed unless it is one of them."""
    negated = "Not" + name
    if name in statement and negated in statement:
        raise Malformed(malformed.SYNTAX)
    if name in statement:
        return statement[name], False
    if negated in statement:
        return statement[negated], True
    raise Malformed(f"Missing required field {name}")


def texts(value: Any, wrong: str) -> list[str]:
    """A text or a list of texts with an element. Raises Malformed(`wrong`)."""
    found = value if isinstance(value, list) else [value]
    if not found or not all(isinstance(text, str) for text in found):
        raise Malformed(wrong)
    return found


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Malformed(malformed.NOT_JSON)
    return found


def _refuse_constant(_: str) -> NoReturn:
    raise Malformed(malformed.NOT_JSON)
