"""Opening and finding the files of a tree. Every method blocks and raises DriverError."""

from __future__ import annotations

import stat

from storage_drivers.base import FileSlice
from storage_drivers.tree import base, paths
from storage_drivers.tree.base import UNKNOWN, FileChanged, FileGone, Stamp, Unreadable, stamp_of
from storage_drivers.tree.directories import Directories
from storage_drivers.tree.opening import open_regular, status_of


class Reading:
    """Of one store."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories

    def open(self, locator: str, offset: int, length: int) -> FileSlice:
        """What a locator says, of which at most `length` bytes at `offset`.

        Raises FileChanged, FileGone, Unreadable.
        """
        path, stamp = base.parse(locator)
        way = paths.checked(path)
        with self._directories.root() as root:
            try:
                found = open_regular(root, way)
            except OSError as error:
                self._directories.raise_unless_absent(error, root, way)
                raise FileGone(locator) from error
        if found is None:
            raise FileGone(f"{locator}: no regular file")
        opened_slice = FileSlice(found[0], offset, max(0, min(length, stamp.size - offset)))
        now = stamp_of(found[1], self._directories.traits.inodes)
        if now != stamp:
            opened_slice.release()
            raise FileChanged(now)
        return opened_slice

    def find_any(self, path: str) -> Stamp | None:
        """`find`, but UNKNOWN where it cannot be looked: that must not stop a look at many."""
        try:
            return self.find(path)
        except Unreadable:
            return UNKNOWN

    def find(self, path: str) -> Stamp | None:
        """The stamp of the regular file at exactly this path. Raises Unreadable."""
        way = paths.checked(path)
        with self._directories.root() as root:
            try:
                status = status_of(root, way)
            except OSError as error:
                self._directories.raise_unless_absent(error, root, way)
                return None
            if not stat.S_ISREG(status.st_mode) or not self._directories.is_exact(root, way):
                return None
        return stamp_of(status, self._directories.traits.inodes)
