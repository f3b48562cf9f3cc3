"""Journal records: what the index committed.

With the blobs they suffice to rebuild the index. A record's header states its kind. Its body is compressed
JSON: an object of any of `versions`, `removals`, `uploads`, `pieces` (arrays of rows, in the order of the tables'
columns), `settings` (an object of arrays of rows) and, at the end of a snapshot, `records`: the number of its records.
`settled` comes first, where it is: no header of a body with a smaller drawn number counts without a journal record.
"""

from __future__ import annotations

import re
import zlib
from typing import Any, NamedTuple

import orjson
from isal import isal_zlib

from sluice_s3.storage_drivers.base import JournalRecord

CHANGES, SUPPLEMENT, SNAPSHOT, END = "changes", "supplement", "snapshot", "end"
"""Kinds: changes between two numbers; rows of the next record of changes; rows of a snapshot; its end."""
_SETTLED = re.compile(rb'\{"settled":(\d+)')


class RecordHeader(NamedTuple):
    """The header of a record."""

    kind: str
    after: int
    until: int
    """Of `changes`: all commits after `after` up to this number. Of a snapshot: the last commit that it covers."""
    at: int
    """Milliseconds. Earlier commits are in this record or an earlier one."""


def encode(header: RecordHeader, **fields: str) -> JournalRecord:
    """Return a record of fields that are JSON already."""
    body = "{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}"
    return JournalRecord(header.until, orjson.dumps(list(header)), isal_zlib.compress(body.encode(), 1))


def parse_header(record: JournalRecord) -> RecordHeader:
    """Return the header of a record. Raises ValueError."""
    found = orjson.loads(record.header)
    if not isinstance(found, list) or len(found) != len(RecordHeader._fields):
        raise ValueError("no claim of a decision")
    return RecordHeader._make(found)


def parse_summary(record: JournalRecord) -> tuple[dict[str, Any] | None, int]:
    """Return the settings and the settled number in a record: None and 0 when it has none. Raises ValueError."""
    try:
        body = zlib.decompress(record.body)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    settled = _SETTLED.match(body)
    settings = orjson.loads(body).get("settings") if b'"settings":' in body else None
    return settings, int(settled[1]) if settled else 0


def decode(record: JournalRecord) -> dict[str, Any]:
    """Return the body of a record. Raises ValueError."""
    try:
        found: dict[str, Any] = orjson.loads(zlib.decompress(record.body))
    except zlib.error as error:
        raise ValueError(str(error)) from error
    return found
