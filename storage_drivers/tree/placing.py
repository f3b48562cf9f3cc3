"""Files coming to their place in a tree, and going from it. Every method blocks and raises DriverError."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable

from storage_drivers.errors import StoreFailed
from storage_drivers.tree import paths
from storage_drivers.tree.base import Collision, FileChanged, Stamp, stamp_of
from storage_drivers.tree.directories import IN_THE_WAY, NO_SUCH_NAME, Directories, collisions, set_mode
from storage_drivers.tree.opening import opened, rename_new, status_of

TRIES = 10
"""Times that a file is renamed into a directory that somebody removes meanwhile."""


class Placing:
    """Of one store. `staged` is the path of a file written aside, relative to the root; `at` the crash hook."""

    def __init__(self, directories: Directories, at: Callable[[str], None]) -> None:
        self._directories = directories
        self._at = at

    def unstage(self, staged: bytes) -> bool:
        """Take a file written aside away; False when there was none."""
        with self._directories.root() as root:
            try:
                os.unlink(staged, dir_fd=root)
            except FileNotFoundError:
                return False
        return True

    def is_staged(self, staged: bytes) -> bool:
        """Whether a file written aside is there; opened, since a mount may remember names that are gone."""
        with self._directories.root() as root:
            try:
                os.close(os.open(staged, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=root))
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ESTALE):
                    raise
                return False
        return True

    def is_taken(self, path: str) -> bool:
        """Whether something is in the way of a regular file at this path, or the mount takes no such path.

        Raises StoreFailed when the directory of the bucket is missing.
        """
        way = paths.checked(path)
        with self._directories.root() as root:
            try:
                if not stat.S_ISREG(status_of(root, way).st_mode):
                    return True
            except FileNotFoundError:
                self._directories.check_bucket(root, way)
            except OSError as error:
                if error.errno in IN_THE_WAY or error.errno in NO_SUCH_NAME:
                    return True
                raise
            return not self._directories.is_exact(root, way)

    def publish(self, staged: bytes, path: str) -> None:
        """Rename a file to its path, over what is there. Raises Collision."""
        way = paths.checked(path)
        try:
            with self._directories.root() as root:
                with collisions():
                    parent = self._renamed(root, staged, way)
                try:
                    self._at("publish.renamed")
                    self._directories.sync(parent)
                    self._at("publish.synced")
                finally:
                    os.close(parent)
        except Collision as error:
            if paths.is_escaped(path):
                raise StoreFailed(f"{error} at an escaped path") from error
            raise

    def _renamed(self, root: int, staged: bytes, way: bytes) -> int:
        """Rename; a descriptor of the directory in which the file now is."""
        for tries in range(TRIES):
            try:
                parent = self._directories.make_parent(root, way)
                try:
                    self._rename(root, staged, parent, way.rpartition(b"/")[2])
                except BaseException:
                    os.close(parent)
                    raise
            except FileNotFoundError:
                if tries == TRIES - 1:
                    raise
                self._directories.forget(way)  # a directory was empty and somebody took it away
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
            if _is_there(parent, name) and not self._directories.has_exactly(parent, name):
                raise Collision("the file of another key differs in case or form only")
        os.rename(staged, name, src_dir_fd=root, dst_dir_fd=parent)

    def sync(self, path: str) -> None:
        """Make a file that is at its path durable there."""
        way = paths.checked(path)
        with self._directories.root() as root:
            parent = self._directories.make_parent(root, way)
            try:
                self._directories.sync(parent)
            finally:
                os.close(parent)

    def remove(self, path: str, stamp: Stamp | None) -> bool:
        """Unlink the file at a path, and sync its directory in any case; False when there was none.

        Raises FileChanged, and leaves it, when it has another stamp than this one.
        """
        way = paths.checked(path)
        with self._directories.root() as root:
            try:
                parent = self._directories.parent(root, way)
            except OSError as error:
                self._directories.raise_unless_absent(error, root, way)
                return False
            try:
                gone = self._unlinked(root, parent, way, stamp)
                self._directories.sync(parent)  # also what another unlinked: that may not be durable yet
                self._at("remove.synced")
            finally:
                os.close(parent)
        return gone

    def _unlinked(self, root: int, parent: int, way: bytes, stamp: Stamp | None) -> bool:
        name = way.rpartition(b"/")[2]
        try:
            if stamp is not None:
                status = os.stat(name, dir_fd=parent, follow_symlinks=False)
                found = stamp_of(status, self._directories.traits.inodes)
                if stat.S_ISREG(status.st_mode) and found != stamp:
                    raise FileChanged(found)
            os.unlink(name, dir_fd=parent)
        except OSError as error:
            self._directories.raise_unless_absent(error, root, way)
            return False
        self._at("remove.unlinked")
        return True


def _is_there(directory: int, path: bytes) -> bool:
    try:
        os.stat(path, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
