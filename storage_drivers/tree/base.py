"""What the layout *tree* speaks of: stamps, locators, and what can be found at a path instead of what was expected."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from typing import NamedTuple

from storage_drivers.errors import BlobMissing, DriverError, StoreFailed

PREFIX = "t:"
PRIVATE = ".sluice"
"""Of a tree store: the directory below its root where its objects-layout store and its temporary files are."""
REFUSED = frozenset({errno.EACCES, errno.EPERM, errno.EIO})
"""What is answered for one file or directory while the others can be read: it is closed to us, or rotten."""
LOCATOR = re.compile(r"t:([0-9a-f]+)\.(-?[0-9a-f]+)\.([0-9a-f]+):([^/]+/.+)", re.DOTALL)


class Stamp(NamedTuple):
    """What tells one content of a file from another, as far as a mount can: it survives a rename."""

    size: int
    mtime_ns: int
    inode: int
    """0 where the mount's inode numbers do not last."""

    def __str__(self) -> str:
        return f"{self.size:x}.{self.mtime_ns:x}.{self.inode:x}"


UNKNOWN = Stamp(-1, 0, 0)
"""In place of the stamp of what may be there and cannot be looked at."""


class Found(NamedTuple):
    """A file that a scan met."""

    key: str
    path: str
    stamp: Stamp


@dataclass(slots=True)
class Seen:
    """What a scan went by."""

    files: int = 0
    directories: int = 0
    not_files: int = 0
    """Links, pipes, sockets and devices, which are never opened."""
    not_keys: int = 0
    """Names that are no UTF-8, paths longer than a key may be, what a mount leaves of files in use."""
    unreadable: int = 0
    """Directories that cannot be read, and files that cannot be looked at."""


class FileChanged(DriverError):
    """There is another file at the path, or other content in it, than the locator says; `stamp` is what is there."""

    def __init__(self, stamp: Stamp) -> None:
        super().__init__(f"the file is now {stamp}")
        self.stamp = stamp


class FileGone(DriverError):
    """No regular file is at the path, though the store is mounted and the directory of the bucket is there."""


class Unreadable(StoreFailed):
    """A file, or a directory on the way to it, cannot be read; that says nothing of others."""


class Collision(DriverError):
    """The path cannot be this key's: something is in the way, or the mount takes no such name. Use the escaped one."""


def refused(error: OSError) -> Exception:
    """Unreadable for what is answered for a single file, else the error itself."""
    if error.errno in REFUSED:
        return Unreadable(os.strerror(error.errno or 0))
    return error


def locator(path: str, stamp: Stamp) -> str:
    """The text by which the index finds the content `stamp` at `path`, which is relative to the store's root."""
    return f"{PREFIX}{stamp}:{path}"


def parse(text: str) -> tuple[str, Stamp]:
    """The path and the stamp of a locator. Raises BlobMissing for what is none."""
    found = LOCATOR.fullmatch(text)
    if found is None:
        raise BlobMissing(f"{text!r} is no locator of a tree")
    size, mtime_ns, inode, path = found.groups()
    return path, Stamp(int(size, 16), int(mtime_ns, 16), int(inode, 16))


def stamp_of(status: os.stat_result, inodes: bool = True) -> Stamp:
    """The stamp of a file; without its inode number where these do not last."""
    return Stamp(status.st_size, status.st_mtime_ns, status.st_ino if inodes else 0)
