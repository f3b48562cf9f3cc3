"""Writes blobs that have files of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable

from storage_drivers.base import Buffer, Source, no_claim
from storage_drivers.blobs.footer import Shape, part_id, whole
from storage_drivers.blobs.parted import Ends, PartedPut, shape_for
from storage_drivers.blobs.writing import BlobFile, Place
from storage_drivers.names import FILE
from storage_drivers.objects.common import Common
from storage_drivers.streaming import Streaming


def nobody(_fd: int, _body: int) -> None:
    """Told of a file that was written, where what is read is checked in any case: another mount may tell other times
    before and after close(2), and each look costs a round trip."""


class Putting(Common, Streaming):
    """A part of the driver."""

    _read_back: bool
    _large = 0
    """Bodies that are being written to several files, or might be."""

    async def put(
        self,
        blob_id: int,
        source: Source,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        claim: Callable[[], bytes] = no_claim,
    ) -> str:
        """Write one blob, of one file or several."""
        if piece is None:
            piece = await source.read()
        spent = {} if timings is None else timings
        self._large += 1
        try:
            shape = shape_for(source.size, self._recipe.parts // self._large)
            if shape is not None:
                await self._put_parts(blob_id, shape, source, piece, claim, spent)
            else:
                await self._put_whole(blob_id, source, piece, claim, spent)
        finally:
            self._large -= 1
        return f"{FILE}{blob_id:016x}"

    async def _put_whole(
        self, blob_id: int, source: Source, piece: Buffer, claim: Callable[[], bytes], spent: dict[str, float]
    ) -> None:
        def wrote(fd: int, body: int) -> None:
            self._files.wrote(blob_id, whole(body), 0, fd, body)

        told = wrote if self._recipe.descriptors else nobody
        blob = BlobFile(self._place(blob_id, 0), source, claim, spent, self._at, told)
        await self._stream(blob, source, piece)

    async def _put_parts(
        self,
        blob_id: int,
        shape: Shape,
        source: Source,
        piece: Buffer,
        claim: Callable[[], bytes],
        spent: dict[str, float],
    ) -> None:
        phases: list[dict[str, float]] = [{} for _ in range(shape.parts)]
        files = [
            BlobFile(
                self._place(blob_id, part),
                Ends(None if part else source.verify),
                no_claim if part else claim,
                phases[part],
                self._at,
                functools.partial(self._files.wrote, blob_id, shape, part) if self._recipe.descriptors else nobody,
            )
            for part in range(shape.parts)
        ]
        await PartedPut(self._hop, files, shape, source).run(piece)
        for phase in ("open", "write", "sync"):
            times = [part.get(phase, 0.0) for part in phases]
            spent[phase] = spent.get(phase, 0.0) + (sum(times) if phase == "write" else max(times))

    def _place(self, blob_id: int, part: int) -> Place:
        return Place(
            self._names.blob(blob_id, part),
            part_id(blob_id, part),
            self._directory(blob_id + part),
            self._recipe.check_size,
            self._read_back,
        )
