"""Writes of blobs with files of their own."""

from __future__ import annotations

import functools
from collections.abc import Callable

from sluice_s3.storage_drivers.base import BodySource, Buffer, no_recovery_header
from sluice_s3.storage_drivers.blobs.footer import Shape, part_id, whole
from sluice_s3.storage_drivers.blobs.striping import StripedWrite, StripeSource, plan_stripes
from sluice_s3.storage_drivers.blobs.writer import BlobFileWriter, WriteTarget
from sluice_s3.storage_drivers.layout import FILE
from sluice_s3.storage_drivers.objects.common import ObjectsDriverBase
from sluice_s3.storage_drivers.streaming import StreamingWriteMixin


def nobody(_fd: int, _body: int) -> None:
    """Do nothing after a write, if reads are checked anyway.

    Another mount may report other times before and after close(2), and each stat costs a round trip.
    """


class WriteMixin(ObjectsDriverBase, StreamingWriteMixin):
    """The write methods of the driver."""

    _read_back: bool
    _large = 0
    """Bodies that are being written to several files, or might be."""

    async def put(
        self,
        blob_id: int,
        source: BodySource,
        timings: dict[str, float] | None = None,
        piece: Buffer | None = None,
        make_header: Callable[[], bytes] = no_recovery_header,
    ) -> str:
        """Write one blob, of one file or several."""
        if piece is None:
            piece = await source.read()
        spent = {} if timings is None else timings
        self._large += 1
        try:
            shape = plan_stripes(source.size, self._profile.parts // self._large)
            if shape is not None:
                await self._put_parts(blob_id, shape, source, piece, make_header, spent)
            else:
                await self._put_whole(blob_id, source, piece, make_header, spent)
        finally:
            self._large -= 1
        return f"{FILE}{blob_id:016x}"

    async def _put_whole(
        self, blob_id: int, source: BodySource, piece: Buffer, make_header: Callable[[], bytes], spent: dict[str, float]
    ) -> None:
        def wrote(fd: int, body: int) -> None:
            self._files.wrote(blob_id, whole(body), 0, fd, body)

        on_write = wrote if self._profile.descriptors else nobody
        blob = BlobFileWriter(self._place(blob_id, 0), source, make_header, spent, self._at, on_write)
        await self._stream(blob, source, piece)

    async def _put_parts(
        self,
        blob_id: int,
        shape: Shape,
        source: BodySource,
        piece: Buffer,
        make_header: Callable[[], bytes],
        spent: dict[str, float],
    ) -> None:
        phases: list[dict[str, float]] = [{} for _ in range(shape.parts)]
        files = [
            BlobFileWriter(
                self._place(blob_id, part),
                StripeSource(None if part else source.verify),
                no_recovery_header if part else make_header,
                phases[part],
                self._at,
                functools.partial(self._files.wrote, blob_id, shape, part) if self._profile.descriptors else nobody,
            )
            for part in range(shape.parts)
        ]
        await StripedWrite(self._run_in_thread, files, shape, source).run(piece)
        for phase in ("open", "write", "sync"):
            times = [part.get(phase, 0.0) for part in phases]
            spent[phase] = spent.get(phase, 0.0) + (sum(times) if phase == "write" else max(times))

    def _place(self, blob_id: int, part: int) -> WriteTarget:
        return WriteTarget(
            self._names.blob(blob_id, part),
            part_id(blob_id, part),
            self._directory(blob_id + part),
            self._profile.check_size,
            self._read_back,
        )
