"""Recovery headers: what a blob says of itself, enough to rebuild its row.

A recovery header is a JSON array. It is written before the commit, and so proves nothing by itself.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import orjson

from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.multipart.rows import Part, Upload
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.index.reclaim.rows import ReferenceHint

PUT, PART, MOVED = "put", "part", "moved"


class ObjectHeader(NamedTuple):
    """The fields of an object's header behind its kind; those of its row follow."""

    at: int
    """Milliseconds since the epoch."""
    bucket_id: int
    key: str
    conditional: bool
    drawn: int
    """A number of the commit sequence that was drawn before; see `app.index.interface.Index.drawn`."""
    writer: int
    """The incarnation that wrote it."""


def object_header(index: Index, bucket_id: int, key: str, new: NewVersion, conditional: bool) -> bytes:
    """Return the header of an object that this process writes."""
    return orjson.dumps([PUT, _now(), bucket_id, key, conditional, index.drawn, index.incarnation, *new])


def parse_object(header: list[Any]) -> tuple[ObjectHeader, list[Any]] | None:
    """Return the header of an object and the fields of its row; None when it is no such header."""
    count = 1 + len(ObjectHeader._fields)
    if header[0] != PUT or len(header) != count + len(NewVersion._fields):
        return None
    return ObjectHeader(*header[1:count]), header[count:]


def part_header(upload: Upload, part: Part) -> bytes:
    """Return the header of a part.

    Fields: kind, milliseconds, bucket, key, upload, number, size, ETag, checksum and its algorithm.
    """
    described = (part.number, part.size, part.etag, part.checksum_algorithm, part.checksum)
    return orjson.dumps([PART, _now(), upload.bucket_id, upload.key, upload.id, *described])


def moved_header(bucket_id: int, key: str, upload: int, part: int, old: int) -> bytes:
    """Return the header of a blob that replaces one on another store.

    It says where the blob is referenced, and the id of the other blob. It is never restored by itself: the journal
    entries of the old blob apply to it.
    """
    return orjson.dumps([MOVED, _now(), bucket_id, key, upload, part, old])


def reference_hint(locator: str, header: bytes) -> ReferenceHint | None:
    """Return where a blob is referenced; None when the header does not say."""
    try:
        match orjson.loads(header):
            case ["moved", int(), int(bucket_id), str(key), int(upload), int(number), *_]:
                return ReferenceHint(locator, bucket_id, key, upload, number)
            case ["put", int(at), int(bucket_id), str(key), *_]:
                return ReferenceHint(locator, bucket_id, key, 0, 0, at)
            case ["part", int(), int(bucket_id), str(key), int(upload), int(number), *_] if upload:
                return ReferenceHint(locator, bucket_id, key, upload, number)
    except orjson.JSONDecodeError:
        pass
    return None


def _now() -> int:
    return time.time_ns() // 1_000_000
