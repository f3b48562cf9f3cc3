"""Opening and finding the files of a tree. Every method blocks and raises DriverError."""

from __future__ import annotations

import stat

from sluice_s3.storage_drivers.base import FileSlice
from sluice_s3.storage_drivers.tree import paths, types
from sluice_s3.storage_drivers.tree.directories import Directories
from sluice_s3.storage_drivers.tree.openat2 import open_regular, status_of
from sluice_s3.storage_drivers.tree.types import UNKNOWN, FileChanged, FileGone, Stamp, Unreadable, stamp_of


class PlainFileLookup:
    """Lookups of one store."""

    def __init__(self, directories: Directories) -> None:
        self._directories = directories

    def open(self, locator: str, offset: int, length: int) -> FileSlice:
        """Open the file of a locator, at most `length` bytes at `offset`.

        Raises FileChanged, FileGone, Unreadable.
        """
        path, stamp = types.parse(locator)
        encoded = paths.validated_key(path)
        with self._directories.root() as root:
            try:
                found = open_regular(root, encoded)
            except OSError as error:
                self._directories.raise_unless_absent(error, root, encoded)
                raise FileGone(locator) from error
        if found is None:
            raise FileGone(f"{locator}: no regular file")
        opened_slice = FileSlice(found[0], offset, max(0, min(length, stamp.size - offset)))
        current = stamp_of(found[1], self._directories.traits.inodes)
        if current != stamp:
            opened_slice.release()
            raise FileChanged(current)
        return opened_slice

    def find_any(self, path: str) -> Stamp | None:
        """Return the stamp of a file; UNKNOWN if unreadable, so that a scan goes on."""
        try:
            return self.find(path)
        except Unreadable:
            return UNKNOWN

    def find(self, path: str) -> Stamp | None:
        """Return the stamp of the regular file at exactly this path. Raises Unreadable."""
        encoded = paths.validated_key(path)
        with self._directories.root() as root:
            try:
                status = status_of(root, encoded)
            except OSError as error:
                self._directories.raise_unless_absent(error, root, encoded)
                return None
            if not stat.S_ISREG(status.st_mode) or not self._directories.is_exact(root, encoded):
                return None
        return stamp_of(status, self._directories.traits.inodes)
