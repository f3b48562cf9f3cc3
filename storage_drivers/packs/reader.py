"""Reads records through counted descriptors that stay open from one read to the next."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable
from typing import NamedTuple

from storage_drivers.errors import BlobDamaged, BlobMissing, map_errors
from storage_drivers.files import close_read, read_exactly
from storage_drivers.packs import pack_format

PREFIX = "p:"
LOCATOR = re.compile(r"p:([0-9a-f]{1,16})\.([0-9a-f]{1,12})\.([0-9a-f]{1,8})\.([0-9a-f]{1,16})")
OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
KEPT = 256
"""Packs that stay open."""


class Place(NamedTuple):
    """What a locator says."""

    pack: int
    offset: int
    total: int
    blob_id: int


class OpenPack:
    """An open pack; closed when it is evicted and nobody reads it."""

    __slots__ = ("fd", "readers", "salt")

    def __init__(self, fd: int, salt: int) -> None:
        self.fd = fd
        self.salt = salt
        self.readers = 1
        """Who holds it; the cache counts for one."""


def place_of(locator: str) -> Place:
    """Raises BlobMissing for what is no locator of a record."""
    found = LOCATOR.fullmatch(locator)
    if found is None:
        raise BlobMissing(f"{locator!r} is no locator of this driver")
    pack, offset, total, blob_id = found.groups()
    return Place(int(pack, 16), int(offset, 16), int(total, 16), int(blob_id, 16))


class PackReader:
    """Reads records of the packs whose files `path` names. Its methods may be called in any thread."""

    def __init__(self, path: Callable[[int], str], kept: int = KEPT) -> None:
        self._path = path
        self._kept = kept
        self._open: dict[int, OpenPack] = {}
        self._lock = threading.Lock()

    def read_now(self, place: Place, offset: int, length: int) -> bytes | None:
        """Bytes of a body when the pack is open and the page cache has the whole record; None also when it is wrong."""
        pack_id, at, total, blob_id = place
        pack = self._open.get(pack_id)
        if pack is None or not self._take(pack_id, pack):
            return None
        whole = bytearray(total)
        try:
            if os.preadv(pack.fd, (whole,), at, os.RWF_NOWAIT) != total:
                return None
            body = pack_format.body_of(memoryview(whole), at, blob_id, pack.salt)
        except (OSError, BlobDamaged):
            return None
        finally:
            self._give_back(pack)
        return bytes(body[offset : offset + length]) if offset + length <= len(body) else None

    def read(self, place: Place, locator: str, offset: int, length: int) -> bytes:
        """Bytes of a body; blocks. A record that is wrong is read again through a new descriptor before it is believed.

        Raises BlobMissing, BlobDamaged.
        """
        try:
            return self._read(place, locator, offset, length)
        except (BlobMissing, BlobDamaged):
            self.forget(place.pack)
            return self._read(place, locator, offset, length)

    def _read(self, place: Place, locator: str, offset: int, length: int) -> bytes:
        with map_errors(committed=locator):
            pack = self._acquire(place.pack)
            try:
                whole = memoryview(read_exactly(pack.fd, place.offset, place.total))
            finally:
                self._give_back(pack)
        body = pack_format.body_of(whole, place.offset, place.blob_id, pack.salt)
        if offset + length > len(body):
            raise BlobDamaged(f"{locator} ends {offset + length - len(body)} bytes early")
        return bytes(body[offset : offset + length])

    def stretch(self, pack_id: int, offset: int, length: int) -> tuple[bytes, int]:
        """Bytes of a pack as they are, fewer at its end, and its salt; blocks. Raises BlobMissing, BlobDamaged."""
        with map_errors(committed=f"pack {pack_id:x}"):
            pack = self._acquire(pack_id)
            try:
                return os.pread(pack.fd, length, offset), pack.salt
            finally:
                self._give_back(pack)

    def forget(self, pack_id: int) -> None:
        """Close the pack once nobody reads it; the next read opens it anew."""
        with self._lock:
            pack = self._open.pop(pack_id, None)
        if pack is not None:
            self._give_back(pack)

    def forget_unlinked(self, known: Iterable[int] = ()) -> set[int]:
        """Forget the packs whose files are gone, so that their space is given back; blocks.

        Asked by name, since not every mount counts the links of an open file. Returns them, and those of `known`.
        """
        gone = set()
        for pack_id in {*self._open, *known}:
            try:
                os.stat(self._path(pack_id))
            except FileNotFoundError:
                self.forget(pack_id)
                gone.add(pack_id)
            except OSError:
                continue
        return gone

    def close(self) -> None:
        """Forget every pack."""
        for pack_id in list(self._open):
            self.forget(pack_id)

    def _acquire(self, pack_id: int) -> OpenPack:
        pack = self._open.get(pack_id)
        if pack is not None and self._take(pack_id, pack):
            return pack
        fd = os.open(self._path(pack_id), OPEN)
        try:
            made = OpenPack(fd, pack_format.read_salt(fd, pack_id))
        except BaseException:
            close_read(fd)
            raise
        with self._lock:
            made.readers += 1
            before = self._open.pop(pack_id, None)
            self._open[pack_id] = made
            oldest = self._open.pop(next(iter(self._open))) if len(self._open) > self._kept else None
        for gone in (before, oldest):
            if gone is not None:
                self._give_back(gone)
        return made

    def _take(self, pack_id: int, pack: OpenPack) -> bool:
        with self._lock:
            if self._open.get(pack_id) is not pack:
                return False
            pack.readers += 1
        return True

    def _give_back(self, pack: OpenPack) -> None:
        with self._lock:
            pack.readers -= 1
            last = pack.readers == 0
        if last:
            close_read(pack.fd)
