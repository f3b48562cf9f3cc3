"""Scratch files of a probe: every call is timed, and everything is removed afterwards."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

from sluice_s3.storage_drivers.fsutil import DIRECTORY_MODE, FILE_MODE, write_all

P = ParamSpec("P")
T = TypeVar("T")

Outcome = tuple[bool, str]
"""Of a trial: whether the mount can do it, and what was seen."""
CONTENT = bytes(range(256)) * 260 + b"end"
"""66,563 bytes: neither a whole number of pages nor of common transfer sizes."""
MAX_ATTEMPTS = 20
"""Checks of a scratch directory for being empty before it is removed.

FUSE and NFS rename an unlinked file until its last descriptor is closed, and a little longer.
"""
PAUSE_SECONDS = 0.05
"""Seconds between them."""


class Progress:
    """The current step on a mount and its start, for callers that must not hang."""

    __slots__ = ("doing", "since")

    def __init__(self) -> None:
        self.doing = ""
        self.since = time.monotonic()

    def step(self, doing: str) -> None:
        """Note the begin of a step."""
        self.doing = doing
        self.since = time.monotonic()


class Scratch:
    """Files whose names begin with a random number, in an existing directory."""

    def __init__(self, directory: str, progress: Progress | None = None) -> None:
        self.directory = directory
        self.progress = progress or Progress()
        self.times: dict[str, list[float]] = {}
        """Durations of every call in seconds, by the name of the call."""
        self._prefix = secrets.token_hex(8)
        self._files: dict[str, None] = {}
        self._directories: list[str] = []

    def path(self, name: str) -> str:
        """Return the path of a file of ours, which is removed in the end."""
        path = f"{self.directory}/{self._prefix}-{name}"
        self._files[path] = None
        return path

    def timed(self, call: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call, and note the call's duration under its name unless it fails."""
        self.progress.step(call)
        started = time.perf_counter()
        result = function(*args, **kwargs)
        self.times.setdefault(call, []).append(time.perf_counter() - started)
        return result

    def create(self, path: str) -> int:
        """Create a file and return its descriptor, for reading and writing. Raises OSError."""
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC
        return self.timed("create", os.open, path, flags, FILE_MODE)

    def write(self, path: str, content: bytes) -> None:
        """Create a file with this content. Raises OSError."""
        fd = self.create(path)
        try:
            self.timed("write", write_all, fd, content)
        finally:
            self.timed("close", os.close, fd)

    def read(self, path: str) -> bytes:
        """Return the content of a file, up to 1 MiB. Raises OSError."""
        fd = self.timed("open", os.open, path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return self.timed("read", os.pread, fd, 1 << 20, 0)
        finally:
            os.close(fd)

    def make_directory(self, name: str) -> str:
        """Create a directory, which is removed in the end. Raises OSError."""
        path = f"{self.directory}/{self._prefix}-{name}"
        self.timed("mkdir", os.mkdir, path, DIRECTORY_MODE)
        self._directories.append(path)
        return path

    def inside(self, directory: str, name: str) -> str:
        """Return the path of a file in such a directory, also removed in the end."""
        path = f"{directory}/{name}"
        self._files[path] = None
        return path

    def clear(self) -> None:
        """Remove every file and directory of ours, as far as the mount allows."""
        for path in self._files:
            try:
                self.timed("unlink", os.unlink, path)
            except OSError:
                pass
        for path in reversed(self._directories):
            _remove_when_empty(path)


@contextmanager
def scratch_directory(parent: str, progress: Progress | None = None) -> Iterator[Scratch]:
    """Provide a scratch in a temporary directory under `parent`. Raises OSError."""
    directory = f"{parent}/sluice-probe-{secrets.token_hex(8)}"
    scratch = Scratch(directory, progress)
    scratch.progress.step("mkdir")
    os.mkdir(directory, DIRECTORY_MODE)
    try:
        yield scratch
    finally:
        scratch.clear()
        _remove_when_empty(directory)


def _remove_when_empty(path: str) -> None:
    """Remove a directory of ours once it is empty: some mounts remove full ones (zdbfs)."""
    for _ in range(MAX_ATTEMPTS):
        try:
            if not os.listdir(path):
                os.rmdir(path)
                return
        except FileNotFoundError:
            return
        except OSError:
            pass
        time.sleep(PAUSE_SECONDS)
