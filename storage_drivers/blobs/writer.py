"""One file of a blob during its write, with its footer.

Every method runs in a thread of the driver's pool.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from sluice_s3.storage_drivers.base import BodySource, Buffer
from sluice_s3.storage_drivers.blobs.footer import ChunkChecks
from sluice_s3.storage_drivers.blobs.verify import verify_file
from sluice_s3.storage_drivers.errors import StoreFailed, map_errors
from sluice_s3.storage_drivers.fsutil import FILE_MODE, CoalescedFsync, write_all, write_buffers


@dataclass(frozen=True, slots=True)
class WriteTarget:
    """The file, and what to do once it is closed."""

    path: str
    part_id: int
    """The seed of its checks: `footer.part_id`."""
    directory: CoalescedFsync | None
    """Syncs of its directory; None: nothing is made durable."""
    check_size: bool = False
    read_back: bool = False


class BlobFileWriter:
    """Steps of writing one file: `begin`, `write` for each further piece, `finish`; or `write_whole`.

    `abandon` may be called at any time, also while a step runs in another thread: it waits for that step, and a later
    step does nothing.
    """

    __slots__ = (
        "_abandoned",
        "_at",
        "_checks",
        "_created",
        "_entry_synced",
        "_fd",
        "_lock",
        "_make_header",
        "_place",
        "_source",
        "_timings",
        "_wrote",
    )

    def __init__(
        self,
        place: WriteTarget,
        source: BodySource,
        make_header: Callable[[], bytes],
        timings: dict[str, float],
        at: Callable[[str], None],
        wrote: Callable[[int, int], None],
    ) -> None:
        """`wrote` is called before the close, with the whole file's descriptor and the body's bytes."""
        self._place = place
        self._checks = ChunkChecks(place.part_id)
        self._source = source
        self._make_header = make_header
        self._timings = timings
        self._at = at
        self._wrote = wrote
        self._lock = threading.Lock()
        self._fd = -1
        self._created = False
        self._entry_synced = False
        self._abandoned = False

    def create(self) -> None:
        """Create the file."""
        with self._lock, map_errors():
            if not self._abandoned:
                self._create()

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

    def sync_entry(self) -> None:
        """Make the created file's name durable, beside the other steps. A failure is final."""
        directory = self._place.directory
        if directory is not None and not self._abandoned:
            with map_errors():
                directory.sync()
            self._entry_synced = True
            self._at("put.directory_synced")

    def flush(self) -> None:
        """Start writeback of what is written, so that the end is soon durable.

        A failure is final.
        """
        with self._lock, map_errors():
            if not self._abandoned and self._place.directory is not None:
                started = perf_counter()
                os.fdatasync(self._fd)
                self._spent("sync", started)

    def finish(self, parts: int = 1, last: int = 0) -> None:
        """Verify, and make the file durable if required.

        `parts` and `last` are of the blob's shape, when this is the first of several parts. A failed sync or close is
        final.
        """
        with self._lock, map_errors():
            if not self._abandoned:
                self._finish(parts, last)

    def write_whole(self, piece: Buffer) -> None:
        """Do all steps for a body of one piece."""
        with self._lock, map_errors():
            if not self._abandoned:
                self._create()
                self._complete(piece)

    def abandon(self) -> None:
        """Remove what was written, as far as the mount allows: the sweep removes the rest."""
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
                    os.unlink(self._place.path)
            except OSError:
                pass

    def _create(self) -> None:
        started = perf_counter()
        self._fd = os.open(self._place.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
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

    def _complete(self, piece: Buffer) -> None:
        """Write a body of one piece with its footer, in one write, and finish."""
        started = perf_counter()
        if piece:
            self._source.digest(piece)
            self._checks.update(piece)
        self._source.verify()
        footer = self._checks.footer(self._make_header(), 1, 0)
        write_buffers(self._fd, [piece, footer], 0)
        self._spent("write", started)
        self._at("put.written")
        self._end(len(footer))

    def _finish(self, parts: int, last: int) -> None:
        self._source.verify()
        footer = self._checks.footer(self._make_header(), parts, last)
        write_all(self._fd, footer)
        self._end(len(footer))

    def _end(self, footer: int) -> None:
        """Make what was written durable, and close it."""
        started = perf_counter()
        directory = self._place.directory
        if directory is not None:
            os.fsync(self._fd)
            self._at("put.synced")
        self._wrote(self._fd, self._checks.size)
        fd, self._fd = self._fd, -1
        os.close(fd)
        self._at("put.closed")
        self._look_again(self._checks.size + footer)
        if directory is not None and not self._entry_synced:
            directory.sync()
            self._at("put.directory_synced")
        self._spent("sync", started)

    def _look_again(self, size: int) -> None:
        """Check the written file on a mount that is not trusted. Raises StoreFailed, BlobDamaged."""
        place = self._place
        if place.check_size:
            found = os.stat(place.path).st_size
            if found != size:
                raise StoreFailed(f"a file of {size} bytes has {found} after it was closed")
        if place.read_back:
            for _ in verify_file(place.path, place.part_id, "what was just written"):
                pass

    def _spent(self, phase: str, started: float) -> None:
        self._timings[phase] = self._timings.get(phase, 0.0) + perf_counter() - started
