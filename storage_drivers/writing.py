"""One blob on its way into a file of its own, with its footer. Every method runs in a thread of the driver's pool."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from time import perf_counter

from storage_drivers.base import Buffer, Source
from storage_drivers.errors import map_errors
from storage_drivers.files import FILE_MODE, SharedSync, write_all
from storage_drivers.footer import ChunkChecks


class BlobFile:
    """Steps of writing one blob: `begin`, `write` for each further piece, `finish`; or `write_whole` for all at once.

    `abandon` may be called at any time, also while a step runs in another thread: it waits for that step, and a step
    that comes after it does nothing.
    """

    __slots__ = (
        "_abandoned",
        "_at",
        "_checks",
        "_claim",
        "_created",
        "_fd",
        "_lock",
        "_path",
        "_source",
        "_timings",
        "_wrote",
    )

    def __init__(
        self,
        path: str,
        blob_id: int,
        source: Source,
        claim: Callable[[], bytes],
        timings: dict[str, float],
        at: Callable[[str], None],
        wrote: Callable[[int, int], None],
    ) -> None:
        """`wrote` is called with the descriptor of the whole file, before it is closed, and the bytes of the body."""
        self._path = path
        self._checks = ChunkChecks(blob_id)
        self._source = source
        self._claim = claim
        self._timings = timings
        self._at = at
        self._wrote = wrote
        self._lock = threading.Lock()
        self._fd = -1
        self._created = False
        self._abandoned = False

    def begin(self, piece: Buffer) -> None:
        """Create the file and write its first piece."""
        with self._lock, map_errors():
            if not self._abandoned:
                self._create()
                self._write(piece)

    def write(self, piece: Buffer) -> None:
        """Write and hash the next piece."""
        with self._lock, map_errors():
            if not self._abandoned:
                self._write(piece)

    def finish(self, directory: SharedSync | None) -> None:
        """Verify, and make the blob durable when `directory` is given. Any failed sync or close is final."""
        with self._lock, map_errors():
            if not self._abandoned:
                self._finish(directory)

    def write_whole(self, piece: Buffer, directory: SharedSync | None) -> None:
        """All steps for a body of one piece."""
        with self._lock, map_errors():
            if not self._abandoned:
                self._create()
                if piece:
                    self._write(piece)
                self._finish(directory)

    def abandon(self) -> None:
        """Take away what was written, as far as the mount lets us: a rest is the sweep's."""
        with self._lock:
            self._abandoned = True
            try:
                if self._fd >= 0:
                    fd, self._fd = self._fd, -1
                    os.close(fd)
            except OSError:
                pass
            try:
                if self._created:
                    os.unlink(self._path)
            except OSError:
                pass

    def _create(self) -> None:
        started = perf_counter()
        self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
        self._created = True
        self._spent("open", started)
        self._at("put.created")

    def _write(self, piece: Buffer) -> None:
        started = perf_counter()
        self._source.digest(piece)
        self._checks.update(piece)
        write_all(self._fd, piece)
        self._spent("write", started)
        self._at("put.written")

    def _finish(self, directory: SharedSync | None) -> None:
        self._source.verify()
        started = perf_counter()
        write_all(self._fd, self._checks.footer(self._claim()))
        if directory is not None:
            os.fsync(self._fd)
            self._at("put.synced")
        self._wrote(self._fd, self._checks.size)
        fd, self._fd = self._fd, -1
        os.close(fd)
        self._at("put.closed")
        if directory is not None:
            directory.sync()
            self._at("put.directory_synced")
        self._spent("sync", started)

    def _spent(self, phase: str, started: float) -> None:
        self._timings[phase] = self._timings.get(phase, 0.0) + perf_counter() - started
