"""Makes or checks what a store is before it does anything: its directories, its identity, and what its mount does."""

from __future__ import annotations

import os
from pathlib import Path

from storage_drivers import files, identity
from storage_drivers.errors import StoreFailed, map_errors
from storage_drivers.names import DIRECTORIES, Names
from storage_drivers.probing.probe import Probe, measure_store
from storage_drivers.probing.scratch import Progress


class Opening:
    """The store at `root`, of which `durable` says whether it survives a power cut. Blocks; raises DriverError."""

    def __init__(self, root: Path, *, create: bool, durable: bool) -> None:
        self._root = root
        self._names = Names(root)
        self._create = create
        self._durable = durable
        self.progress = Progress()

    def run(self) -> tuple[identity.Identity, int | None, Probe]:
        """Who the store is, a descriptor that says that it is in use, and what its mount does."""
        found = self._identity()
        held = identity.hold(self._root, alone=False)
        try:
            return found, held, measure_store(self._root, self.progress)
        except BaseException:
            if held is not None:
                os.close(held)
            raise

    def _identity(self) -> identity.Identity:
        found = identity.read_identity(self._root)
        with map_errors():
            if found is not None:
                self._find_directories()
                return found
            if not self._create:
                raise StoreFailed("there is no store here: is the mount missing?")
            self._make_directories()
        return identity.make_identity(self._root)

    def _find_directories(self) -> None:
        self.progress.step("readdir")
        listed = set(os.listdir(self._names.data))
        for low in range(DIRECTORIES):
            # a listing may leave some out, and on a mount far away each look of its own takes a while
            if f"{low:02x}" in listed:
                continue
            self.progress.step("stat")
            if not os.path.isdir(self._names.directory(low)):
                raise StoreFailed(f"directory data/{low:02x} of the store is missing")

    def _make_directories(self) -> None:
        """A crash in here is repaired by the next start; blobs without an identity are somebody's data."""
        self._root.mkdir(mode=files.DIRECTORY_MODE, parents=True, exist_ok=True)
        os.makedirs(self._names.data, files.DIRECTORY_MODE, exist_ok=True)
        for low in range(DIRECTORIES):
            self.progress.step("mkdir")
            try:
                os.mkdir(self._names.directory(low), files.DIRECTORY_MODE)
            except FileExistsError:
                if os.listdir(self._names.directory(low)):
                    raise StoreFailed(f"there are files in data/{low:02x} but no {identity.NAME}") from None
        if self._durable:
            self.progress.step("fsync directory")
            files.sync_directory(self._names.data)
            files.sync_directory(self._root)
            self._sync_way()

    def _sync_way(self) -> None:
        """The directories above the root, up to that of the mount: we made some of them, now or before a crash."""
        root = self._root.resolve()
        device = root.stat().st_dev
        for above in root.parents:
            if above.stat().st_dev != device:
                return
            try:
                files.sync_directory(above)
            except PermissionError:  # then what is in it is not ours to make, and was there before
                return
