"""Checks that a backup has everything its index references, and that every byte is as it was written."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from sluice_s3.app.errors import DataDamaged
from sluice_s3.app.index.tools.backup import ExportedIndex
from sluice_s3.app.index.tools.manifest import Manifest, Part
from sluice_s3.app.jobs.backup.copier import Progress
from sluice_s3.app.jobs.backup.copying import SourceFailed, hash_file
from sluice_s3.app.jobs.backup.place import DATA, INDEX, MANIFEST, SNAPSHOTS, BackupPlace
from sluice_s3.app.store.backup_files import needed_file

NOT_WRITTEN = "it is not what was written"


@dataclass
class Report:
    """What a check, or a restore, found."""

    backup: str
    files: int = 0
    bytes: int = 0
    damaged: list[tuple[str, str]] = field(default_factory=list)
    """Files of the backup, relative to its place, and what is wrong with each."""
    missing: list[tuple[str, str]] = field(default_factory=list)
    """Files of the stores that were missing or unreadable when the backup was made, and why."""

    @property
    def whole(self) -> bool:
        """Whether nothing is wrong."""
        return not self.damaged and not self.missing


def check(place: BackupPlace, name: str | None, progress: Progress) -> Report:
    """Read a whole backup, the newest by default. Raises DomainError, OSError."""
    with place.locked(alone=False):
        snapshot = place.find(name)
        report = Report(snapshot.name)
        with closing(Manifest(snapshot / MANIFEST)) as manifest:
            manifest.check()
            note_missing(manifest, report)
            _check_index(snapshot, manifest, report)
            checked: set[str] = set()
            with ThreadPoolExecutor(place.threads) as threads:
                total = manifest.totals()[0]
                for page in manifest.pages():
                    for file in page:
                        parts = manifest.parts(file.store, file.path)
                        report.files += 1
                        report.bytes += sum(part.size for part in parts)
                        new = [part for part in parts if part.name not in checked]
                        results = threads.map(lambda part: fault_of(place, part), new)
                        report.damaged += [fault for fault in results if fault is not None]
                    progress("files", report.files, total)
    return report


def note_missing(manifest: Manifest, report: Report) -> None:
    """Note what was missing already when the backup was made."""
    report.missing += [(f"{store}: {path}", reason) for store, path, reason in manifest.faults()]


def fault_of(place: BackupPlace, part: Part) -> tuple[str, str] | None:
    """Return the name of a damaged shared file and what is wrong with it."""
    try:
        found = place.read(part.name, None, None)
    except SourceFailed as error:
        return describe(part), str(error)
    return None if (found.size, found.hash) == (part.size, part.hash) else (describe(part), NOT_WRITTEN)


def describe(part: Part) -> str:
    """Return the name of a shared file, and of the file that it is a part of."""
    return f"{DATA}/{part.name} (of {part.store}: {part.path})"


def require_index(snapshot: Path, manifest: Manifest) -> None:
    """Raise DataDamaged unless the index of a backup is as it was written."""
    try:
        found = hash_file(snapshot / INDEX).hash
    except SourceFailed as error:
        raise DataDamaged(reason=f"the index of backup {snapshot.name}: {error}") from error
    if found != manifest.get("index"):
        raise DataDamaged(reason=f"the index of backup {snapshot.name}: {NOT_WRITTEN}")


def _check_index(snapshot: Path, manifest: Manifest, report: Report) -> None:
    """Check the index, and that the manifest has every file that it references."""
    name = f"{SNAPSHOTS}/{snapshot.name}/{INDEX}"
    try:
        require_index(snapshot, manifest)
        with ExportedIndex(snapshot / INDEX) as index:
            index.check()
    except DataDamaged as error:
        report.damaged.append((name, str(error.detail["reason"])))
        return
    with tempfile.TemporaryDirectory() as work, closing(Manifest(Path(work) / MANIFEST, create=True)) as needed:
        needed.plan(snapshot / INDEX, needed_file)
        known = {path for path, _ in report.missing}
        for page in needed.pages():
            for file in page:
                have = sum(part.size for part in manifest.parts(file.store, file.path))
                if f"{file.store}: {file.path}" in known or file.stamp:
                    continue
                if have < max(file.size, 1):
                    report.damaged.append((f"{SNAPSHOTS}/{snapshot.name}/{MANIFEST}", f"it lacks {file.path}"))
