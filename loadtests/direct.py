"""The same operations with plain files on the path itself: what the disk costs without a gateway."""

from __future__ import annotations

import heapq
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

from loadtests.objects import MARK, NOT_OURS, TRIES, Done
from loadtests.payload import PIECE, pieces

_local = threading.local()


class DirectObjects:
    """One file an object under `root`. With `synced` a file and its name are durable before a put or delete is done,
    as they are when a gateway has answered; without, they are as the published measurements had them."""

    def __init__(self, root: Path, *, synced: bool) -> None:
        self._root = root
        self._synced = synced

    def put(self, key: str, size: int) -> Done:
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

    def get(self, key: str, size: int) -> Done:
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

    def stat(self, key: str) -> Done:
        return _timed(lambda: 0 * os.stat(self._root / key).st_size)

    def delete(self, key: str) -> Done:
        def work() -> int:
            os.unlink(self._root / key)
            if self._synced:
                self._sync_names(self._root / key)
            return 0

        return _timed(work)

    def list(self, prefix: str, after: str, count: int) -> Done:
        """Names of one directory in order, from the next after `after`."""

        def work() -> int:
            where = self._root / os.path.dirname(prefix)
            with os.scandir(where) as entries:
                last = os.path.basename(after)
                heapq.nsmallest(count, (entry.name for entry in entries if entry.name > last))
            return 0

        return _timed(work)

    def prepare(self) -> str:
        try:
            try:
                self._root.mkdir(parents=True)
                (self._root / MARK).touch()
            except FileExistsError:
                for _ in range(TRIES):
                    if (self._root / MARK).exists():
                        return ""
                    time.sleep(0.1)  # another process may just have made it
                return NOT_OURS.format(self._root)
        except OSError as error:
            return str(error)
        return ""

    def sweep(self) -> str:
        if not self._root.exists():
            return ""
        if not (self._root / MARK).exists():
            return NOT_OURS.format(self._root)
        try:
            shutil.rmtree(self._root)
        except OSError as error:
            return str(error)
        return ""

    def open(self) -> None:
        """There is nothing to connect to."""

    def close(self) -> None:
        """Nothing is held."""

    def _sync_names(self, path: Path) -> None:
        fd = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _timed(work: Callable[[], int]) -> Done:
    begun = time.perf_counter()
    try:
        moved = work()
    except OSError as error:
        return Done(time.perf_counter() - begun, status=0, error=f"{type(error).__name__}: {error.strerror}"[:300])
    took = time.perf_counter() - begun
    return Done(took, took, moved)
