"""What compaction asks of packs: which records there are, and to write some of them again in another pack."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from itertools import islice

from storage_drivers.base import Append, Buffer, ClaimedRecord
from storage_drivers.errors import BlobDamaged, BlobMissing, StoreFailed, map_errors
from storage_drivers.files import read_exactly
from storage_drivers.packs import pack_format
from storage_drivers.packs.reader import OPEN, PREFIX, Place, place_of

TIMEOUT = 60.0
"""Seconds that a moved record may take; on a mount that is stuck longer than that it counts as not moved."""
LONGEST_CLAIM = 64 * 1024
"""A claim beyond this is not read: it is none of ours."""


class _Verified:
    """A `Source` whose bytes were verified when they were read."""

    size: int | None = None

    async def read(self) -> Buffer:
        return b""

    def digest(self, piece: Buffer) -> None:
        pass

    def verify(self) -> None:
        pass


def claimed_records(path: str, pack_id: int, offset: int, limit: int) -> tuple[list[ClaimedRecord], int]:
    """At most `limit` blobs of a pack from `offset` on with their claims, and where to go on, 0 at the end. Blocks.

    What is torn, punched or damaged is passed over. Raises BlobMissing, BlobDamaged for a pack without a header.
    """
    found: list[ClaimedRecord] = []
    with map_errors(committed=f"pack {pack_id:x}"):
        fd = os.open(path, OPEN)
        try:
            records = pack_format.walk(fd, pack_format.read_salt(fd, pack_id), offset or pack_format.PACK_HEADER)
            following = 0
            for record in islice(records, limit):
                following = record.offset + record.total
                if record.kind == pack_format.BLOB:
                    claim = b""
                    if record.claim <= LONGEST_CLAIM:
                        claim = read_exactly(fd, record.offset + pack_format.RECORD_HEADER, record.claim)
                    locator = f"{PREFIX}{pack_id:x}.{record.offset:x}.{record.total:x}.{record.blob_id:x}"
                    found.append(ClaimedRecord(locator, record.total, claim))
            return found, 0 if next(records, None) is None else following
        finally:
            os.close(fd)


def read_whole(fd: int, place: Place, salt: int) -> tuple[bytes, bytes] | None:
    """Claim and body of the record at a place of an open pack, None when they are not what was written."""
    try:
        head = read_exactly(fd, place.offset, pack_format.RECORD_HEADER)
    except BlobDamaged:
        return None
    record = pack_format.parse_head(head, place.offset, salt)
    if record is None or record.blob_id != place.blob_id or record.total != place.total:
        return None
    return pack_format.intact(fd, record, salt)


def move(locators: Sequence[str], path: Callable[[int], str], append: Callable[[Append], None]) -> dict[str, str]:
    """Write records again, with the same blob id and claim, and return the new locators once they are durable.

    A record that is not there, or is not what was written, is left out; so are those that could not be written, if any
    could. Blocks; raises DriverError.
    """
    moved: dict[str, str] = {}
    failed: list[Exception] = []
    left = threading.Semaphore(0)
    waiting = 0
    packs: dict[int, list[tuple[str, Place]]] = {}
    for locator in locators:
        place = place_of(locator)
        packs.setdefault(place.pack, []).append((locator, place))
    try:
        for pack_id, places in packs.items():
            for locator, place, claim, body in _read_all(path(pack_id), pack_id, places):
                append(Append(place.blob_id, body, _Verified(), _Says(claim), _Done(locator, moved, failed, left), {}))
                waiting += 1
    finally:
        for _ in range(waiting):
            if not left.acquire(timeout=TIMEOUT):
                failed.append(StoreFailed("a record could not be moved in time"))
                break
    if failed and not moved:
        raise failed[0]
    return dict(moved)


def _read_all(path: str, pack_id: int, places: list[tuple[str, Place]]) -> list[tuple[str, Place, bytes, bytes]]:
    found = []
    try:
        with map_errors(committed=f"pack {pack_id:x}"):
            fd = os.open(path, OPEN)
            try:
                salt = pack_format.read_salt(fd, pack_id)
                for locator, place in places:
                    whole = read_whole(fd, place, salt)
                    if whole is not None:
                        found.append((locator, place, *whole))
            finally:
                os.close(fd)
    except (BlobMissing, BlobDamaged):
        return []
    return found


class _Says:
    """The claim of a record as it is."""

    __slots__ = ("_claim",)

    def __init__(self, claim: bytes) -> None:
        self._claim = claim

    def __call__(self) -> bytes:
        return self._claim


class _Done:
    """Notes where a record went."""

    __slots__ = ("_failed", "_left", "_locator", "_moved")

    def __init__(self, locator: str, moved: dict[str, str], failed: list[Exception], left: threading.Semaphore) -> None:
        self._locator = locator
        self._moved = moved
        self._failed = failed
        self._left = left

    def __call__(self, entry: Append) -> None:
        if entry.error is None:
            self._moved[self._locator] = entry.locator
        else:
            self._failed.append(entry.error)
        self._left.release()
