"""Writes a body that arrives in pieces into a file, or what is one to a driver."""

from __future__ import annotations

import asyncio
from typing import Protocol

from storage_drivers.errors import StoreFailed
from storage_drivers.pooled import Pooled
from storage_drivers.values import Buffer, Source


class NewFile(Protocol):
    """A file on its way: see `storage_drivers.blobs.writing.BlobFile`. Every method blocks."""

    def begin(self, piece: Buffer) -> None: ...

    def write(self, piece: Buffer) -> None: ...

    def finish(self) -> None: ...

    def write_whole(self, piece: Buffer) -> None: ...

    def abandon(self) -> None: ...


class Streaming(Pooled):
    """A part of a driver."""

    async def _stream(self, file: NewFile, source: Source, piece: Buffer) -> None:
        """Write the body that begins with `piece`; hashes and writes share a hop, and the next piece arrives meanwhile.

        On any error the file is abandoned. Raises what the file's steps and the source raise.
        """
        whole = not piece or (len(piece) == source.size and not await source.read())
        try:
            if whole:
                await self._hop(file.write_whole, piece)
            else:
                await self._write_pieces(file, source, piece)
                await self._hop(file.finish)
        except BaseException:
            await self._abandon(file)
            raise

    async def _write_pieces(self, file: NewFile, source: Source, piece: Buffer) -> None:
        step = file.begin
        while piece:
            writing = self._hop(step, piece)
            piece = await source.read()
            if not writing.done():
                await writing
            writing.result()
            step = file.write

    async def _abandon(self, file: NewFile) -> None:
        try:
            cleaning = self._hop(file.abandon)
        except StoreFailed:  # closed: left for the sweep
            return
        await asyncio.wait([cleaning])
