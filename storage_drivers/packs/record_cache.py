"""A cache of pack records, for mounts where each read is a round trip.

A record is written once and never changed (law 2), so a cached one is valid for as long as a row references it. It is
verified again at each read. A window is the range around a record that was read: neighbours were written at about the
same time, and are often needed at about the same time. A record that does not verify in a window is a miss: it may have
been written after the window was read.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable
from typing import NamedTuple

from sluice_s3.storage_drivers.errors import BlobDamaged
from sluice_s3.storage_drivers.packs import format
from sluice_s3.storage_drivers.packs.reader import RecordLocation, parse_locator

OVERHEAD = 512
"""Approximate bytes of Python's overhead for an entry."""
LEAST_WINDOWS = 4
"""Records leave windows this fraction of the budget; windows use the rest too while there are no records."""
GROUP = 8
"""Windows that are read at a time."""
MIN_USEFUL_RATIO = 0.5
"""The share of evicted windows that must have been used, for windows to be read beyond their room.

Within their room they are always read. A window costs as much CPU as one or two of the record reads that it saves.
"""
PROBE_EVERY = 64
"""One record in this many has its windows read anyway, to measure that share again."""
GROWING_PACK_SECONDS = 10.0
"""Seconds without windows for a pack that was seen to grow: they would soon be stale."""
MAX_GROWING = 1024
"""Growing packs that are remembered."""
EWMA_WEIGHT = 0.05
"""Weight of each evicted window in that share."""

WindowKey = tuple[int, int]
"""A pack, and the number of a window in it."""
Read = tuple[bytes, int]
"""Bytes of a pack, and its salt."""


class CachedRecord(NamedTuple):
    """A whole record."""

    location: RecordLocation
    whole: bytes
    salt: int


class CacheBlock:
    """Bytes of a pack as they were read."""

    __slots__ = ("piece", "salt", "used")

    def __init__(self, piece: bytes, salt: int) -> None:
        self.piece = piece
        self.salt = salt
        self.used = False


