"""Plain files (layout *tree*) in a restore: their paths, times and permissions, and the stamps that they get."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from sluice_s3.app.index.tools.manifest import BackedFile, Manifest
from sluice_s3.app.jobs.backup.copier import CHANGED
from sluice_s3.app.private_files import sync_directory
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.backup_files import PLAIN, needed_file, restamp
from sluice_s3.storage_drivers.fsutil import DIRECTORY_MODE
from sluice_s3.storage_drivers.probing.probe import DIRECTORY as PROBES
from sluice_s3.storage_drivers.probing.scratch import Progress
from sluice_s3.storage_drivers.tree.trials import try_mount
from sluice_s3.storage_drivers.tree.types import Stamp, stamp_of


class PlainFiles:
    """The plain files of all stores. `stamps` is a new manifest, which gets the stamp of each restored file."""

    def __init__(self, settings: Settings, stamps: Manifest) -> None:
        self._settings = settings
        self._stamps = stamps
        self._inodes: dict[str, bool] = {}
        self._made: set[Path] = set()

    def _root(self, store: str) -> Path:
        path = self._settings.named_stores[store].path
        assert path is not None
        return path

    def make_buckets(self, store: str, buckets: Iterable[str]) -> None:
        """Make the directories of a store's buckets, and see whether its mount keeps inode numbers."""
        if self._settings.named_stores[store].layout != "tree":
            return
        root = self._root(store)
        for bucket in buckets:
            (root / bucket).mkdir(exist_ok=True)
        self._made.add(root)
        probes = root / ".sluice" / PROBES
        probes.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        self._inodes[store] = try_mount(root, str(probes), Progress()).inodes

    def path(self, file: BackedFile) -> Path:
        """Return where to write a file; makes the directories on the way."""
        path = self._root(file.store) / file.path.removeprefix(PLAIN)
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            root = self._root(file.store)
            self._made.update({root, *(above for above in path.parents if above.is_relative_to(root))})
        return path

    def mode(self, path: Path) -> int:
        """Return the permissions of a new file: those of its directory."""
        return path.parent.stat().st_mode & 0o666

    def set_time(self, descriptor: int, stamp: str) -> None:
        """Give a file the time that it had."""
        if stamp != CHANGED:
            _, mtime_ns, _ = (int(number, 16) for number in stamp.split("."))
            os.utime(descriptor, ns=(mtime_ns, mtime_ns))

    def note(self, files: Iterable[BackedFile]) -> None:
        """Note the stamps of files that were restored."""
        noted = []
        for file in files:
            if file.stamp not in ("", CHANGED):
                status = self.path(file).lstat()
                noted.append(file._replace(stamp=f"{file.stamp} {stamp_of(status, self._inodes[file.store])}"))
        self._stamps.add(noted, [], [])

    def restamp(self, body: str) -> str:
        """Return the new body of a plain file's row; the old one if the file is not as the row describes it."""
        needed = needed_file(body)
        old, _, new = self._stamps.stamp(needed.store, needed.path).partition(" ")
        if not new or old != needed.stamp:
            return body
        return restamp(body, Stamp(*(int(number, 16) for number in new.split("."))))

    def sync(self) -> None:
        """Make the directory entries durable."""
        for directory in self._made:
            sync_directory(directory)
