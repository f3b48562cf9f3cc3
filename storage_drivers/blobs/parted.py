"""Writes one large body to several files at once, where one stream alone is slower than the mount.

The files are made at once. The body fills them one after the other; each is synced as soon as it is full, while the
next ones fill. The first is ended last: its footer says how many there are, so a blob that has one is whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from storage_drivers.base import Buffer, Source
from storage_drivers.blobs.footer import Shape
from storage_drivers.blobs.writing import BlobFile
from storage_drivers.errors import StoreFailed

LEAST_PART = 96 << 10
"""Bytes below which a file of its own costs more than it gains."""
AT_ONCE = 1 << 20
"""Bytes of a body that is written when it is here whole: as many as one piece of a larger one may have."""
ROUND = 4096
MOST_SIZE = 1 << 32
"""A part is smaller: the trailer has four bytes for the last one's size."""
EARLY = 1 << 20
"""Bytes of the first part from which on it is synced before its footer is known."""


def shape_for(size: int | None, parts: int) -> Shape | None:
    """How a body of `size` bytes is cut into at most `parts` files, None when it is not."""
    if size is None:
        return None
    parts = min(parts, size // LEAST_PART)
    if parts < 2:
        return None
    each = -(-size // parts // ROUND) * ROUND
    each = max(each, ROUND)
    count = -(-size // each)
    if count < 2 or each >= MOST_SIZE:
        return None
    return Shape(count, each, size - (count - 1) * each)


class Ends:
    """The source of a part: hashing is done elsewhere; `verify` is called where a blob ends, if given."""

    size: int | None = None

    def __init__(self, verify: Callable[[], None] | None = None) -> None:
        self._verify = verify

    async def read(self) -> Buffer:
        """Never called."""
        raise NotImplementedError

    def digest(self, piece: Buffer) -> None:
        """Nothing."""

    def verify(self) -> None:
        """As the whole body's."""
        if self._verify is not None:
            self._verify()


class PartedPut:
    """One body on its way into `files`, which lie as `shape` says."""

    def __init__(
        self, hop: Callable[..., asyncio.Future[Any]], files: Sequence[BlobFile], shape: Shape, source: Source
    ) -> None:
        self._hop = hop
        self._files = files
        self._shape = shape
        self._source = source
        self._filled = 0
        self._named = 0
        """Parts whose names are durable, or are just made so."""
        self._running: list[asyncio.Future[Any]] = []

    async def run(self, piece: Buffer) -> None:
        """Write it all. On any error, and when cancelled, no file is left that a reader could take for the blob."""
        try:
            await self._run(piece)
        except BaseException:
            await self._abandon()
            raise

    async def _run(self, piece: Buffer) -> None:
        if self._shape.total <= AT_ONCE:
            await self._run_at_once(piece)
        else:
            await self._run_in_pieces(piece)

    async def _run_at_once(self, piece: Buffer) -> None:
        """A body that is in memory whole: each part is one call, and none waits for another."""
        whole, lengths = await self._whole(piece)
        view, size = memoryview(whole), self._shape.size
        first = [self._start(self._files[0].begin, view[:size]), self._start(self._digest, view, lengths)]
        for part in range(1, self._shape.parts):
            self._start(self._files[part].write_whole, view[part * size : (part + 1) * size])
        await asyncio.gather(*first)
        self._start(self._files[0].finish, self._shape.parts, self._shape.last)
        await asyncio.gather(*self._running)

    async def _whole(self, piece: Buffer) -> tuple[Buffer, list[int]]:
        """The body, and how long each of its pieces was."""
        whole = bytearray(piece)
        lengths = [len(piece)]
        while piece and len(whole) <= self._shape.total:
            piece = await self._source.read()
            whole += piece
            lengths.append(len(piece))
        if len(whole) != self._shape.total:
            raise StoreFailed(f"{len(whole)} bytes of {self._shape.total} came, or more")
        return whole, lengths

    def _digest(self, view: memoryview, lengths: list[int]) -> None:
        """One piece after the other: a source may remember something of each."""
        for length in filter(None, lengths):
            self._source.digest(view[:length])
            view = view[length:]

    async def _run_in_pieces(self, piece: Buffer) -> None:
        made = [self._start(file.create) for file in self._files]
        while piece:
            first, last = self._part_at(self._filled), self._part_at(self._filled + len(piece) - 1)
            await asyncio.gather(*made[first : last + 1])
            self._sync_entries(last)
            writing = [self._start(self._source.digest, piece), *self._write(piece, self._filled)]
            following = await self._source.read()
            await asyncio.gather(*writing)
            self._filled += len(piece)
            self._end_full(first)
            self._raise_failed()
            piece = following
        if self._filled != self._shape.total:
            raise StoreFailed(f"{self._filled} bytes of {self._shape.total} came")
        self._start(self._files[0].finish, self._shape.parts, self._shape.last)
        await asyncio.gather(*self._running)

    def _sync_entries(self, last: int) -> None:
        """Make the names of the parts durable while they fill."""
        for file in self._files[self._named : last + 1]:
            self._start(file.sync_entry)
        self._named = max(self._named, last + 1)

    def _part_at(self, offset: int) -> int:
        if offset >= self._shape.total:
            raise StoreFailed(f"more than {self._shape.total} bytes came")
        return offset // self._shape.size

    def _write(self, piece: Buffer, offset: int) -> Iterator[asyncio.Future[Any]]:
        """Write a piece to the parts that it belongs to, each in a thread."""
        view = memoryview(piece)
        while view:
            part, _, count = self._shape.locate(offset, len(view))
            yield self._start(self._files[part].write, view[:count])
            view = view[count:]
            offset += count

    def _end_full(self, first: int) -> None:
        """End what the last piece filled; `first` is the part that it began in."""
        for part in range(first, self._shape.parts):
            if self._filled < part * self._shape.size + self._shape.size_of(part):
                return
            if part:
                self._start(self._files[part].finish)
            elif self._shape.size >= EARLY:
                self._start(self._files[0].flush)

    def _start(self, call: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        started = self._hop(call, *args)
        self._running.append(started)
        return started

    def _raise_failed(self) -> None:
        for step in self._running:
            if step.done():
                step.result()

    async def _abandon(self) -> None:
        try:
            cleaning = [self._hop(file.abandon) for file in self._files]
        except StoreFailed:  # closed: left for the sweep
            cleaning = []
        if waiting := {*self._running, *cleaning}:
            await asyncio.wait(waiting)
        for step in waiting:
            if not step.cancelled():
                step.exception()  # told already, by the one that is raised
