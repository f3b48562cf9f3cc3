"""Pieces of blobs that are read before their reader asks for them, several at once."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

from storage_drivers.blobs.footer import CHUNK, Shape

MOST = 64
"""Pieces of up to 1 MiB that are kept or on their way, for all readers of a store in a process."""
KEPT = 5.0
"""Seconds after which a piece that nobody came for makes room."""

Key = tuple[str, int, int]
"""A locator, where a piece begins, and how long it is."""


def pieces(shape: Shape, offset: int, length: int) -> Iterator[tuple[int, int]]:
    """Where the pieces of a range begin and how long they are: none crosses a chunk, or from one file to the next."""
    end = offset + length
    while offset < end:
        _, inside, count = shape.locate(offset, end - offset)
        count = min(count, CHUNK - inside % CHUNK)
        yield offset, count
        offset += count


class ReadAhead:
    """Used on the event loop only. `start` begins to read a piece."""

    def __init__(self, start: Callable[[str, int, int], asyncio.Future[bytes]], most: int = MOST) -> None:
        self._start = start
        self._most = most
        self._pieces: OrderedDict[Key, tuple[asyncio.Future[bytes], float]] = OrderedDict()

    def take(self, locator: str, offset: int, length: int) -> asyncio.Future[bytes] | None:
        """A piece that was begun, None when it was not. It is the taker's from now on."""
        found = self._pieces.pop((locator, offset, length), None)
        return None if found is None else found[0]

    def begin(self, locator: str, offset: int, length: int) -> None:
        """Begin to read a piece, unless that was begun already, or there is no room."""
        key = locator, offset, length
        if key in self._pieces or not self._room():
            return
        self._pieces[key] = self._start(locator, offset, length), time.monotonic()

    def _room(self) -> bool:
        if len(self._pieces) < self._most:
            return True
        oldest, (future, begun) = next(iter(self._pieces.items()))
        if time.monotonic() - begun < KEPT or not future.done():
            return False
        del self._pieces[oldest]
        return True
