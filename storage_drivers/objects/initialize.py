"""Initialization of a store: its directories, its identity, and the probe of its mount."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from sluice_s3.storage_drivers import fsutil, identity
from sluice_s3.storage_drivers.errors import StoreFailed, StoreUnfit, map_errors
from sluice_s3.storage_drivers.layout import DIRECTORIES, ObjectsLayout
from sluice_s3.storage_drivers.probing.probe import Probe, measure_store
from sluice_s3.storage_drivers.probing.scratch import Progress

LOST = (
    "directory data of the store is missing, though its identity is there: a mount of a bucket that keeps no empty "
    "directories has lost it (rclone needs --s3-directory-markers)"
)

NO_CALL = (errno.ENOSYS, errno.EOPNOTSUPP)
"""Errors of a FUSE mount that has no such operation, as squashfuse."""


class StoreInitializer:
    """Initializer of the store at `root`.

    `durable` says whether the store survives a power cut. Blocks; raises DriverError.
    """

    def __init__(self, root: Path, *, create: bool, durable: bool) -> None:
        self._root = root
        self._names = ObjectsLayout(root)
        self._create = create
        self._durable = durable
        self.progress = Progress()

    def run(self) -> tuple[identity.Identity, int | None, Probe]:
        """Return the store's identity, the descriptor of its lock, and the probe's result."""
        found = self._identity()
        lock_fd = identity.lock_store(self._root, alone=False)
        try:
            return found, lock_fd, measure_store(self._root, self.progress)
        except BaseException:
            if lock_fd is not None:
                os.close(lock_fd)
            raise

    def _identity(self) -> identity.Identity:
        found = identity.read_identity(self._root)
        with map_errors():
            if found is not None:
                self._find_directories()
                if self._make_journals() and self._durable:
                    fsutil.sync_directory(self._root)
                return found
            if not self._create:
                raise StoreFailed("there is no store here: is the mount missing?")
            self.progress.step("mkdir")
            try:
                self._make_directories()
            except OSError as error:
                if error.errno not in NO_CALL:
                    raise
                raise StoreUnfit("error", f"{self.progress.doing}: {error.strerror}: is it only for reading?") from None
        return identity.make_identity(self._root)

    def _find_directories(self) -> None:
        self.progress.step("readdir")
        try:
            listed = set(os.listdir(self._names.data))
        except FileNotFoundError:
            raise StoreFailed(LOST) from None
        for low in range(DIRECTORIES):
            # A listing may be incomplete, and checking each name takes a while on a remote mount.
            if f"{low:02x}" in listed:
                continue
            self.progress.step("stat")
            if not os.path.isdir(self._names.directory(low)):
                raise StoreFailed(f"directory data/{low:02x} of the store is missing")

    def _make_directories(self) -> None:
        """Create the directories; the next start repairs a crash in here.

        Blobs without an identity belong to another store.
        """
        self._root.mkdir(mode=fsutil.DIRECTORY_MODE, parents=True, exist_ok=True)
        os.makedirs(self._names.data, fsutil.DIRECTORY_MODE, exist_ok=True)
        for low in range(DIRECTORIES):
            self.progress.step("mkdir")
            try:
                os.mkdir(self._names.directory(low), fsutil.DIRECTORY_MODE)
            except FileExistsError:
                if os.listdir(self._names.directory(low)):
                    raise StoreFailed(f"there are files in data/{low:02x} but no {identity.NAME}") from None
        self._make_journals()
        if self._durable:
            self.progress.step("fsync directory")
            fsutil.sync_directory(self._names.data)
            fsutil.sync_directory(self._root)
            self._sync_way()

    def _make_journals(self) -> bool:
        """Create the directory of the journals; return whether it was missing.

        A store of a version before 2026-11 lacks it.
        """
        try:
            os.mkdir(self._names.journals, fsutil.DIRECTORY_MODE)
        except FileExistsError:
            return False
        return True

    def _sync_way(self) -> None:
        """Sync the directories above the root, up to the mount's.

        This process or one before a crash created some of them.
        """
        root = self._root.resolve()
        device = root.stat().st_dev
        for above in root.parents:
            if above.stat().st_dev != device:
                return
            try:
                fsutil.sync_directory(above)
            except PermissionError:  # then its entries are not ours, and existed before
                return
