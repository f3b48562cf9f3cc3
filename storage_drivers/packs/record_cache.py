"""A cache of pack records in memory that processes share, for mounts where each read is a round trip.

A locator's bytes never change while a row references it: packs are append-only, and neither they nor places in them are
used again (law 2). So nothing is ever invalidated; what nobody asks for is overwritten.

The memory is a ring of entries behind an index of their keys. Nobody holds a lock across processes: a record is copied
and then verified, as one from the mount is, so what others overwrite meanwhile, or leave torn when they die, is a miss.
"""

from __future__ import annotations

import asyncio
import mmap
import struct
import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

from sluice_s3.storage_drivers.errors import BlobDamaged
from sluice_s3.storage_drivers.packs import format
from sluice_s3.storage_drivers.packs.reader import RecordLocation, parse_locator

LEAST_BYTES = 1 << 16
"""Bytes of the smallest cache."""
GROUP = 8
"""Most windows that are read at a time."""
FIRST_GROUP = 4
"""Windows that are read at a time while there is room, whether or not they prove useful."""
RECENT_READS = 64
"""Ends of what was read lately: near them the next read takes windows too."""
GROWING_PACK_SECONDS = 10.0
"""Seconds without windows for a pack that was seen to grow: they would soon be stale."""
MAX_GROWING = 1024
"""Growing packs that are remembered."""
LARGEST_SHARE = 4
"""An entry takes at most this fraction of the ring."""
AGED_SHARE = 0.75
"""A record that is read this share of the ring behind its head is written again, so that it stays."""
BYTES_PER_KEY = 1 << 8
"""Bytes of memory for which there is one place in the index."""

RING_HEAD = struct.Struct("<Q")
"""How many bytes were ever written to the ring."""
WAYS = 4
"""Keys that share a set of the index; the one that was kept longest ago makes room."""
SET = struct.Struct("<" + WAYS * "QQ")
"""Keys, each with the place of its entry in the ring."""
KEY = struct.Struct("<QQ")
ENTRY = struct.Struct("<QQQQ")
"""What precedes an entry: its pack, its offset there, its bytes, and the pack's salt."""
INDEX = 64
"""Where the index begins."""
USED = 1 << 63
"""Set in each key and in no place."""

WindowKey = tuple[int, int]
"""A pack, and the number of a window in it."""


class Read(NamedTuple):
    """Bytes of a pack as they were read, and its salt."""

    piece: bytes
    salt: int


