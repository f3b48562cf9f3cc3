"""Checks whether a store is still there, and whether its mount accepts writes."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from sluice_s3.storage_drivers.errors import DriverError, StoreGone, StoreReplaced, map_errors
from sluice_s3.storage_drivers.fsutil import DIRECTORY_MODE, FILE_MODE, sync_directory, write_all
from sluice_s3.storage_drivers.identity import Identity, read_identity
from sluice_s3.storage_drivers.probing.probe import DIRECTORY


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


def _write(directory: str) -> None:
    try:
        os.mkdir(directory, DIRECTORY_MODE)
    except FileExistsError:
        pass
    path = f"{directory}/{secrets.token_hex(8)}-look"
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, FILE_MODE)
    try:
        try:
            write_all(fd, b"sluice\n")
            os.fsync(fd)
        finally:
            os.close(fd)
        sync_directory(directory)
    finally:
        os.unlink(path)
