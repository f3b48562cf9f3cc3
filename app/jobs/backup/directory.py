"""A directory of backups, with a file `backup.lock`: one backup at a time.

A backup under way is TIME.partial; a rename makes it whole. Files in `data` are written beside and renamed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice_s3.app.errors import DataDamaged, Overloaded, StoreUnavailable
from sluice_s3.app.index.tools.backup import ExportedIndex
from sluice_s3.app.index.tools.manifest import Manifest, Part
from sluice_s3.app.jobs.backup.copying import Copied, SourceFailed, copy_run, naming, open_source
from sluice_s3.app.jobs.backup.place import DATA, KEYS, LOCK, MANIFEST, PARTIAL, SNAPSHOTS, BackupPlace
from sluice_s3.app.private_files import sync_directory

NEW = ".new"
THREADS = 4


class BackupDirectory(BackupPlace):
    """The directory of backups at `root`."""

    threads = THREADS

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = str(root)
        self._made: set[Path] = set()
        self._lock = threading.Lock()

    def close(self) -> None:
        """Do nothing: everything is where it is."""

    def make(self, stores: Iterable[Path]) -> None:
        """Create it, if it is missing: for its owner alone. See `BackupPlace.make`."""
        for store in stores:
            if self.root.resolve().is_relative_to(store.resolve()):
                raise StoreUnavailable(reason=f"{self.root} lies in the store at {store} itself: choose another disk")
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        strange = {path.name for path in self.root.iterdir()} - {SNAPSHOTS, DATA, LOCK, "lost+found"}
        if strange and not (self.root / SNAPSHOTS).exists():
            raise StoreUnavailable(reason=f"{self.root} is no directory of backups: there is {sorted(strange)[0]!r}")
        for name in (SNAPSHOTS, DATA):
            (self.root / name).mkdir(mode=0o700, exist_ok=True)

    def require_apart(self, index: ExportedIndex) -> None:
        """Do nothing: `make` compared the paths."""

    @contextmanager
    def locked(self, *, alone: bool) -> Iterator[None]:
        """See `BackupPlace.locked`."""
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
        """See `BackupPlace.snapshots`."""
        try:
            names = os.listdir(self.root / SNAPSHOTS)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return sorted(name for name in names if not name.endswith(PARTIAL))

    def fetch(self, name: str) -> Path:
        """See `BackupPlace.fetch`."""
        return self.root / SNAPSHOTS / name

    def begin(self) -> Path:
        """Return the empty directory of a new backup; removes what others left that did not end."""
        for left in (self.root / SNAPSHOTS).glob(f"*{PARTIAL}"):
            shutil.rmtree(left)
        path = self.root / SNAPSHOTS / f"{self.next_name()}{PARTIAL}"
        path.mkdir(mode=0o700)
        return path

    def commit(self, partial: Path) -> str:
        """See `BackupPlace.commit`."""
        for directory in (partial, partial / KEYS):
            if directory.exists():
                _sync_files(directory)
        whole = partial.with_name(partial.name.removesuffix(PARTIAL))
        os.rename(partial, whole)
        sync_directory(whole.parent)
        sync_directory(self.root)
        return whole.name

    def has(self, part: Part) -> bool:
        """See `BackupPlace.has`."""
        try:
            return os.lstat(self._file(part.name)).st_size == part.size
        except FileNotFoundError:
            return False

    def put(self, name: str, source: int, start: int, size: int) -> tuple[str, bool]:
        """See `BackupPlace.put`. What a backup wrote that did not end is compared with its source."""
        target = self._file(name)
        try:
            found = self.read(name, None, None)
        except SourceFailed:
            found = None
        if found is not None and found.size == size and copy_run(source, start, size, None).hash == found.hash:
            return found.hash, False
        with self._lock:
            if target.parent not in self._made:
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._made.add(target.parent)
        return self._write(source, start, size, target).hash, True

    @staticmethod
    def _write(source: int, start: int, size: int, target: Path) -> Copied:
        new = target.with_name(target.name + NEW)
        written = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with naming(target):
                copied = copy_run(source, start, size, written)
                os.fsync(written)
        except BaseException:
            os.unlink(new)
            raise
        finally:
            os.close(written)
        os.replace(new, target)
        return copied

    def settle(self) -> None:
        """See `BackupPlace.settle`."""
        for made in self._made:
            sync_directory(made)
        for above in {path for made in self._made for path in (made.parent, made.parent.parent)}:
            sync_directory(above)

    def read(self, name: str, size: int | None, target: int | None) -> Copied:
        """See `BackupPlace.read`."""
        source = open_source(self._file(name))
        try:
            return copy_run(source, 0, size, target)
        finally:
            os.close(source)

    def _file(self, name: str) -> Path:
        return self.root / DATA / name

    def prune(self, keep: int) -> tuple[int, int, int]:
        """See `BackupPlace.prune`."""
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
        """See `BackupPlace.newest`."""
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
