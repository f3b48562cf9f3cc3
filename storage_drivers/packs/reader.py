"""Reads of records through counted descriptors that stay open between reads."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from typing import NamedTuple

from sluice_s3.storage_drivers.errors import BlobDamaged, BlobMissing, map_errors
from sluice_s3.storage_drivers.fsutil import close_read, read_exactly
from sluice_s3.storage_drivers.packs import format

PREFIX = "p:"
LOCATOR = re.compile(r"p:([0-9a-f]{1,16})\.([0-9a-f]{1,12})\.([0-9a-f]{1,8})\.([0-9a-f]{1,16})")
OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
MAX_OPEN_PACKS = 256
"""Packs that stay open."""


class RecordLocation(NamedTuple):
    """The fields of a locator."""

    pack: int
    offset: int
    total: int
    blob_id: int


class OpenPack:
    """An open pack, closed when it is evicted and has no reader."""

    __slots__ = ("fd", "readers", "salt")

    def __init__(self, fd: int, salt: int) -> None:
        self.fd = fd
        self.salt = salt
        self.readers = 1
        """Its users; the cache counts for one."""


def parse_locator(locator: str) -> RecordLocation:
    """Parse the locator of a record. Raises BlobMissing for any other text."""
    found = LOCATOR.fullmatch(locator)
    if found is None:
        raise BlobMissing(f"{locator!r} is no locator of this driver")
    pack, offset, total, blob_id = found.groups()
    return RecordLocation(int(pack, 16), int(offset, 16), int(total, 16), int(blob_id, 16))


class PackReader:
    """Reader of the packs whose files `path` returns.

    Its methods may be called in any thread.
    """

    def __init__(self, path: Callable[[int], str], max_open: int = MAX_OPEN_PACKS) -> None:
        self._path = path
        self._max_open = max_open
        self._open: dict[int, OpenPack] = {}
        self._lock = threading.Lock()

    def try_read(self, location: RecordLocation, offset: int, length: int) -> bytes | None:
        """Return bytes of a body if the page cache has the whole record.

        The pack must be open. Returns None also for a damaged record.
        """
        pack_id, at, total, blob_id = location
        pack = self._open.get(pack_id)
        if pack is None or not self._try_acquire(pack_id, pack):
            return None
        whole = bytearray(total)
        try:
            if os.preadv(pack.fd, (whole,), at, os.RWF_NOWAIT) != total:
                return None
            body = format.parse_record(memoryview(whole), at, blob_id, pack.salt)
        except (OSError, BlobDamaged):
            return None
        finally:
            self._release(pack)
        return bytes(body[offset : offset + length]) if offset + length <= len(body) else None

    def read(self, location: RecordLocation, locator: str, offset: int, length: int) -> bytes:
        """Return bytes of a body; blocks.

        A damaged record is read again through a new descriptor before it is reported. Raises BlobMissing, BlobDamaged.
        """
        try:
            return self._read(location, locator, offset, length)
        except (BlobMissing, BlobDamaged):
            self.forget(location.pack)
            return self._read(location, locator, offset, length)

    def _read(self, location: RecordLocation, locator: str, offset: int, length: int) -> bytes:
        with map_errors(committed=locator):
            pack = self._acquire(location.pack)
            try:
                whole = memoryview(read_exactly(pack.fd, location.offset, location.total))
            finally:
                self._release(pack)
        body = format.parse_record(whole, location.offset, location.blob_id, pack.salt)
        if offset + length > len(body):
            raise BlobDamaged(f"{locator} ends {offset + length - len(body)} bytes early")
        return bytes(body[offset : offset + length])

    def stretch(self, pack_id: int, offset: int, length: int) -> tuple[bytes, int]:
        """Return unverified bytes of a pack, fewer at its end, and its salt; blocks.

        Raises BlobMissing, BlobDamaged.
        """
        with map_errors(committed=f"pack {pack_id:x}"):
            pack = self._acquire(pack_id)
            try:
                return os.pread(pack.fd, length, offset), pack.salt
            finally:
                self._release(pack)

    def forget(self, pack_id: int) -> None:
        """Close the pack once it has no reader; the next read opens it again."""
        with self._lock:
            pack = self._open.pop(pack_id, None)
        if pack is not None:
            self._release(pack)

    def close_unlinked(self) -> None:
        """Close deleted packs, so that their space is freed.

        It checks by name, since not every mount counts the links of an open file. Blocks.
        """
        for pack_id in list(self._open):
            try:
                os.stat(self._path(pack_id))
            except FileNotFoundError:
                self.forget(pack_id)
            except OSError:
                continue

    def close(self) -> None:
        """Close every pack."""
        for pack_id in list(self._open):
            self.forget(pack_id)

    def _acquire(self, pack_id: int) -> OpenPack:
        pack = self._open.get(pack_id)
        if pack is not None and self._try_acquire(pack_id, pack):
            return pack
        fd = os.open(self._path(pack_id), OPEN)
        try:
            made = OpenPack(fd, format.read_salt(fd, pack_id))
        except BaseException:
            close_read(fd)
            raise
        with self._lock:
            made.readers += 1
            before = self._open.pop(pack_id, None)
            self._open[pack_id] = made
            oldest = self._open.pop(next(iter(self._open))) if len(self._open) > self._max_open else None
        for gone in (before, oldest):
            if gone is not None:
                self._release(gone)
        return made

    def _try_acquire(self, pack_id: int, pack: OpenPack) -> bool:
        with self._lock:
            if self._open.get(pack_id) is not pack:
                return False
            pack.readers += 1
        return True

    def _release(self, pack: OpenPack) -> None:
        with self._lock:
            pack.readers -= 1
            last = pack.readers == 0
        if last:
            close_read(pack.fd)
