"""Striped writes: one large body to several files at once, where one stream is slow.

The files are created together. The body fills them one after the other; each is synced as soon as it is full, while the
next ones fill. The first is finished last: its footer states how many there are, so a blob with that footer is whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sluice_s3.storage_drivers.base import BodySource, Buffer
from sluice_s3.storage_drivers.blobs.footer import Shape
from sluice_s3.storage_drivers.blobs.writer import BlobFileWriter
from sluice_s3.storage_drivers.errors import StoreFailed

MIN_STRIPE_BYTES = 96 << 10
"""Bytes below which a file of its own costs more than it gains."""
WRITE_BYTES = 1 << 20
"""Bytes of one write of a body in memory: the largest piece of a streamed one."""
STRIPE_ALIGNMENT_BYTES = 4096
MAX_SIZE_BYTES = 1 << 32
"""Limit of a part's size: the trailer has four bytes for the last one's."""
EARLY_SYNC_BYTES = 1 << 20
"""Bytes of the first part from which it is synced before its footer is known."""


def plan_stripes(size: int | None, parts: int) -> Shape | None:
    """Return the shape of `size` bytes in at most `parts` files; None for one file."""
    if size is None:
        return None
    parts = min(parts, size // MIN_STRIPE_BYTES)
    if parts < 2:
        return None
    each = -(-size // parts // STRIPE_ALIGNMENT_BYTES) * STRIPE_ALIGNMENT_BYTES
    each = max(each, STRIPE_ALIGNMENT_BYTES)
    count = -(-size // each)
    if count < 2 or each >= MAX_SIZE_BYTES:
        return None
    return Shape(count, each, size - (count - 1) * each)


class StripeSource:
    """The source of a part.

    Hashing is done elsewhere; `verify`, if present, is called at the blob's end.
    """

    size: int | None = None

    def __init__(self, verify: Callable[[], None] | None = None) -> None:
        self._verify = verify

    async def read(self) -> Buffer:
        """Raise NotImplementedError: it is never called."""
        raise NotImplementedError

    def digest(self, piece: Buffer) -> None:
        """Do nothing."""

    def verify(self) -> None:
        """Verify the whole body."""
        if self._verify is not None:
            self._verify()


class StripedWrite:
    """One write of a body into `files`, arranged as `shape`."""

    def __init__(
        self, hop: Callable[..., asyncio.Future[Any]], files: Sequence[BlobFileWriter], shape: Shape, source: BodySource
    ) -> None:
        self._run_in_thread = hop
        self._files = files
        self._shape = shape
        self._source = source
        self._filled = 0
        self._named = 0
        """Parts whose names are durable, or are being synced."""
        self._running: list[asyncio.Future[Any]] = []

    async def run(self, piece: Buffer) -> None:
        """Write everything.

        After an error or a cancellation no file is left that a reader could take for the blob.
        """
        try:
            await self._run(piece)
        except BaseException:
            await self._abandon()
            raise

    async def _run(self, piece: Buffer) -> None:
        if self._shape.total <= WRITE_BYTES:
            await self._run_at_once(piece)
        else:
            await self._run_in_pieces(piece)

    async def _run_at_once(self, piece: Buffer) -> None:
        """Write a body in memory: each part is one call, and none waits for another."""
        whole, lengths = await self._whole(piece)
        view, size = memoryview(whole), self._shape.size
        first = [self._start(self._files[0].begin, view[:size]), self._start(self._digest, view, lengths)]
        for part in range(1, self._shape.parts):
            self._start(self._files[part].write_whole, view[part * size : (part + 1) * size])
        await asyncio.gather(*first)
        self._start(self._files[0].finish, self._shape.parts, self._shape.last)
        await asyncio.gather(*self._running)

    async def _whole(self, piece: Buffer) -> tuple[Buffer, list[int]]:
        """Return the body, and the length of each of its pieces."""
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
        """Hash the pieces one after the other: a source may have state for each."""
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
        """Write a piece to its parts, each in a thread."""
        view = memoryview(piece)
        while view:
            part, _, count = self._shape.locate(offset, len(view))
            yield self._start(self._files[part].write, view[:count])
            view = view[count:]
            offset += count

    def _end_full(self, first: int) -> None:
        """Finish the parts that the last piece filled; it began in part `first`."""
        for part in range(first, self._shape.parts):
            if self._filled < part * self._shape.size + self._shape.size_of(part):
                return
            if part:
                self._start(self._files[part].finish)
            elif self._shape.size >= EARLY_SYNC_BYTES:
                self._start(self._files[0].flush)

    def _start(self, call: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        started = self._run_in_thread(call, *args)
        self._running.append(started)
        return started

    def _raise_failed(self) -> None:
        for step in self._running:
            if step.done():
                step.result()

    async def _abandon(self) -> None:
        try:
            cleaning = [self._run_in_thread(file.abandon) for file in self._files]
        except StoreFailed:  # closed: left for the sweep
            cleaning = []
        if waiting := {*self._running, *cleaning}:
            await asyncio.wait(waiting)
        for step in waiting:
            if not step.cancelled():
                step.exception()  # the raised error reports it already
