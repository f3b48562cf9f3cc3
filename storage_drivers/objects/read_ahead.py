"""Read-ahead: pieces of blobs that are read before their reader needs them, several at once."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator

from sluice_s3.storage_drivers.blobs.footer import CHUNK, Shape

MAX_PIECES = 64
"""Pieces of up to 1 MiB that are held or being read, for all readers of a store in a process."""
RETAINED_SECONDS = 5.0
"""Seconds after which an unused piece makes room."""

Key = tuple[str, int, int]
"""A locator, where a piece begins, and its length."""


def pieces(shape: Shape, offset: int, length: int) -> Iterator[tuple[int, int]]:
    """Yield start and length of a range's pieces: none crosses a chunk or file."""
    end = offset + length
    while offset < end:
        _, inside, count = shape.locate(offset, end - offset)
        count = min(count, CHUNK - inside % CHUNK)
        yield offset, count
        offset += count


class ReadAhead:
    """The pieces being read ahead.

    Used on the event loop only. `start` begins to read a piece.
    """

    def __init__(self, start: Callable[[str, int, int], asyncio.Future[bytes]], most: int = MAX_PIECES) -> None:
        self._start = start
        self._most = most
        self._pieces: OrderedDict[Key, tuple[asyncio.Future[bytes], float]] = OrderedDict()

    def take(self, locator: str, offset: int, length: int) -> asyncio.Future[bytes] | None:
        """Return and release a begun piece; None when there is none."""
        found = self._pieces.pop((locator, offset, length), None)
        return None if found is None else found[0]

    def begin(self, locator: str, offset: int, length: int) -> None:
        """Begin to read a piece, unless it is begun already, or there is no room."""
        key = locator, offset, length
        if key in self._pieces or not self._room():
            return
        self._pieces[key] = self._start(locator, offset, length), time.monotonic()

    def _room(self) -> bool:
        if len(self._pieces) < self._most:
            return True
        oldest, (future, begun) = next(iter(self._pieces.items()))
        if time.monotonic() - begun < RETAINED_SECONDS or not future.done():
            return False
        del self._pieces[oldest]
        return True
