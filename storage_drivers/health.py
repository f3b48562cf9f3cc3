"""Checks whether a store is still there, and whether its mount accepts writes."""

from __future__ import annotations

import os
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from sluice_s3.storage_drivers.errors import DriverError, StoreGone, StoreReplaced, map_errors
from sluice_s3.storage_drivers.fsutil import DIRECTORY_MODE, FILE_MODE, sync_directory, write_all
from sluice_s3.storage_drivers.identity import NAME, Identity, read_identity
from sluice_s3.storage_drivers.probing.probe import BLOCK, DIRECTORY


def check_store(root: Path, known: Identity, *, write: bool) -> None:
    """Check the identity of the store at `root`; with `write`, also write a small file.

    The file is created, synced and removed. It blocks, and may hang. Raises StoreGone when that store is not there, or
    the error of the write.
    """
    try:
        found = read_identity(root)
    except DriverError as error:
        raise StoreGone(f"its identity cannot be read: {error}") from error
    check_identity(found, known)
    if write:
        with map_errors():
            _write(f"{root}/{DIRECTORY}")


def check_identity(found: Identity | None, known: Identity) -> None:
    """Raise StoreGone unless they are the same."""
    if found is None:
        raise StoreGone("there is no store: is the mount missing?")
    if found != known:
        raise StoreReplaced(f"it is store {found.store} generation {found.generation} now")


class CallTimes(NamedTuple):
    """How long two small calls took, in seconds."""

    read: float
    """To open the file of the identity and read it, not from this machine's page cache."""
    sync: float | None
    """To write 4 KiB and sync them; None where nothing was written."""
    refusal: DriverError | None
    """Why nothing could be written."""


def time_calls(root: Path) -> CallTimes:
    """Read and sync a few bytes in the store at `root`, and time it.

    It blocks, and may hang. Raises DriverError when the store cannot be read.
    """
    with map_errors():
        read = _time_read(f"{root}/{NAME}")
    try:
        with map_errors():
            return CallTimes(read, _write(f"{root}/{DIRECTORY}", bytes(BLOCK)), None)
    except DriverError as error:
        return CallTimes(read, None, error)


def _time_read(path: str) -> float:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(fd)
    started = time.perf_counter()
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.pread(fd, BLOCK, 0)
    finally:
        os.close(fd)
    return time.perf_counter() - started


def _write(directory: str, content: bytes = b"sluice\n") -> float:
    """Write, sync and remove a file; return how long the write and its sync took, in seconds."""
    try:
        os.mkdir(directory, DIRECTORY_MODE)
    except FileExistsError:
        pass
    path = f"{directory}/{secrets.token_hex(8)}-look"
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    try:
        started = time.perf_counter()
        try:
            write_all(fd, content)
            os.fsync(fd)
            spent = time.perf_counter() - started
        finally:
            os.close(fd)
        sync_directory(directory)
    finally:
        os.unlink(path)
    return spent
