"""Puts a backup into empty directories, as a new generation of its stores.

Until the end each store has a mark in place of its identity, with which nothing starts there. A restore that died is
run again: what it wrote is read and compared, and the rest is written.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.tools.backup import ExportedIndex, install, take_out
from sluice_s3.app.index.tools.manifest import BackedFile, Manifest, Part
from sluice_s3.app.jobs.backup.check import NOT_WRITTEN, Report, describe, note_missing, require_index
from sluice_s3.app.jobs.backup.copier import Progress
from sluice_s3.app.jobs.backup.copying import SourceFailed, copy_run, naming
from sluice_s3.app.jobs.backup.keys import restore_keys
from sluice_s3.app.jobs.backup.place import INDEX, KEYS, MANIFEST, BackupPlace
from sluice_s3.app.jobs.backup.plain_files import PlainFiles
from sluice_s3.app.private_files import sync_directory
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.backup_files import check_path
from sluice_s3.storage_drivers import identity
from sluice_s3.storage_drivers.fsutil import DIRECTORY_MODE, FILE_MODE
from sluice_s3.storage_drivers.identity import RESTORING, Identity
from sluice_s3.storage_drivers.layout import DIRECTORIES, ObjectsLayout

GENERATION_BITS = 30
"""Random bits of the next generation: two restores of one backup go on in different ways, and are not to be mixed."""
IGNORED = ("lost+found",)
WORK = "restore-work"


class Restore:
    """The restore of a backup, the newest by default, into the stores of these settings.

    Raises StoreUnavailable unless all of them, and the index, are empty or left by the same restore.
    """

    def __init__(self, settings: Settings, place: BackupPlace, name: str | None, progress: Progress) -> None:
        self._settings = settings
        self._place = place
        self._snapshot = place.find(name)
        self._progress = progress
        self._report = Report(self._snapshot.name)
        self.keys: list[str] = []
        """Names of the keys that were put beside the index."""
        with closing(Manifest(self._snapshot / MANIFEST)) as manifest:
            note_missing(manifest, self._report)
            require_index(self._snapshot, manifest)
            with ExportedIndex(self._snapshot / INDEX) as index:
                self.needs_master_key = bool(index.keyring)
                layouts = {name: manifest.get(f"layout:{name}") for name in index.identities}
                self._stores = self._targets(index, layouts)

    def _targets(self, index: ExportedIndex, layouts: dict[str, str]) -> dict[str, Identity]:
        """Return the new identities by store, those of an earlier attempt if there was one."""
        # a store without a layout is one that the gateway left, with nothing on it
        found = {name: old for name, old in index.identities.items() if layouts[name]}
        for name in sorted(found.keys() - self._settings.named_stores.keys()):
            raise StoreUnavailable(reason=f"the backup has the store {name!r}, which the settings do not name")
        chosen: dict[str, Identity] = {}
        for name, (uuid, _) in found.items():
            store = self._settings.named_stores[name]
            if store.directory is None or store.path is None or store.layout != layouts[name]:
                raise StoreUnavailable(reason=f"store {name} must be a directory of layout {layouts[name]!r}")
            left = identity.find_restored(store.directory)
            if left is not None and left[1] == self._snapshot.name and left[0].store == uuid:
                chosen[name] = left[0]
        resumed = bool(chosen)
        for name in found.keys() - chosen.keys():
            uuid, generation = found[name]
            # the earlier attempt may have died when some stores had their identity and others still the mark
            done = identity.read_identity(self._root(name)) if resumed else None
            if done is not None and done.store == uuid and done.generation > generation:
                chosen[name] = done
                continue
            path = self._settings.named_stores[name].path
            assert path is not None
            _require_empty(path, name)
            chosen[name] = Identity(uuid, generation + 1 + secrets.randbits(GENERATION_BITS))
        if self._settings.index_url is None and self._settings.index_path.exists() and not resumed:
            raise StoreUnavailable(reason=f"there is an index at {self._settings.index_path}")
        return chosen

    def run(self) -> Report:
        """Restore everything. Raises DomainError, DriverError, OSError."""
        with self._place.locked(alone=False):
            work = self._make_work()
            try:
                self._mark()
                with closing(Manifest(work / MANIFEST, create=True)) as stamps:
                    plain = PlainFiles(self._settings, stamps)
                    self._write_files(plain)
                    self._install_index(work / INDEX, plain)
            finally:
                shutil.rmtree(work, ignore_errors=True)
        if (self._snapshot / KEYS).is_dir():
            self.keys = restore_keys(self._snapshot / KEYS, self._settings.home)
        for name, new in self._stores.items():
            identity.replace_identity(self._root(name), new)
        return self._report

    def _root(self, store: str) -> Path:
        root = self._settings.named_stores[store].directory
        assert root is not None
        return root

    def _make_work(self) -> Path:
        settings = self._settings
        beside = settings.index_path.parent if settings.index_url is None else settings.run_dir
        work = beside / WORK
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(mode=0o700, parents=True)
        return work

    def _mark(self) -> None:
        """Mark the stores, and make their directories."""
        for name, new in self._stores.items():
            root = self._root(name)
            root.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            if identity.find_restored(root) is None:
                identity.replace_identity(root, new, RESTORING + self._snapshot.name)
            layout = ObjectsLayout(root)
            for directory in (layout.data, layout.journals, *map(layout.directory, range(DIRECTORIES))):
                os.makedirs(directory, DIRECTORY_MODE, exist_ok=True)

    def _write_files(self, plain: PlainFiles) -> None:
        with (
            closing(Manifest(self._snapshot / MANIFEST)) as manifest,
            ThreadPoolExecutor(self._place.threads) as threads,
        ):
            with ExportedIndex(self._snapshot / INDEX) as index:
                for name in self._stores:
                    plain.make_buckets(name, index.buckets_on(name))
            total = manifest.totals()[0]
            for page in manifest.pages():
                parts = [manifest.parts(file.store, file.path) for file in page]
                for faults in threads.map(self._write_file, page, parts, [plain] * len(page)):
                    self._report.damaged += faults
                plain.note(page)
                self._report.files += len(page)
                self._report.bytes += sum(part.size for some in parts for part in some)
                self._progress("files", self._report.files, total)
        plain.sync()
        for name in self._stores:
            layout = ObjectsLayout(self._root(name))
            for directory in (*map(layout.directory, range(DIRECTORIES)), layout.data):
                sync_directory(directory)
            sync_directory(self._root(name))

    def _write_file(self, file: BackedFile, parts: list[Part], plain: PlainFiles) -> list[tuple[str, str]]:
        """Write a file, unless it is there; return the damaged files of the backup, which are restored as they are."""
        if not parts:
            return []  # it was missing already
        check_path(file.path)
        path = plain.path(file) if file.stamp else self._root(file.store) / file.path
        if _is_restored(path, parts):
            return []
        faults = []
        mode = plain.mode(path) if file.stamp else FILE_MODE
        written = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
        try:
            for part in parts:
                try:
                    with naming(path):
                        intact = self._write_part(part, written)
                except SourceFailed as error:
                    faults.append((describe(part), str(error)))
                    break
                if not intact:
                    faults.append((describe(part), NOT_WRITTEN))
            if file.stamp:
                plain.set_time(written, file.stamp)
            with naming(path):
                os.fsync(written)
        finally:
            os.close(written)
        return faults

    def _write_part(self, part: Part, written: int) -> bool:
        return self._place.read(part.name, part.size, written).hash == part.hash

    def _install_index(self, copy: Path, plain: PlainFiles) -> None:
        self._progress("the index", 0, 0)
        take_out(self._snapshot / INDEX, copy)
        identities = {name: (new.store, new.generation) for name, new in self._stores.items()}
        with ExportedIndex(copy, write=True) as index:
            index.adopt(identities, plain.restamp)
        target = self._settings.index_path
        if self._settings.index_url is None:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        asyncio.run(install(copy, target, self._settings.index_url, identities))


def _require_empty(path: Path, store: str) -> None:
    try:
        found = [name for name in os.listdir(path) if name not in IGNORED and not _is_of_restore(path / name)]
    except FileNotFoundError:
        return
    if found:
        raise StoreUnavailable(
            reason=f"the directory of store {store} is not empty: there is {sorted(found)[0]!r}. A restore wants an "
            "empty or a new directory"
        )


def _is_of_restore(path: Path) -> bool:
    """Return whether a directory is that of an index which a restore made before it was refused or died."""
    return path.name == "index" and path.is_dir() and set(os.listdir(path)) <= {"run", WORK}


def _is_restored(path: Path, parts: list[Part]) -> bool:
    """Return whether a restore that did not end wrote this file."""
    try:
        if path.lstat().st_size != sum(part.size for part in parts):
            return False
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        return all(copy_run(descriptor, part.start, part.size, None).hash == part.hash for part in parts)
    finally:
        os.close(descriptor)
