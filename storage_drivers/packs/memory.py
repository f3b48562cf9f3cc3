"""Records of packs in memory, for mounts where each read is a round trip.

A record is written once and never changed (law 2), so one that is here is as good as the one on the mount for as long
as a row names it. It is verified again whenever it is read. Windows are what was read around a record: those beside it
were written at about the same time, and are often wanted at about the same time. Whatever is not verified in a window
is not there: it may have been written after the window was read.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import NamedTuple

from storage_drivers.errors import BlobDamaged
from storage_drivers.packs import pack_format
from storage_drivers.packs.reader import Place, place_of

OVERHEAD = 512
"""Bytes that Python takes for an entry beside the record, about."""
WINDOWS = 4
"""Windows have one part in so many of the budget."""

WindowKey = tuple[int, int]
"""A pack, and which of its windows."""


class Kept(NamedTuple):
    """A whole record."""

    place: Place
    whole: bytes
    salt: int


class Window(NamedTuple):
    """Bytes of a pack as they were read."""

    piece: bytes
    salt: int


class Memory:
    """At most `budget` bytes; what was not asked for the longest goes first. Used on the event loop only."""

    def __init__(self, budget: int, window: int) -> None:
        self._budget = budget
        self.window = window
        self._records: OrderedDict[str, Kept] = OrderedDict()
        self._windows: OrderedDict[WindowKey, Window] = OrderedDict()
        self._record_bytes = 0
        self._window_bytes = 0
        self.loading: dict[WindowKey, asyncio.Future[tuple[bytes, int]]] = {}
        """Windows on their way."""

    @property
    def held(self) -> int:
        """Bytes that are kept."""
        return self._record_bytes + self._window_bytes

    def body(self, locator: str) -> memoryview | None:
        """The body of a record, verified; None when it is not here. Raises BlobMissing for what is no locator."""
        kept = self._records.get(locator)
        if kept is None:
            return self._from_windows(locator)
        try:
            body = pack_format.body_of(memoryview(kept.whole), kept.place.offset, kept.place.blob_id, kept.salt)
        except BlobDamaged:  # in memory, of all places
            self._drop_record(locator)
            return None
        self._records.move_to_end(locator)
        return body

    def missing(self, place: Place) -> list[WindowKey]:
        """The windows that hold a record and are not here."""
        return [key for key in self._keys(place) if key not in self._windows]

    def keep(self, key: WindowKey, piece: bytes, salt: int) -> None:
        """Take a window in."""
        self._drop_window(key)
        self._windows[key] = Window(piece, salt)
        self._window_bytes += len(piece) + OVERHEAD
        while self._window_bytes > self._budget // WINDOWS:
            self._drop_window(next(iter(self._windows)))

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
        try:
            if len(kept.whole) < place.total:
                raise BlobDamaged(f"{locator} lies behind what was read")
            body = pack_format.body_of(memoryview(kept.whole), place.offset, place.blob_id, kept.salt)
        except BlobDamaged:  # or written since: whoever reads it from the mount will know
            for key in keys:
                self._drop_window(key)
            return None
        for key in keys:
            self._windows.move_to_end(key)
        self._keep_record(locator, kept)
        return body

    def _keep_record(self, locator: str, kept: Kept) -> None:
        self._records[locator] = kept
        self._record_bytes += len(kept.whole) + OVERHEAD
        while self.held > self._budget:
            self._drop_record(next(iter(self._records)))

    def _drop_record(self, locator: str) -> None:
        kept = self._records.pop(locator, None)
        if kept is not None:
            self._record_bytes -= len(kept.whole) + OVERHEAD

    def _drop_window(self, key: WindowKey) -> None:
        window = self._windows.pop(key, None)
        if window is not None:
            self._window_bytes -= len(window.piece) + OVERHEAD
