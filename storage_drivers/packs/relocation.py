"""Listing and copying of pack records, for compaction."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from itertools import islice

from sluice_s3.storage_drivers.base import AppendRequest, Buffer, RecordInfo
from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, StoreFailed, map_errors
from sluice_s3.storage_drivers.fsutil import read_exactly
from sluice_s3.storage_drivers.packs import format
from sluice_s3.storage_drivers.packs.reader import OPEN, PREFIX, RecordLocation, parse_locator

TIMEOUT_SECONDS = 60.0
"""Seconds that a moved record may take; on a mount that is stuck for longer it counts as not moved."""
MAX_HEADER_BYTES = 64 * 1024
"""A larger recovery header is not read: it is none of ours."""


class _Verified:
    """A `BodySource` whose bytes were verified when they were read."""

    size: int | None = None

    async def read(self) -> Buffer:
        """See `BodySource`."""
        return b""

    def digest(self, piece: Buffer) -> None:
        """See `BodySource`."""

    def verify(self) -> None:
        """See `BodySource`."""


def list_records(path: str, pack_id: int, offset: int, limit: int) -> tuple[list[RecordInfo], int]:
    """Return at most `limit` records of a pack with their recovery headers.

    It begins at `offset` and also returns where to continue, 0 at the end. Torn, punched and damaged records are
    skipped. Blocks. Raises BlobMissing, and BlobDamaged for a pack without a header.
    """
    found: list[RecordInfo] = []
    with map_errors(committed=f"pack {pack_id:x}"):
        fd = os.open(path, OPEN)
        try:
            records = format.walk(fd, format.read_salt(fd, pack_id), offset or format.PACK_HEADER)
            following = 0
            for record in islice(records, limit):
                following = record.offset + record.total
                if record.kind == format.BLOB:
                    header = b""
                    if record.header_size <= MAX_HEADER_BYTES:
                        header = read_exactly(fd, record.offset + format.RECORD_HEADER, record.header_size)
                    locator = f"{PREFIX}{pack_id:x}.{record.offset:x}.{record.total:x}.{record.blob_id:x}"
                    found.append(RecordInfo(locator, record.total, header))
            return found, 0 if next(records, None) is None else following
        finally:
            os.close(fd)


def read_records(fd: int, location: RecordLocation, salt: int) -> tuple[bytes, bytes] | None:
    """Return recovery header and body of a record; None when they do not verify."""
    try:
        head = read_exactly(fd, location.offset, format.RECORD_HEADER)
    except BlobDamaged:
        return None
    record = format.parse_head(head, location.offset, salt)
    if record is None or record.blob_id != location.blob_id or record.total != location.total:
        return None
    return format.read_verified(fd, record, salt)


def move_records(
    locators: Sequence[str], path: Callable[[int], str], append: Callable[[AppendRequest], None]
) -> dict[str, str]:
    """Copy records with the same blob id and header; return the new locators once durable.

    A missing or damaged record is left out; so are those that could not be written, if any could. Blocks; raises
    DriverError.
    """
    moved: dict[str, str] = {}
    failed: list[Exception] = []
    left = threading.Semaphore(0)
    waiting = 0
    packs: dict[int, list[tuple[str, RecordLocation]]] = {}
    for locator in locators:
        location = parse_locator(locator)
        packs.setdefault(location.pack, []).append((locator, location))
    try:
        for pack_id, locations in packs.items():
            for locator, location, header, body in _read_all(path(pack_id), pack_id, locations):
                append(
                    AppendRequest(
                        location.blob_id, body, _Verified(), _Says(header), _Done(locator, moved, failed, left), {}
                    )
                )
                waiting += 1
    finally:
        for _ in range(waiting):
            if not left.acquire(timeout=TIMEOUT_SECONDS):
                failed.append(StoreFailed("a record could not be moved in time"))
                break
    if failed and not moved:
        raise failed[0]
    return dict(moved)


def _read_all(
    path: str, pack_id: int, locations: list[tuple[str, RecordLocation]]
) -> list[tuple[str, RecordLocation, bytes, bytes]]:
    found = []
    try:
        with map_errors(committed=f"pack {pack_id:x}"):
            fd = os.open(path, OPEN)
            try:
                salt = format.read_salt(fd, pack_id)
                for locator, location in locations:
                    whole = read_records(fd, location, salt)
                    if whole is not None:
                        found.append((locator, location, *whole))
            finally:
                os.close(fd)
    except (BlobMissing, BlobDamaged):
        return []
    return found


class _Says:
    """A recovery header that exists already."""

    __slots__ = ("_header",)

    def __init__(self, header: bytes) -> None:
        self._header = header

    def __call__(self) -> bytes:
        return self._header


class _Done:
    """Callback that notes a record's new locator."""

    __slots__ = ("_failed", "_left", "_locator", "_moved")

    def __init__(self, locator: str, moved: dict[str, str], failed: list[Exception], left: threading.Semaphore) -> None:
        self._locator = locator
        self._moved = moved
        self._failed = failed
        self._left = left

    def __call__(self, entry: AppendRequest) -> None:
        if entry.error is None:
            self._moved[self._locator] = entry.locator
        else:
            self._failed.append(entry.error)
        self._left.release()
