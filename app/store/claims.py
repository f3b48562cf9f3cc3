"""What a blob says of itself beside its bytes: enough to make its row anew should the index be lost (DESIGN §4).

A claim is a JSON array. It is written before the index decides, and so proves nothing by itself.
"""

from __future__ import annotations

import time

import orjson

from app.index.rows import NewVersion, Part, Suspect, Upload

PUT, PART, MOVED = "put", "part", "moved"


def of_put(bucket_id: int, key: str, new: NewVersion, conditional: bool) -> bytes:
    """The claim of an object: kind, milliseconds, bucket, key, whether it carried a condition, and the row's fields."""
    return orjson.dumps([PUT, _now(), bucket_id, key, conditional, *new])


def of_part(upload: Upload, part: Part) -> bytes:
    """The claim of a part: kind, milliseconds, bucket, key, upload, number, size, ETag, checksum and its algorithm."""
    described = (part.number, part.size, part.etag, part.checksum_algorithm, part.checksum)
    return orjson.dumps([PART, _now(), upload.bucket_id, upload.key, upload.id, *described])


def of_moved(bucket_id: int, key: str, upload: int, part: int, old: int) -> bytes:
    """The claim of a blob that takes the place of one on another store: where it is held, and the id of the other.

    It is never restored by itself: what was decided of the old blob holds for this one.
    """
    return orjson.dumps([MOVED, _now(), bucket_id, key, upload, part, old])


def suspect(locator: str, claim: bytes) -> Suspect | None:
    """Where the holder of a blob is to be looked for, None when the claim does not say."""
    try:
        match orjson.loads(claim):
            case ["moved", int(), int(bucket_id), str(key), int(upload), int(number), *_]:
                return Suspect(locator, bucket_id, key, upload, number)
            case ["put", int(at), int(bucket_id), str(key), *_]:
                return Suspect(locator, bucket_id, key, 0, 0, at)
            case ["part", int(), int(bucket_id), str(key), int(upload), int(number), *_] if upload:
                return Suspect(locator, bucket_id, key, upload, number)
    except orjson.JSONDecodeError:
        pass
    return None


def _now() -> int:
    return time.time_ns() // 1_000_000