class RecordCache:
    """Records, and windows: the ranges around records, since neighbours are often needed at about the same time.

    `memory` begins as zeros; all processes that share it must use the same `window`, in bytes. What is kept may be kept
    in any thread; the rest is used on the event loop only.
    """

    def __init__(self, memory: mmap.mmap, window: int) -> None:
        self.window = window
        self._memory = memory
        self._head = memoryview(memory)[: RING_HEAD.size].cast("Q")
        """Written in one store: `struct` writes zeros first, which another process could read."""
        self._sets = 1 << (len(memory) // BYTES_PER_KEY // WAYS).bit_length() - 1
        self._start = INDEX + self._sets * SET.size
        self._ring = (len(memory) - self._start - ENTRY.size) & ~7
        self._reserving = threading.Lock()
        self._recent: OrderedDict[WindowKey, int] = OrderedDict()
        """Windows where the mount was read, and how many to read beside each."""
        self._growing: dict[int, float] = {}
        """Until when, by `time.monotonic()`."""
        self.pending: dict[Hashable, asyncio.Future[Read]] = {}
        """Records (by locator) and windows that this process is reading."""

    @property
    def cached_bytes(self) -> int:
        """Bytes in the cache, of all processes together."""
        return min(self._written(), self._ring)

    def body(self, locator: str) -> memoryview | None:
        """Return the verified body of a record; None when it is not cached.

        Raises BlobMissing for a text that is no locator.
        """
        location = parse_locator(locator)
        pack, offset, total, _ = location
        found = self._find(_record_key(location), pack, offset, total)
        if found is None:
            found = self._from_windows(location)
            if found is None:
                return None
        read, aged = found
        body = verified_body(location, read)
        if body is not None and aged:
            self.keep_record(location, read)
        return body

    def find_pending(self, location: RecordLocation) -> list[asyncio.Future[Read]]:
        """Return pending reads of a record's windows; empty if they would not complete it."""
        missing = [key for key in self._keys(location) if not self._has(key)]
        found = [future for key in missing if (future := self.pending.get(key)) is not None]
        return found if len(found) == len(missing) else []

    def around(self, location: RecordLocation) -> range:
        """Return the windows worth reading for a record that must be read, neither cached nor pending.

        Some always while nothing has to go for them. Later none, unless a record near it was read lately; then the
        more, the more often that proved true: a window takes the room of ten records.
        """
        pack, first = location.pack, location.offset // self.window
        if self._growing.get(pack, 0.0) > time.monotonic():
            return range(0)
        count = max(self._recent.pop((pack, near), 0) for near in (first - 1, first, first + 1))
        grown = min(2 * count, GROUP) or 1
        if self._written() + FIRST_GROUP * self.window <= self._ring:
            count = max(count, FIRST_GROUP)
        start = first - first % count if count else first
        group = range(start, start + count)
        begin = end = first
        while begin in group and self._is_new((pack, begin)):
            begin -= 1
        while end in group and self._is_new((pack, end)):
            end += 1
        for near in (min(first, begin + 1), max(first, end - 1)):
            self._recent[pack, near] = grown
        while len(self._recent) > RECENT_READS:
            self._recent.popitem(last=False)
        return range(begin + 1, end)

    def keep_windows(self, pack: int, windows: range, read: Read) -> None:
        """Add the bytes of these windows of a pack, fewer at its end."""
        for number, start in zip(windows, range(0, len(read.piece), self.window), strict=False):
            piece = read.piece[start : start + self.window]
            self._keep(_window_key((pack, number)), pack, number * self.window, Read(piece, read.salt))

    def keep_record(self, location: RecordLocation, read: Read) -> None:
        """Add the bytes read at a record's place."""
        self._keep(_record_key(location), location.pack, location.offset, read)

    def _is_new(self, key: WindowKey) -> bool:
        return key not in self.pending and not self._has(key)

    def _has(self, key: WindowKey) -> bool:
        return self._place(_window_key(key)) is not None

    def _keys(self, location: RecordLocation) -> list[WindowKey]:
        first, last = location.offset // self.window, (location.offset + location.total - 1) // self.window
        return [(location.pack, number) for number in range(first, last + 1)]

    def _from_windows(self, location: RecordLocation) -> tuple[Read, bool] | None:
        pieces, keys = [], self._keys(location)
        at, end = location.offset, location.offset + location.total
        for key in keys:
            found = self._find(_window_key(key), location.pack, at, min(end, (key[1] + 1) * self.window) - at)
            if found is None:
                if self._has(key):  # it ended where the pack did at that time
                    self._grows(location.pack)
                    self._drop(_window_key(key))
                return None
            pieces.append(found)
            at = (key[1] + 1) * self.window
        read = Read(b"".join(found.piece for found, _ in pieces), pieces[0][0].salt)
        if verified_body(location, read) is None:  # or written since: the read from the mount shows which
            self._grows(location.pack)
            for key in keys:
                self._drop(_window_key(key))
            return None
        return read, any(aged for _, aged in pieces)

    def _grows(self, pack: int) -> None:
        if len(self._growing) >= MAX_GROWING:
            self._growing.clear()
        self._growing[pack] = time.monotonic() + GROWING_PACK_SECONDS

    # the shared memory
    def _written(self) -> int:
        return self._head[0]

    def _set_of(self, key: int) -> int:
        return INDEX + (key & (self._sets - 1)) * SET.size

    def _place(self, key: int) -> int | None:
        """Return where in the ring the entry of a key should be."""
        found = SET.unpack_from(self._memory, self._set_of(key))
        if key not in found[::2]:
            return None
        place = int(found[2 * found[::2].index(key) + 1])
        return place if 0 <= self._written() - place <= self._ring else None

    def _find(self, key: int, pack: int, offset: int, count: int) -> tuple[Read, bool] | None:
        """Return bytes of an entry, unverified, and whether it is soon overwritten."""
        place = self._place(key)
        if place is None:
            return None
        start = self._start + place % self._ring
        its_pack, its_offset, length, salt = ENTRY.unpack_from(self._memory, start)
        skip = offset - its_offset
        if its_pack != pack or skip < 0 or skip + count > length:
            return None
        start += ENTRY.size + skip
        piece = self._memory[start : start + count]
        return Read(piece, salt), self._written() - place > self._ring * AGED_SHARE

    def _keep(self, key: int, pack: int, offset: int, read: Read) -> None:
        memory, ring, length = self._memory, self._ring, len(read.piece)
        size = (ENTRY.size + length + 7) & ~7
        if size > ring // LARGEST_SHARE:
            return
        with self._reserving:  # another process may take the same place: one of the entries is then a miss
            place = self._written()
            if size > ring - place % ring:
                place += ring - place % ring
            self._head[0] = place + size
        start = self._start + place % ring
        ENTRY.pack_into(memory, start, pack, offset, length, read.salt)
        memory[start + ENTRY.size : start + ENTRY.size + length] = read.piece
        at = self._set_of(key)
        found = SET.unpack_from(memory, at)
        keys, places = found[::2], found[1::2]
        own = key if key in keys else 0
        way = keys.index(own) if own in keys else places.index(min(places))
        KEY.pack_into(memory, at + way * KEY.size, key, place)

    def _drop(self, key: int) -> None:
        at = self._set_of(key)
        for way in range(at, at + SET.size, KEY.size):
            if KEY.unpack_from(self._memory, way)[0] == key:
                KEY.pack_into(self._memory, way, 0, 0)


def verified_body(location: RecordLocation, read: Read) -> memoryview | None:
    """Return the body of a whole record; None when the bytes are not that record."""
    piece, salt = read
    if len(piece) < max(location.total, format.RECORD_HEADER):
        return None
    try:
        return format.parse_record(memoryview(piece), location.offset, location.blob_id, salt)
    except BlobDamaged:
        return None


def _record_key(location: RecordLocation) -> int:
    return hash(location) & (USED - 1) | USED  # of numbers: the same in all processes


def _window_key(key: WindowKey) -> int:
    return hash((*key, -1)) & (USED - 1) | USED
