"""Types of the layout *tree*: stamps, locators, and errors of paths."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import NamedTuple

from sluice_s3.storage_drivers.errors import BlobMissing, DriverError, StoreFailed

PREFIX = "t:"
PRIVATE = ".sluice"
"""Below the root of a tree store: the directory of its objects-layout store and its temporary files."""
UNREADABLE_ERRNOS = frozenset({errno.EACCES, errno.EPERM, errno.EIO})
"""Errors of one file or directory while the others are readable: no permission, or damage."""
LOCATOR = re.compile(r"t:([0-9a-f]+)\.(-?[0-9a-f]+)\.([0-9a-f]+):([^/]+/.+)", re.DOTALL)


class Stamp(NamedTuple):
    """The identity of a file's content, where a mount has one; it survives a rename."""

    size: int
    mtime_ns: int
    inode: int
    """0 if the mount's inode numbers do not last."""

    def __str__(self) -> str:
        return f"{self.size:x}.{self.mtime_ns:x}.{self.inode:x}"


UNKNOWN = Stamp(-1, 0, 0)
"""In place of the stamp of a possible file that cannot be checked."""


class ScannedFile(NamedTuple):
    """A file that a scan found."""

    key: str
    path: str
    stamp: Stamp


@dataclass(slots=True)
class SkippedCounts:
    """The counts of what a scan skipped."""

    files: int = 0
    directories: int = 0
    not_files: int = 0
    """Links, pipes, sockets and devices, which are never opened."""
    not_keys: int = 0
    """Names that are no UTF-8, paths longer than a key may be, silly renames of files in use."""
    unreadable: int = 0
    """Directories that cannot be read, and files that cannot be checked."""


class FileChanged(DriverError):
    """The file at the path has another stamp than the locator.

    `stamp` is the present one.
    """

    def __init__(self, stamp: Stamp) -> None:
        super().__init__(f"the file is now {stamp}")
        self.stamp = stamp


class FileGone(DriverError):
    """No regular file is at the path, in the existing directory of the bucket.

    The store is mounted.
    """


class Unreadable(StoreFailed):
    """A file, or a directory on its path, is unreadable; others may be readable."""


class Collision(DriverError):
    """The path cannot be this key's: use the escaped one.

    Something is in the way, or the mount refuses such a name.
    """


def refused(error: OSError) -> Exception:
    """Return Unreadable for errors of a single file, else the error itself."""
    if error.errno in UNREADABLE_ERRNOS:
        return Unreadable(os.strerror(error.errno or 0))
    return error


def locator(path: str, stamp: Stamp) -> str:
    """Return the locator of the content `stamp` at `path`.

    `path` is relative to the store's root.
    """
    return f"{PREFIX}{stamp}:{path}"


def parse(text: str) -> tuple[str, Stamp]:
    """Return path and stamp of a locator. Raises BlobMissing for any other text."""
    match = LOCATOR.fullmatch(text)
    if match is None:
        raise BlobMissing(f"{text!r} is no locator of a tree")
    size, mtime_ns, inode, path = match.groups()
    return path, Stamp(int(size, 16), int(mtime_ns, 16), int(inode, 16))


def stamp_of(status: os.stat_result, inodes: bool = True) -> Stamp:
    """Return the stamp of a file; without its inode number if these do not last."""
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino if inodes else 0)
