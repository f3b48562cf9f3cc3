"""What journals hold: records of what the index decided, enough with the blobs to make the index anew (DESIGN §4).

A record's claim says what it is, its body is compressed JSON: an object of any of `versions`, `removals`, `uploads`,
`pieces` (arrays of rows, in the order of the tables' columns), `settings` (an object of arrays of rows) and, at the
end of a snapshot, `records`: how many it has.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import orjson
from isal import isal_zlib

from storage_drivers.base import Decision

CHANGES, SUPPLEMENT, SNAPSHOT, END = "changes", "supplement", "snapshot", "end"
"""Kinds: all that changed between two numbers; rows that belong to the next of these; rows of a snapshot; its end."""


class Heading(NamedTuple):
    """The claim of a record."""

    kind: str
    after: int
    until: int
    """Of `changes`: all that was committed behind `after` and up to here. Of a snapshot: what it covers."""
    at: int
    """Milliseconds: what was committed before is in this record or an earlier one."""


def encode(heading: Heading, **fields: str) -> Decision:
    """A record of fields that are JSON already."""
    body = "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}"
    return Decision(heading.until, orjson.dumps(list(heading)), isal_zlib.compress(body.encode(), 1))


def heading(decision: Decision) -> Heading:
    """What a record is. Raises ValueError."""
    found = orjson.loads(decision.claim)
    if not isinstance(found, list) or len(found) != len(Heading._fields):
        raise ValueError("no claim of a decision")
    return Heading._make(found)


def settings(decision: Decision) -> dict[str, Any] | None:
    """The settings that a record says, None when it says none. Raises ValueError."""
    try:
        body = zlib.decompress(decision.body)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    found: dict[str, Any] | None = orjson.loads(body).get("settings") if b'"settings":' in body else None
    return found


def fields(decision: Decision) -> dict[str, Any]:
    """What a record says. Raises ValueError."""
    try:
        found: dict[str, Any] = orjson.loads(zlib.decompress(decision.body))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return found
