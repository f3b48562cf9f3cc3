"""Publishing and removal of a tree's files. Every method blocks and raises DriverError."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from sluice_s3.storage_drivers.errors import StoreFailed
from sluice_s3.storage_drivers.tree import paths
from sluice_s3.storage_drivers.tree.directories import BLOCKING_ERRNOS, NO_SUCH_NAME, Directories, collisions, set_mode
from sluice_s3.storage_drivers.tree.openat2 import opened, rename_new, status_of
from sluice_s3.storage_drivers.tree.types import Collision, FileChanged, Stamp, stamp_of

MAX_ATTEMPTS = 10
"""Attempts to rename a file into a directory that another process removes meanwhile."""


class Publisher:
    """Publisher of one store.

    `staged` is the path of a staged file, relative to the root; `crash_hook` is called after each step.
    """

    def __init__(self, directories: Directories, crash_hook: Callable[[str], None]) -> None:
        self._directories = directories
        self._crash_hook = crash_hook

    def unstage(self, staged: bytes) -> bool:
        """Delete a staged file; return False when there was none."""
        with self._directories.root() as root:
            try:
                os.unlink(staged, dir_fd=root)
            except FileNotFoundError:
                return False
        return True

    def is_staged(self, staged: bytes) -> bool:
        """Return whether a staged file exists.

        It is opened, since a mount may cache names that are gone.
        """
        with self._directories.root() as root:
            try:
                os.close(os.open(staged, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root))
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ESTALE):
                    raise
                return False
        return True

    def is_taken(self, path: str) -> bool:
        """Return whether a path is blocked for a regular file, or impossible on the mount.

        Raises StoreFailed when the directory of the bucket is missing.
        """
        encoded = paths.validated_key(path)
        with self._directories.root() as root:
            try:
                if not stat.S_ISREG(status_of(root, encoded).st_mode):
                    return True
            except FileNotFoundError:
                self._directories.check_bucket(root, encoded)
            except OSError as error:
                if error.errno in BLOCKING_ERRNOS or error.errno in NO_SUCH_NAME:
                    return True
                raise
            return not self._directories.is_exact(root, encoded)

    def publish(self, staged: bytes, path: str) -> None:
        """Rename a file to its path, over what is there. Raises Collision."""
        encoded = paths.validated_key(path)
        try:
            with self._directories.root() as root:
                with collisions():
                    parent = self._rename_into_place(root, staged, encoded)
                try:
                    self._crash_hook("publish.renamed")
                    self._directories.sync(parent)
                    self._crash_hook("publish.synced")
                finally:
                    os.close(parent)
        except Collision as error:
            if paths.is_escaped(path):
                raise StoreFailed(f"{error} at an escaped path") from error
            raise

    def _rename_into_place(self, root: int, staged: bytes, encoded: bytes) -> int:
        """Rename; return a descriptor of the file's new directory."""
        for attempt in range(MAX_ATTEMPTS):
            try:
                parent = self._directories.make_parent(root, encoded)
                try:
                    self._rename(root, staged, parent, encoded.rpartition(b"/")[2])
                except BaseException:
                    os.close(parent)
                    raise
            except FileNotFoundError:
                if attempt == MAX_ATTEMPTS - 1:
                    raise
                self._directories.forget(encoded)  # another process removed an empty directory
            else:
                return parent
        raise AssertionError("unreachable")

    def _rename(self, root: int, staged: bytes, parent: int, name: bytes) -> None:
        mode = os.fstat(parent).st_mode & 0o666 | 0o600
        if mode != 0o600:
            with opened(root, staged, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC) as fd:
                set_mode(fd, mode)
        if self._directories.folds(parent) and not self._directories.has_exactly(parent, name):
            if self._directories.traits.claims:  # two twins may come at the same time
                try:
                    rename_new(root, staged, parent, name)
                except FileExistsError:
                    pass
                else:
                    return
            if _exists(parent, name) and not self._directories.has_exactly(parent, name):
                raise Collision("the file of another key differs in case or form only")
        os.rename(staged, name, src_dir_fd=root, dst_dir_fd=parent)

    def sync(self, path: str) -> None:
        """Make a file that is at its path durable there."""
        encoded = paths.validated_key(path)
        with self._directories.root() as root:
            parent = self._directories.make_parent(root, encoded)
            try:
                self._directories.sync(parent)
            finally:
                os.close(parent)

    def remove(self, path: str, stamp: Stamp | None) -> bool:
        """Unlink the file at a path; return False when there was none.

        The directory is synced in any case. Raises FileChanged, and leaves the file, when its stamp differs.
        """
        encoded = paths.validated_key(path)
        with self._directories.root() as root:
            try:
                parent = self._directories.parent(root, encoded)
            except OSError as error:
                self._directories.raise_unless_absent(error, root, encoded)
                return False
            try:
                removed = self._unlink(root, parent, encoded, stamp)
                self._directories.sync(parent)  # also another's unlink: it may not be durable yet
                self._crash_hook("remove.synced")
            finally:
                os.close(parent)
        return removed

    def _unlink(self, root: int, parent: int, encoded: bytes, stamp: Stamp | None) -> bool:
        name = encoded.rpartition(b"/")[2]
        try:
            if stamp is not None:
                status = os.stat(name, dir_fd=parent, follow_symlinks=False)
                current = stamp_of(status, self._directories.traits.inodes)
                if stat.S_ISREG(status.st_mode) and current != stamp:
                    raise FileChanged(current)
            os.unlink(name, dir_fd=parent)
        except OSError as error:
            self._directories.raise_unless_absent(error, root, encoded)
            return False
        self._crash_hook("remove.unlinked")
        return True


def _exists(directory: int, path: bytes) -> bool:
    try:
        os.stat(path, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