class RecordCache:
    """A cache of at most `budget` bytes; the least recently used goes first.

    Used on the event loop only.
    """

    def __init__(self, budget: int, window: int) -> None:
        self._budget = budget
        self.window = window
        self._records: OrderedDict[str, CachedRecord] = OrderedDict()
        self._windows: OrderedDict[WindowKey, CacheBlock] = OrderedDict()
        self._record_bytes = 0
        self._window_bytes = 0
        self._useful = 1.0
        self._trial = 0
        self._growing: dict[int, float] = {}
        """Until when, by `time.monotonic()`."""
        self.pending: dict[Hashable, asyncio.Future[Read]] = {}
        """Records (by locator) and windows that are being read."""

    @property
    def cached_bytes(self) -> int:
        """Bytes in the cache."""
        return self._record_bytes + self._window_bytes

    def body(self, locator: str) -> memoryview | None:
        """Return the verified body of a record; None when it is not cached.

        Raises BlobMissing for a text that is no locator.
        """
        kept = self._records.get(locator)
        if kept is None:
            return self._from_windows(locator)
        body = _body(kept)
        if body is None:  # damaged in memory
            self._drop_record(locator)
        else:
            self._records.move_to_end(locator)
        return body

    def find_pending(self, location: RecordLocation) -> list[asyncio.Future[Read]]:
        """Return pending reads of a record's windows; empty if they would not complete it."""
        missing = [key for key in self._keys(location) if key not in self._windows]
        found = [future for key in missing if (future := self.pending.get(key)) is not None]
        return found if len(found) == len(missing) else []

    def around(self, location: RecordLocation) -> range:
        """Return the windows worth reading for a record, neither cached nor pending."""
        pack, first = location.pack, location.offset // self.window
        if self._growing.get(pack, 0.0) > time.monotonic():
            return range(0)
        self._trial = (self._trial + 1) % PROBE_EVERY
        if self._useful < MIN_USEFUL_RATIO and self._trial and self.cached_bytes + GROUP * self.window > self._budget:
            return range(0)
        group = range(first - first % GROUP, first - first % GROUP + GROUP)
        begin = end = first
        while begin in group and self._is_new((pack, begin)):
            begin -= 1
        while end in group and self._is_new((pack, end)):
            end += 1
        return range(begin + 1, end)

    def _is_new(self, key: WindowKey) -> bool:
        return key not in self._windows and key not in self.pending

    def keep_windows(self, pack: int, windows: range, read: Read) -> None:
        """Add the bytes of these windows of a pack."""
        piece, salt = read
        for number, start in zip(windows, range(0, len(piece), self.window), strict=False):
            self._drop_window((pack, number))
            window = self._windows[pack, number] = CacheBlock(piece[start : start + self.window], salt)
            self._window_bytes += len(window.piece) + OVERHEAD
        self._make_room()

    def keep_record(self, locator: str, location: RecordLocation, read: Read) -> None:
        """Add the bytes read at a record's place, if they are that record."""
        kept = CachedRecord(location, *read)
        if _body(kept) is not None:
            self._keep(locator, kept)

    def forget(self, packs: Collection[int]) -> None:
        """Drop everything of these packs."""
        for window in [key for key in self._windows if key[0] in packs]:
            self._drop_window(window)
        for locator in [locator for locator, kept in self._records.items() if kept.location.pack in packs]:
            self._drop_record(locator)

    def forget_records(self, locators: Iterable[str]) -> None:
        """Drop records, and windows with bytes of them."""
        for locator in locators:
            self._drop_record(locator)
            for key in self._keys(parse_locator(locator)):
                self._drop_window(key)

    def clear(self) -> None:
        """Drop everything."""
        self._records.clear()
        self._windows.clear()
        self._record_bytes = self._window_bytes = 0

    def packs(self) -> set[int]:
        """Return the packs with cached bytes."""
        return {kept.location.pack for kept in self._records.values()} | {pack for pack, _ in self._windows}

    def _keys(self, location: RecordLocation) -> list[WindowKey]:
        first, last = location.offset // self.window, (location.offset + location.total - 1) // self.window
        return [(location.pack, number) for number in range(first, last + 1)]

    def _from_windows(self, locator: str) -> memoryview | None:
        location = parse_locator(locator)
        keys = self._keys(location)
        found = [window for key in keys if (window := self._windows.get(key)) is not None]
        if len(found) < len(keys):
            return None
        start = location.offset - keys[0][1] * self.window
        whole = found[0].piece[start : start + location.total]
        for window in found[1:]:
            whole += window.piece[: location.total - len(whole)]
        kept = CachedRecord(location, whole, found[0].salt)
        body = _body(kept)
        if body is None:  # or written since: the read from the mount shows which
            self._grows(location.pack)
            for key in keys:
                self._drop_window(key)
            return None
        for key, window in zip(keys, found, strict=True):
            window.used = True
            self._windows.move_to_end(key)
        self._keep(locator, kept)
        return body

    def _grows(self, pack: int) -> None:
        if len(self._growing) >= MAX_GROWING:
            self._growing.clear()
        self._growing[pack] = time.monotonic() + GROWING_PACK_SECONDS

    def _keep(self, locator: str, kept: CachedRecord) -> None:
        self._drop_record(locator)
        self._records[locator] = kept
        self._record_bytes += len(kept.whole) + OVERHEAD
        self._make_room()

    def _make_room(self) -> None:
        while self.cached_bytes > self._budget:
            if self._window_bytes > self._budget // LEAST_WINDOWS or not self._records:
                key, window = next(iter(self._windows.items()))
                self._useful += EWMA_WEIGHT * (window.used - self._useful)
                self._drop_window(key)
            else:
                self._drop_record(next(iter(self._records)))

    def _drop_record(self, locator: str) -> None:
        kept = self._records.pop(locator, None)
        if kept is not None:
            self._record_bytes -= len(kept.whole) + OVERHEAD

    def _drop_window(self, key: WindowKey) -> None:
        window = self._windows.pop(key, None)
        if window is not None:
            self._window_bytes -= len(window.piece) + OVERHEAD


def _body(kept: CachedRecord) -> memoryview | None:
    location, whole, salt = kept
    if len(whole) < max(location.total, format.RECORD_HEADER):
        return None
    try:
        return format.parse_record(memoryview(whole), location.offset, location.blob_id, salt)
    except BlobDamaged:
        return None
