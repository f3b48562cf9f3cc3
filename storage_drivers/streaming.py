"""Streaming of a body that arrives in pieces into a file or a driver's equivalent."""

from __future__ import annotations

import asyncio
from typing import Protocol

from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.pooled import ThreadPoolMixin
from sluice_s3.storage_drivers.types import BodySource, Buffer


class BlobWriter(Protocol):
    """A file during its write: see `storage_drivers.blobs.writer.BlobFileWriter`.

    Every method blocks.
    """

    def begin(self, piece: Buffer) -> None:
        """See `BlobFileWriter.begin`."""
        ...

    def write(self, piece: Buffer) -> None:
        """See `BlobFileWriter.write`."""
        ...

    def finish(self) -> None:
        """See `BlobFileWriter.finish`."""
        ...

    def write_whole(self, piece: Buffer) -> None:
        """See `BlobFileWriter.write_whole`."""
        ...

    def abandon(self) -> None:
        """See `BlobFileWriter.abandon`."""
        ...


class StreamingWriteMixin(ThreadPoolMixin):
    """The streaming write of a driver."""

    async def _stream(self, file: BlobWriter, source: BodySource, piece: Buffer) -> None:
        """Write the body that begins with `piece`.

        Hashes and writes share one call to a thread, and the next piece arrives meanwhile. After any error the file is
        abandoned. Raises what the file's steps and the source raise.
        """
        whole = not piece or (len(piece) == source.size and not await source.read())
        try:
            if whole:
                await self._run_in_thread(file.write_whole, piece)
            else:
                await self._write_pieces(file, source, piece)
                await self._run_in_thread(file.finish)
        except BaseException:
            await self._abandon(file)
            raise

    async def _write_pieces(self, file: BlobWriter, source: BodySource, piece: Buffer) -> None:
        step = file.begin
        while piece:
            writing = self._run_in_thread(step, piece)
            piece = await source.read()
            if not writing.done():
                await writing
            writing.result()
            step = file.write

    async def _abandon(self, file: BlobWriter) -> None:
        try:
            cleaning = self._run_in_thread(file.abandon)
        except StoreFailed:  # closed: left for the sweep
            return
        await asyncio.wait([cleaning])
