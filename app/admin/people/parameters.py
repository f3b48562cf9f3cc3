"""Parameters of IAM and STS as JSON, in the form of AWS's query protocol."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import JsonValue

MAX_FIELDS = 500
"""Parameters of a call with the members of lists, as on the S3 endpoint."""
MAX_DEPTH = 4


class BadFields(ValueError):
    """Parameters that a form could not have: too many, too deep, or the same twice."""


def flatten(parameters: dict[str, JsonValue]) -> dict[str, str]:
    """Return names and values as a form has them: `PolicyArns.member.1.arn`.

    Null is no parameter. Raises BadFields.
    """
    found: dict[str, str] = {}
    for name, value in _fields(parameters, "", 0):
        if name in found:
            raise BadFields("A parameter is given twice.")
        found[name] = value
        if len(found) > MAX_FIELDS:
            raise BadFields(f"A call has at most {MAX_FIELDS} parameters.")
    return found


def _fields(value: JsonValue, name: str, depth: int) -> Iterator[tuple[str, str]]:
    if depth > MAX_DEPTH:
        raise BadFields(f"Parameters are nested at most {MAX_DEPTH} deep.")
    if isinstance(value, dict):
        for inner, one in value.items():
            yield from _fields(one, f"{name}.{inner}" if name else inner, depth + 1)
    elif isinstance(value, list):
        if not value:
            yield name, ""  # the query protocol writes an empty list as its bare name
        for number, one in enumerate(value, 1):
            yield from _fields(one, f"{name}.member.{number}", depth + 1)
    elif isinstance(value, bool):
        yield name, str(value).lower()
    elif value is not None:
        yield name, str(value)
