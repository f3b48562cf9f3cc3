"""Where a probe tries things out: files of its own, every call timed, everything it made taken away again."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from storage_drivers.files import DIRECTORY_MODE, FILE_MODE, write_all

P = ParamSpec("P")
T = TypeVar("T")

TRIES = 20
"""Times that the end looks whether its directory is empty. FUSE and NFS keep an unlinked file under another name until
its last descriptor is closed, and a little longer."""
PAUSE = 0.05
"""Seconds between them."""


class Progress:
    """What is being done on a mount and since when, for whoever waits for a mount that may hang."""

    __slots__ = ("doing", "since")

    def __init__(self) -> None:
        self.doing = ""
        self.since = time.monotonic()

    def step(self, doing: str) -> None:
        """Something begins."""
        self.doing = doing
        self.since = time.monotonic()


class Scratch:
    """Files whose names begin with a random number, in a directory that is there."""

    def __init__(self, directory: str, progress: Progress | None = None) -> None:
        self.directory = directory
        self.progress = progress or Progress()
        self.times: dict[str, list[float]] = {}
        """Seconds of every call, by the name of the call."""
        self._prefix = secrets.token_hex(8)
        self._files: dict[str, None] = {}
        self._directories: list[str] = []

    def path(self, name: str) -> str:
        """The path of a file of ours, which is taken away in the end."""
        path = f"{self.directory}/{self._prefix}-{name}"
        self._files[path] = None
        return path

    def timed(self, call: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call, and note under the name of the call how long it took unless it fails."""
        self.progress.step(call)
        started = time.perf_counter()
        result = function(*args, **kwargs)
        self.times.setdefault(call, []).append(time.perf_counter() - started)
        return result

    def create(self, path: str) -> int:
        """A descriptor of a new file, for reading and writing. Raises OSError."""
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        return self.timed("create", os.open, path, flags, FILE_MODE)

    def write(self, path: str, content: bytes) -> None:
        """A new file with this content. Raises OSError."""
        fd = self.create(path)
        try:
            self.timed("write", write_all, fd, content)
        finally:
            self.timed("close", os.close, fd)

    def read(self, path: str) -> bytes:
        """What a file holds, up to 1 MiB. Raises OSError."""
        fd = self.timed("open", os.open, path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return self.timed("read", os.pread, fd, 1 << 20, 0)
        finally:
            os.close(fd)

    def make_directory(self, name: str) -> str:
        """A directory of ours, which is taken away in the end. Raises OSError."""
        path = f"{self.directory}/{self._prefix}-{name}"
        self.timed("mkdir", os.mkdir, path, DIRECTORY_MODE)
        self._directories.append(path)
        return path

    def inside(self, directory: str, name: str) -> str:
        """The path of a file in such a directory, taken away in the end as well."""
        path = f"{directory}/{name}"
        self._files[path] = None
        return path

    def clear(self) -> None:
        """Take away every file and directory of ours, as far as the mount lets us."""
        for path in self._files:
            try:
                self.timed("unlink", os.unlink, path)
            except OSError:
                pass
        for path in reversed(self._directories):
            _remove_when_empty(path)


@contextmanager
def scratch_directory(parent: str, progress: Progress | None = None) -> Iterator[Scratch]:
    """A scratch in a new directory of its own under `parent`, which is gone at the end. Raises OSError."""
    directory = f"{parent}/sluice-probe-{secrets.token_hex(8)}"
    os.mkdir(directory, DIRECTORY_MODE)
    scratch = Scratch(directory, progress)
    try:
        yield scratch
    finally:
        scratch.clear()
        _remove_when_empty(directory)


def _remove_when_empty(path: str) -> None:
    """rmdir(2) of a directory that we made, once we saw it empty: some mounts would take away a full one (zdbfs)."""
    for _ in range(TRIES):
        try:
            if not os.listdir(path):
                os.rmdir(path)
                return
        except FileNotFoundError:
            return
        except OSError:
            pass
        time.sleep(PAUSE)
