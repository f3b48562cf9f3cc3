"""A staged file of a tree: exactly the object's bytes.

Its steps run in a thread of the pool.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from time import perf_counter

from sluice_s3.storage_drivers.base import BodySource, Buffer, FileSlice, no_recovery_header
from sluice_s3.storage_drivers.blobs.writer import BlobFileWriter, WriteTarget
from sluice_s3.storage_drivers.errors import BlobDamaged, StoreFailed, map_errors
from sluice_s3.storage_drivers.fsutil import write_all
from sluice_s3.storage_drivers.tree.trials import Traits
from sluice_s3.storage_drivers.tree.types import Stamp, stamp_of

NO_COPY = frozenset({errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EBADF, errno.EIO})
"""Errors of copy_file_range(2) where it is unsupported; reading and writing then report the real error."""
MAX_COPY_BYTES = 64 << 20
"""Bytes of one copy_file_range(2)."""
PIECE_BYTES = 1 << 20
MARK_WINDOW_NS = 1_000_000
"""Nanoseconds of an mtime that do not state the time."""


class Unverified:
    """The source of pieces that were verified at their first write."""

    size: int | None = None

    async def read(self) -> Buffer:
        """Return empty bytes: there is nothing more."""
        return b""

    def digest(self, piece: Buffer) -> None:
        """Do nothing: no hash is needed."""

    def verify(self) -> None:
        """Do nothing: the pieces are verified."""


class StagedFile(BlobFileWriter):
    """A blob file without a footer, and with a stamp in the end."""

    __slots__ = ("_blob_id", "_full", "_traits", "_written", "stamp")

    def __init__(
        self,
        path: str,
        blob_id: int,
        source: BodySource,
        timings: dict[str, float],
        at: Callable[[str], None],
        full: bool,
        traits: Traits,
    ) -> None:
        super().__init__(
            WriteTarget(path, blob_id, None), source, no_recovery_header, timings, at, lambda _fd, _size: None
        )
        self._full = full
        self._traits = traits
        self._blob_id = blob_id
        self._written = 0
        self.stamp: Stamp | None = None

    def copy(self, piece: FileSlice) -> None:
        """Append the bytes of an open file, within the mount if possible.

        Raises BlobDamaged where the file ends.
        """
        with self._lock, map_errors():
            offset, left = piece.offset, piece.count
            while left and not self._abandoned:
                copied = self._copy_range(piece.fd, offset, min(left, MAX_COPY_BYTES))
                offset += copied
                left -= copied
                self._written += copied

    def _copy_range(self, fd: int, offset: int, count: int) -> int:
        started = perf_counter()
        try:
            copied = os.copy_file_range(fd, self._fd, count, offset)
        except OSError as error:
            if error.errno not in NO_COPY:
                raise
            copied = 0
        if not copied:
            piece = os.pread(fd, min(count, PIECE_BYTES), offset)
            if not piece:
                raise BlobDamaged(f"a file ends {count} bytes early")
            write_all(self._fd, piece)
            copied = len(piece)
        self._spent("write", started)
        return copied

    def _write(self, piece: Buffer) -> None:
        started = perf_counter()
        self._source.digest(piece)
        write_all(self._fd, piece)
        self._written += len(piece)
        self._spent("write", started)
        self._at("put.written")

    def _complete(self, piece: Buffer) -> None:
        if piece:
            self._write(piece)
        self._finish(1, 0)

    def _finish(self, parts: int, last: int) -> None:
        self._source.verify()
        started = perf_counter()
        self._mark()
        if self._full:
            os.fsync(self._fd)
            self._at("put.synced")
        fd, self._fd = self._fd, -1
        os.close(fd)
        self._at("put.closed")
        # Not before: some mounts set the time of a file when it is closed.
        stamp = stamp_of(os.stat(self._place.path, follow_symlinks=False), self._traits.inodes)
        if stamp.size != self._written:
            raise StoreFailed(f"a file has {stamp.size} bytes of {self._written} written")
        self.stamp = stamp
        self._spent("sync", started)

    def _mark(self) -> None:
        """Put the blob's id into the small digits of the mtime.

        Two bodies of the same size may be written within one tick of the mount's clock, and an inode number may be
        reused by then; their stamps must still differ.
        """
        step = self._traits.time_step
        if step:
            window = max(MARK_WINDOW_NS, 1000 * step)
            status = os.fstat(self._fd)
            marked = status.st_mtime_ns - status.st_mtime_ns % window + self._blob_id * step % window
            os.utime(self._fd, ns=(status.st_atime_ns, marked))
