"""Records of packs in memory, for mounts where each read is a round trip.

A record is written once and never changed (law 2), so one that is here is as good as the one on the mount for as long
as a row names it. It is verified again whenever it is read. Windows are what lies around a record that was read: its
neighbours were written at about the same time, and are often wanted at about the same time. What does not verify in a
window is not there: it may have been written after the window was read.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable
from typing import NamedTuple

from storage_drivers.errors import BlobDamaged
from storage_drivers.packs import pack_format
from storage_drivers.packs.reader import Place, place_of

OVERHEAD = 512
"""Bytes that Python takes for an entry beside what was read, about."""
LEAST_WINDOWS = 4
"""Records leave windows one part in so many of the budget; the rest of it too while nobody else wants it."""
GROUP = 8
"""Windows that are read at a time."""
WORTH = 0.5
"""Windows are read while they have room, and beyond that while this share of them was of use before it had to go: one
costs as much CPU as a read of a record that it saves does, or half of that."""
TRIALS = 64
"""One record in so many has its windows read all the same, to see whether that has changed."""
GROWING = 10.0
"""Seconds for which nothing is read around the records of a pack that was seen to grow: it would soon be old again."""
MOST_GROWING = 1024
"""Packs of which that is remembered."""
SPEED = 0.05
"""Weight of each window that goes, in the share."""

WindowKey = tuple[int, int]
"""A pack, and which of its windows."""
Read = tuple[bytes, int]
"""Bytes of a pack, and its salt."""


class Kept(NamedTuple):
    """A whole record."""

    place: Place
    whole: bytes
    salt: int


class Window:
    """Bytes of a pack as they were read."""

    __slots__ = ("piece", "salt", "used")

    def __init__(self, piece: bytes, salt: int) -> None:
        self.piece = piece
        self.salt = salt
        self.used = False


class Memory:
    """At most `budget` bytes; what was not asked for the longest goes first. Used on the event loop only."""

    def __init__(self, budget: int, window: int) -> None:
        self._budget = budget
        self.window = window
        self._records: OrderedDict[str, Kept] = OrderedDict()
        self._windows: OrderedDict[WindowKey, Window] = OrderedDict()
        self._record_bytes = 0
        self._window_bytes = 0
        self._useful = 1.0
        self._trial = 0
        self._growing: dict[int, float] = {}
        """Until when, by `time.monotonic()`."""
        self.coming: dict[Hashable, asyncio.Future[Read]] = {}
        """Records (by locator) and windows on their way."""

    @property
    def held(self) -> int:
        """Bytes that are kept."""
        return self._record_bytes + self._window_bytes

    def body(self, locator: str) -> memoryview | None:
        """The body of a record, verified; None when it is not here. Raises BlobMissing for what is no locator."""
        kept = self._records.get(locator)
        if kept is None:
            return self._from_windows(locator)
        body = _body(kept)
        if body is None:  # damaged in memory, of all places
            self._drop_record(locator)
        else:
            self._records.move_to_end(locator)
        return body

    def awaited(self, place: Place) -> list[asyncio.Future[Read]]:
        """What is on its way of the windows of a record; empty when they would not be all here then."""
        missing = [key for key in self._keys(place) if key not in self._windows]
        found = [coming for key in missing if (coming := self.coming.get(key)) is not None]
        return found if len(found) == len(missing) else []

    def around(self, place: Place) -> range:
        """The windows that are worth to be read for a record: those around it that are neither here nor coming."""
        pack, first = place.pack, place.offset // self.window
        if self._growing.get(pack, 0.0) > time.monotonic():
            return range(0)
        self._trial = (self._trial + 1) % TRIALS
        if self._useful < WORTH and self._trial and self.held + GROUP * self.window > self._budget:
            return range(0)
        group = range(first - first % GROUP, first - first % GROUP + GROUP)
        begin = end = first
        while begin in group and self._is_new((pack, begin)):
            begin -= 1
        while end in group and self._is_new((pack, end)):
            end += 1
        return range(begin + 1, end)

    def _is_new(self, key: WindowKey) -> bool:
        return key not in self._windows and key not in self.coming

    def keep_windows(self, pack: int, windows: range, read: Read) -> None:
        """Take in what was read of these windows of a pack."""
        piece, salt = read
        for number, start in zip(windows, range(0, len(piece), self.window), strict=False):
            self._drop_window((pack, number))
            window = self._windows[pack, number] = Window(piece[start : start + self.window], salt)
            self._window_bytes += len(window.piece) + OVERHEAD
        self._make_room()

    def keep_record(self, locator: str, place: Place, read: Read) -> None:
        """Take in what was read at the place of a record, if it is that record."""
        kept = Kept(place, *read)
        if _body(kept) is not None:
            self._keep(locator, kept)

    def forget(self, packs: Collection[int]) -> None:
        """Drop all that is kept of these packs."""
        for window in [key for key in self._windows if key[0] in packs]:
            self._drop_window(window)
        for locator in [locator for locator, kept in self._records.items() if kept.place.pack in packs]:
            self._drop_record(locator)

    def forget_records(self, locators: Iterable[str]) -> None:
        """Drop records, and windows that hold bytes of them."""
        for locator in locators:
            self._drop_record(locator)
            for key in self._keys(place_of(locator)):
                self._drop_window(key)

    def clear(self) -> None:
        """Drop all."""
        self._records.clear()
        self._windows.clear()
        self._record_bytes = self._window_bytes = 0

    def packs(self) -> set[int]:
        """The packs of which something is kept."""
        return {kept.place.pack for kept in self._records.values()} | {pack for pack, _ in self._windows}

    def _keys(self, place: Place) -> list[WindowKey]:
        first, last = place.offset // self.window, (place.offset + place.total - 1) // self.window
        return [(place.pack, number) for number in range(first, last + 1)]

    def _from_windows(self, locator: str) -> memoryview | None:
        place = place_of(locator)
        keys = self._keys(place)
        found = [window for key in keys if (window := self._windows.get(key)) is not None]
        if len(found) < len(keys):
            return None
        start = place.offset - keys[0][1] * self.window
        whole = found[0].piece[start : start + place.total]
        for window in found[1:]:
            whole += window.piece[: place.total - len(whole)]
        kept = Kept(place, whole, found[0].salt)
        body = _body(kept)
        if body is None:  # or written since: whoever reads it from the mount will know
            self._grows(place.pack)
            for key in keys:
                self._drop_window(key)
            return None
        for key, window in zip(keys, found, strict=True):
            window.used = True
            self._windows.move_to_end(key)
        self._keep(locator, kept)
        return body

    def _grows(self, pack: int) -> None:
        if len(self._growing) >= MOST_GROWING:
            self._growing.clear()
        self._growing[pack] = time.monotonic() + GROWING

    def _keep(self, locator: str, kept: Kept) -> None:
        self._drop_record(locator)
        self._records[locator] = kept
        self._record_bytes += len(kept.whole) + OVERHEAD
        self._make_room()

    def _make_room(self) -> None:
        while self.held > self._budget:
            if self._window_bytes > self._budget // LEAST_WINDOWS or not self._records:
                key, window = next(iter(self._windows.items()))
                self._useful += SPEED * (window.used - self._useful)
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


def _body(kept: Kept) -> memoryview | None:
    place, whole, salt = kept
    if len(whole) < max(place.total, pack_format.RECORD_HEADER):
        return None
    try:
        return pack_format.body_of(memoryview(whole), place.offset, place.blob_id, salt)
    except BlobDamaged:
        return None
