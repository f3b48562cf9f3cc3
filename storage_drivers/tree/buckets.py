"""The directories of buckets. Every function blocks and raises DriverError."""

from __future__ import annotations

import os

from sluice_s3.storage_drivers.tree.directories import BLOCKING_ERRNOS, Directories
from sluice_s3.storage_drivers.tree.openat2 import DIRECTORY, opened
from sluice_s3.storage_drivers.tree.scanner import directories_of
from sluice_s3.storage_drivers.tree.types import Collision


def make(directories: Directories, bucket: bytes) -> None:
    """Create the directory of a bucket; an existing one is no error.

    Raises Collision when something else is there.
    """
    try:
        with directories.root() as root:
            os.close(directories.make_parent(root, bucket + b"/-", new_bucket=True))
    except Collision as error:
        raise Collision(f"what is there is no directory of a bucket: {error}") from error


def remove(directories: Directories, bucket: bytes) -> bool:
    """Remove the empty directories of a bucket; return whether its own is gone."""
    with directories.root() as root:
        if not directories.traits.rmdir:
            return False
        for path in reversed(directories_of(directories, root, bucket)):
            _remove_empty(directories, root, path)
        directories.forget_bucket(bucket)
        try:
            os.stat(bucket, dir_fd=root, follow_symlinks=False)
        except FileNotFoundError:
            return True
    return False


def _remove_empty(directories: Directories, root: int, path: bytes) -> None:
    try:
        with opened(root, path, DIRECTORY) as fd, os.scandir(fd) as entries:
            if next(entries, None) is not None:
                return
        parent = directories.parent(root, path) if b"/" in path else os.open(b".", DIRECTORY, dir_fd=root)
        try:
            os.rmdir(path.rpartition(b"/")[2], dir_fd=parent)
            directories.sync(parent)
        finally:
            os.close(parent)
    except OSError as error:
        if not isinstance(error, FileNotFoundError) and error.errno not in BLOCKING_ERRNOS:
            raise
