"""The directory of backups.

    BACKUPS/backup.lock            one backup at a time
    BACKUPS/snapshots/TIME/        one backup: manifest.db, index.db, keys/
    BACKUPS/data/UUID.N/XX/NAME    files that backups share, written once: UUID and generation N of their store

A backup under way is TIME.partial; a rename makes it whole. Files in `data` are written beside and renamed, so that a
name there always has its whole content.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sluice_s3.app.errors import DataDamaged, Overloaded, StoreUnavailable
from sluice_s3.app.index.tools.manifest import Manifest
from sluice_s3.app.private_files import sync_directory

SNAPSHOTS, DATA, LOCK = "snapshots", "data", "backup.lock"
PARTIAL, NEW = ".partial", ".new"
MANIFEST, INDEX, KEYS = "manifest.db", "index.db", "keys"
TIME = "%Y%m%dT%H%M%SZ"


class BackupDirectory:
    """The directory of backups at `root`. Raises OSError."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def make(self) -> None:
        """Create it, if it is missing: for its owner alone.

        Raises StoreUnavailable for a directory with something else in it.
        """
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        strange = {path.name for path in self.root.iterdir()} - {SNAPSHOTS, DATA, LOCK, "lost+found"}
        if strange and not (self.root / SNAPSHOTS).exists():
            raise StoreUnavailable(reason=f"{self.root} is no directory of backups: there is {sorted(strange)[0]!r}")
        for name in (SNAPSHOTS, DATA):
            (self.root / name).mkdir(mode=0o700, exist_ok=True)

    @contextmanager
    def locked(self, *, alone: bool) -> Iterator[None]:
        """Lock it, against another backup (`alone`) or against its removal of old ones. Raises Overloaded."""
        try:
            descriptor = os.open(self.root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            if alone:
                raise
            yield  # a read-only copy, in which nothing is removed
            return
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise Overloaded(reason="a backup into this directory runs, or it is read just now") from None
        except OSError:
            pass  # a mount without locks
        try:
            yield
        finally:
            os.close(descriptor)

    def snapshots(self) -> list[str]:
        """Return the names of all whole backups, oldest first."""
        try:
            names = os.listdir(self.root / SNAPSHOTS)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if not name.endswith(PARTIAL))

    def find(self, name: str | None) -> Path:
        """Return the directory of the backup of that name, else of the newest. Raises StoreUnavailable."""
        names = self.snapshots()
        if not names:
            raise StoreUnavailable(reason=f"there is no backup in {self.root}")
        if name is not None and name not in names:
            raise StoreUnavailable(reason=f"there is no backup {name} in {self.root}")
        return self.root / SNAPSHOTS / (name or names[-1])

    def begin(self) -> Path:
        """Return the empty directory of a new backup; removes what others left that did not end."""
        for left in (self.root / SNAPSHOTS).glob(f"*{PARTIAL}"):
            shutil.rmtree(left)
        names = set(self.snapshots())
        name = now = datetime.now(UTC).strftime(TIME)
        number = 1
        while name in names or (names and name < max(names)):  # two in one second, or a clock that was set back
            number += 1
            name = f"{max(now, max(names).partition('-')[0])}-{number:03}"
        path = self.root / SNAPSHOTS / f"{name}{PARTIAL}"
        path.mkdir(mode=0o700)
        return path

    def commit(self, partial: Path) -> str:
        """Make a backup whole, and durable; return its name."""
        for directory in (partial, partial / KEYS):
            if directory.exists():
                _sync_files(directory)
        whole = partial.with_name(partial.name.removesuffix(PARTIAL))
        os.rename(partial, whole)
        sync_directory(whole.parent)
        sync_directory(self.root)
        return whole.name

    def file(self, name: str) -> Path:
        """Return the path of a shared file."""
        return self.root / DATA / name

    def prune(self, keep: int) -> tuple[int, int, int]:
        """Remove all but the newest `keep` backups, and the files that only they need.

        Returns the number of backups and of files removed, and the bytes of these files.
        """
        names = self.snapshots()
        old = names[:-keep]
        for name in old:
            path = self.root / SNAPSHOTS / name
            os.rename(path, path.with_name(name + PARTIAL))  # before its files go: it is whole or it is none
            shutil.rmtree(path.with_name(name + PARTIAL))
        kept = [Manifest(self.root / SNAPSHOTS / name / MANIFEST) for name in self.snapshots()]
        files = size = 0
        try:
            for path in (self.root / DATA).glob("*/*/*"):
                if not any(manifest.has(str(path.relative_to(self.root / DATA))) for manifest in kept):
                    size += path.stat().st_size
                    path.unlink()
                    files += 1
        finally:
            for manifest in kept:
                manifest.close()
        return len(old), files, size

    @contextmanager
    def newest(self) -> Iterator[Manifest | None]:
        """Open the manifest of the newest backup, if there is one that is whole."""
        names = self.snapshots()
        try:
            manifest = Manifest(self.root / SNAPSHOTS / names[-1] / MANIFEST) if names else None
            if manifest is not None:
                manifest.check()
        except DataDamaged:
            manifest = None  # then what is there is read and compared
        try:
            yield manifest
        finally:
            if manifest is not None:
                manifest.close()


def _sync_files(directory: Path) -> None:
    for path in directory.iterdir():
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
    sync_directory(directory)
