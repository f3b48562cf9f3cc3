"""Copies of runs of bytes, with their hash. Every function blocks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from xxhash import xxh3_128

PIECE_BYTES = 1 << 20


class SourceFailed(Exception):
    """What is to be copied is missing, cut short, or cannot be read."""


class Copied(NamedTuple):
    """What was read."""

    size: int
    hash: str
    """XXH3-128 as hexadecimal digits."""


def copy_run(source: int, start: int, size: int | None, target: int | None) -> Copied:
    """Read `size` bytes at `start` of an open file, or all to its end, and append them to an open file.

    Without `target` it only reads. Raises SourceFailed when it cannot be read or ends before; OSError of the target.
    """
    hasher, done = xxh3_128(), 0
    while size is None or done < size:
        wanted = PIECE_BYTES if size is None else min(PIECE_BYTES, size - done)
        try:
            piece = os.pread(source, wanted, start + done)
        except OSError as error:
            raise SourceFailed(error.strerror) from error
        if not piece:
            if size is not None:
                raise SourceFailed(f"it ends {size - done} bytes early")
            break
        hasher.update(piece)
        done += len(piece)
        view = memoryview(piece)
        while target is not None and view:
            view = view[os.write(target, view) :]
    return Copied(done, hasher.hexdigest())


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put `path` into an OSError that names no file, as one of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = str(path)
        raise


def open_source(path: Path) -> int:
    """Return a descriptor of a file to read. Raises SourceFailed."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError as error:
        raise SourceFailed("it is missing" if isinstance(error, FileNotFoundError) else error.strerror) from error


def hash_file(path: Path) -> Copied:
    """Return size and hash of a file. Raises SourceFailed."""
    descriptor = open_source(path)
    try:
        return copy_run(descriptor, 0, None, None)
    finally:
        os.close(descriptor)
