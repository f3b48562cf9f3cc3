"""The storage operations on plain files: shows what the disk costs without a gateway."""

from __future__ import annotations

import heapq
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from sluice_s3.loadtests.clients.s3 import MAX_ATTEMPTS, NOT_OURS, OWNERSHIP_MARKER, OperationResult
from sluice_s3.loadtests.payload import PIECE, pieces

_local = threading.local()


class DirectObjects:
    """One file for each object under `root`.

    With `synced`, a put or delete returns once the file and its name are durable, as with a gateway's answer. Without
    it, the file is only closed, as in the published measurements.
    """

    def __init__(self, root: Path, *, synced: bool) -> None:
        self._root = root
        self._synced = synced

    def put(self, key: str, size: int) -> OperationResult:
        """See `StorageClient`."""
        path = self._root / key

        def work() -> int:
            try:
                fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o644)
            except FileNotFoundError:
                path.parent.mkdir(parents=True, exist_ok=True)
                fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o644)
            try:
                for piece in pieces(size):
                    while piece:
                        piece = piece[os.write(fd, piece) :]
                if self._synced:
                    os.fsync(fd)
            finally:
                os.close(fd)
            if self._synced:
                self._sync_names(path)
            return size

        return _timed(work)

    def get(self, key: str, size: int) -> OperationResult:
        """See `StorageClient`."""
        if not hasattr(_local, "buffer"):
            _local.buffer = bytearray(PIECE)
        begun = first = 0.0

        def work() -> int:
            nonlocal begun, first
            begun = time.perf_counter()
            fd = os.open(self._root / key, os.O_RDONLY | os.O_CLOEXEC)
            total = 0
            try:
                while count := os.readv(fd, [_local.buffer]):
                    first = first or time.perf_counter()
                    total += count
            finally:
                os.close(fd)
            return total

        done = _timed(work)
        if not done.error and done.bytes != size:
            done = done._replace(error=f"wrong length: {done.bytes} bytes instead of {size}")
        return done._replace(ttfb=first - begun) if first else done

    def stat(self, key: str) -> OperationResult:
        """See `StorageClient`."""
        return _timed(lambda: 0 * os.stat(self._root / key).st_size)

    def delete(self, key: str) -> OperationResult:
        """See `StorageClient`."""

        def work() -> int:
            os.unlink(self._root / key)
            if self._synced:
                self._sync_names(self._root / key)
            return 0

        return _timed(work)

    def list(self, prefix: str, after: str, count: int) -> OperationResult:
        """List the names of one directory in order, beginning after `after`."""

        def work() -> int:
            where = self._root / os.path.dirname(prefix)
            with os.scandir(where) as entries:
                last = os.path.basename(after)
                heapq.nsmallest(count, (entry.name for entry in entries if entry.name > last))
            return 0

        return _timed(work)

    def prepare(self) -> str:
        """See `StorageClient`."""
        try:
            try:
                self._root.mkdir(parents=True)
                (self._root / OWNERSHIP_MARKER).touch()
            except FileExistsError:
                for _ in range(MAX_ATTEMPTS):
                    if (self._root / OWNERSHIP_MARKER).exists():
                        return ""
                    time.sleep(0.1)  # another process may just have created it
                return NOT_OURS.format(self._root)
        except OSError as error:
            return str(error)
        return ""

    def sweep(self) -> str:
        """See `StorageClient`."""
        if not self._root.exists():
            return ""
        if not (self._root / OWNERSHIP_MARKER).exists():
            return NOT_OURS.format(self._root)
        try:
            shutil.rmtree(self._root)
        except OSError as error:
            return str(error)
        return ""

    def open(self) -> None:
        """Do nothing: there is no connection."""

    def close(self) -> None:
        """Do nothing: no resource is open."""

    def _sync_names(self, path: Path) -> None:
        fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _timed(work: Callable[[], int]) -> OperationResult:
    begun = time.perf_counter()
    try:
        moved = work()
    except OSError as error:
        return OperationResult(
            time.perf_counter() - begun, status=0, error=f"{type(error).__name__}: {error.strerror}"[:300]
        )
    took = time.perf_counter() - begun
    return OperationResult(took, took, moved)
