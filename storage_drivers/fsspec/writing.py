"""One blob on its way to a remote place, with its footer.

Every method runs in a thread of the driver's pool.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter

from sluice_s3.storage_drivers.base import BodySource, Buffer
from sluice_s3.storage_drivers.blobs.footer import ChunkChecks
from sluice_s3.storage_drivers.fsspec.filesystem import NewObject


class RemoteBlob:
    """The steps of `storage_drivers.blobs.writer.BlobFileWriter`, for an object."""

    __slots__ = ("_abandoned", "_at", "_checks", "_lock", "_make_header", "_object", "_source", "_timings")

    def __init__(
        self,
        made: NewObject,
        blob_id: int,
        source: BodySource,
        make_header: Callable[[], bytes],
        timings: dict[str, float],
        at: Callable[[str], None],
    ) -> None:
        self._object = made
        self._checks = ChunkChecks(blob_id)
        self._source = source
        self._make_header = make_header
        self._timings = timings
        self._at = at
        self._lock = threading.Lock()
        self._abandoned = False

    def begin(self, piece: Buffer) -> None:
        """Create the object and write its first piece."""
        with self._lock:
            if not self._abandoned:
                self._create()
                self._write(piece)

    def write(self, piece: Buffer) -> None:
        """Write and hash the next piece."""
        with self._lock:
            if not self._abandoned:
                self._write(piece)

    def finish(self) -> None:
        """Verify, write the footer and close. A failed close is final."""
        with self._lock:
            if not self._abandoned:
                self._finish()

    def write_whole(self, piece: Buffer) -> None:
        """Do all steps for a body of one piece."""
        with self._lock:
            if self._abandoned:
                return
            # Hashed and refused before anything is written: the place may be far away.
            self._digest(piece)
            self._source.verify()
            self._create()
            started = perf_counter()
            self._object.write(b"".join((piece, self._checks.footer(self._make_header()))))
            self._spent("write", started)
            self._at("put.written")
            self._close()

    def abandon(self) -> None:
        """Remove what was written, after the current step; a later step does nothing."""
        with self._lock:
            self._abandoned = True
            self._object.abandon()

    def _create(self) -> None:
        started = perf_counter()
        self._object.open()
        self._spent("open", started)
        self._at("put.created")

    def _digest(self, piece: Buffer) -> None:
        started = perf_counter()
        if piece:
            self._source.digest(piece)
            self._checks.update(piece)
        self._spent("write", started)

    def _write(self, piece: Buffer) -> None:
        self._digest(piece)
        started = perf_counter()
        self._object.write(piece)
        self._spent("write", started)
        self._at("put.written")

    def _finish(self) -> None:
        self._source.verify()
        started = perf_counter()
        self._object.write(self._checks.footer(self._make_header()))
        self._spent("write", started)
        self._close()

    def _close(self) -> None:
        started = perf_counter()
        self._object.close()
        self._spent("sync", started)
        self._at("put.closed")

    def _spent(self, phase: str, started: float) -> None:
        self._timings[phase] = self._timings.get(phase, 0.0) + perf_counter() - started
