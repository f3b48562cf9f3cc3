"""A look whether a store is still where it was, and whether its mount takes writes."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from storage_drivers.errors import DriverError, StoreGone, StoreReplaced, map_errors
from storage_drivers.files import DIRECTORY_MODE, FILE_MODE, sync_directory, write_all
from storage_drivers.identity import Identity, read_identity
from storage_drivers.probing.probe import DIRECTORY


def look(root: Path, known: Identity, *, write: bool) -> None:
    """Read the identity of the store at `root`; with `write`, also make, sync and remove a small file there.

    Blocks, and may hang. Raises StoreGone when that store is not there, or what the mount says to the writing.
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
