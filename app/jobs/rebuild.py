"""Makes the index anew from the data alone: journals say what was decided, blobs what was written (DESIGN §4).

What a journal decided is restored. What was written and not decided is restored only if it carried no condition, was
not refused, and nothing decided for its key is as new; everything else is listed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from app.index.rebuilding import Claimed, Rebuilding
from app.index.rows import NewVersion
from app.store import decisions
from app.store.claims import PART, PUT
from app.store.decisions import CHANGES, END, SNAPSHOT, SUPPLEMENT, Heading
from storage_drivers import identity
from storage_drivers.base import Decision
from storage_drivers.contents import Blob, Contents, Damaged
from storage_drivers.errors import BlobDamaged, StoreFailed

BATCH = 5000
WORK = "rebuild-"
"""How the directories begin in which new indexes are made."""
SLACK_MS = 1000
"""A claim is made before its commit begins to wait, by less than this."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is, and of how much."""


@dataclass(slots=True)
class Report:
    """What rebuild found and made."""

    journals: int = 0
    decided_until: int = 0
    """Number of the commit sequence up to which all was written down."""
    decided_at: int = 0
    """Milliseconds: all that was committed before was written down."""
    files: int = 0
    records: int = 0
    unreadable_files: int = 0
    """Files that were being written when a process died, or are damaged: then what needs them is listed."""
    restored_claims: int = 0
    damage: list[str] = field(default_factory=list)
    """Journals and packs that cannot be read."""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Every journal was there and could be read."""
        return not self.damage and self.journals > 0


class _Journals:
    """Which records of which journals count."""

    def __init__(self, contents: Contents, report: Report) -> None:
        self._contents = contents
        self._report = report
        self.ids = contents.journals()
        report.journals = len(self.ids)
        self.base = 0
        self._snapshot = 0
        self._choose()

    def _choose(self) -> None:
        """Find the newest whole snapshot, and whether the changes behind it are all there."""
        changes: list[tuple[int, int, int]] = []
        for number in self.ids:
            damaged = parts = 0
            for record in self._contents.journal(number):
                found = _heading(record)
                if found is None or record is None:
                    damaged += 1
                elif found.kind == CHANGES and changes and changes[-1][1] == found.after:
                    changes[-1] = changes[-1][0], found.until, max(changes[-1][2], found.at)
                elif found.kind == CHANGES:
                    changes.append((found.after, found.until, found.at))
                elif found.kind == SNAPSHOT:
                    parts += 1
                elif found.kind == END and found.until >= self.base and not damaged and _counts(record, parts):
                    self.base, self._snapshot = found.until, number
                    self._report.decided_at = max(self._report.decided_at, found.at)
            if damaged:
                self._report.damage.append(f"journal {number:x}: {damaged} records are damaged")
        covered = self.base
        for after, until, at in sorted(changes):
            if until <= covered:
                continue
            if after > covered:
                self._report.damage.append(f"decisions {covered + 1} to {after} are missing")
            covered = until
            self._report.decided_at = max(self._report.decided_at, at)
        self._report.decided_until = covered

    def records(self) -> Iterator[tuple[Heading, dict[str, Any]]]:
        """Every record that counts."""
        for number in self.ids:
            for record in self._contents.journal(number):
                found = _heading(record)
                if record is None or found is None:
                    continue
                wanted = found.until > self.base if found.kind in (CHANGES, SUPPLEMENT) else number == self._snapshot
                if wanted:
                    yield found, decisions.fields(record)


def _counts(record: Decision, parts: int) -> bool:
    """Whether a snapshot that this record ends is whole."""
    return bool(decisions.fields(record).get("records") == parts)


def _heading(record: Decision | None) -> Heading | None:
    try:
        return None if record is None else decisions.heading(record)
    except ValueError:
        return None


class Rebuild:
    """One rebuilding of the index at `index_path` from the store at `root`: `run`, `lost`, then `install` or not.

    Raises StoreFailed when the store is in use or is none.
    """

    def __init__(self, root: Path, index_path: Path, *, commit_timeout: float, progress: Progress) -> None:
        self._root = root
        self._index_path = index_path
        self._commit_timeout = int(commit_timeout * 1000)
        self._progress = progress
        known = identity.read_identity(root)
        if known is None:
            raise StoreFailed("there is no store here")
        self._identity = identity.Identity(known.store, known.generation + 1)
        self._held = identity.hold(root, alone=True)
        index_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in index_path.parent.glob(f"{WORK}*"):  # by one that was killed: nobody else is at it
            shutil.rmtree(left, ignore_errors=True)
        self._work = Path(tempfile.mkdtemp(prefix=WORK, dir=index_path.parent))
        self._contents = Contents(root)
        self._made = Rebuilding(self._work / "sluice.db")

    def close(self) -> None:
        """Take away what was not installed."""
        self._made.close()
        shutil.rmtree(self._work, ignore_errors=True)
        if self._held is not None:
            os.close(self._held)

    def __enter__(self) -> Rebuild:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self) -> Report:
        """Read everything and make the new index."""
        report = Report()
        journals = _Journals(self._contents, report)
        self._replay(journals)
        horizon = report.decided_at - self._commit_timeout - SLACK_MS
        self._read_packs(report, horizon)
        self._read_files(report, horizon)
        self._restore_claims(report, journals)
        self._progress("making the index", 0, 0)
        self._made.make()
        report.counts = self._made.counts()
        rows = [(number, 0, self._contents.journal_size(number), 0, "default") for number in journals.ids]
        highest = max(self._made.highest(), report.decided_until, *journals.ids, 0)
        self._made.finish(*self._identity, highest, report.decided_until, rows)
        return report

    def lost(self, *, superseded: bool = False) -> Iterator[tuple[str, str, int, int, str]]:
        """What was not restored: (bucket, key, size, milliseconds, reason).

        With `superseded` the writes of the last moments for whose keys something as new was decided.
        """
        return self._made.lost(superseded=superseded)

    def install(self, *, replace: bool) -> Path | None:
        """Put the new index in its place; where the old one went if there was one (then `replace` must be true)."""
        self._made.close()
        old = move_aside(self._index_path) if replace or not self._index_path.exists() else None
        if self._index_path.exists():
            raise StoreFailed("there is an index")
        identity.raise_generation(self._root)
        os.rename(self._work / "sluice.db", self._index_path)
        descriptor = os.open(self._index_path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return old

    # journals
    def _replay(self, journals: _Journals) -> None:
        settings: tuple[int, dict[str, Any]] = (-1, {})
        for done, (heading, fields) in enumerate(journals.records(), 1):
            self._made.add_versions((row, self._blob(row[13])) for row in fields.get("versions", ()))
            self._replay_removals(fields.get("removals", ()))
            self._made.add_uploads(fields.get("uploads", ()))
            self._made.add_pieces((row, self._blob(row[4])) for row in fields.get("pieces", ()))
            if "settings" in fields and heading.until >= settings[0]:
                settings = heading.until, fields["settings"]
            self._progress("decisions", done, 0)
        self._made.set_settings(settings[1])

    def _replay_removals(self, rows: Any) -> None:
        self._made.add_removals((row[0], row[2], row[3], row[4]) for row in rows if row[1] == "object")
        blobs = (self._blob(row[3]) for row in rows if row[1] == "blob")
        self._made.add_voids(blob for blob in blobs if blob is not None)

    def _blob(self, body: str) -> int | None:
        """The id of the blob that a body is, None for one that is none."""
        try:
            return self._contents.blob_id(body) if body[:2] in ("f:", "p:") else None
        except BlobDamaged:
            return None

    # blobs
    def _read_packs(self, report: Report, horizon: int) -> None:
        found = self._contents.packs()
        for done, pack in enumerate(found):
            self._progress("packs", done, len(found))
            batch: list[Blob] = []
            try:
                for blob in self._contents.records(pack):
                    report.records += 1
                    batch.append(blob)
                    if len(batch) == BATCH:
                        self._take(batch, horizon)
            except BlobDamaged as error:  # not entered, so that nothing takes it for dead and away
                if self._contents.pack_size(pack)[1] > 0:  # else a process died when it had just made it
                    report.damage.append(str(error))
                continue
            self._take(batch, horizon)
            self._made.add_pack(pack, *self._contents.pack_size(pack))

    def _read_files(self, report: Report, horizon: int) -> None:
        batch: list[Blob] = []
        for found in self._contents.files():
            if isinstance(found, Damaged):
                report.unreadable_files += 1
                continue
            report.files += 1
            batch.append(found)
            if len(batch) == BATCH:
                self._take(batch, horizon)
                self._progress("files", report.files, 0)
        self._take(batch, horizon)

    def _take(self, batch: list[Blob], horizon: int) -> None:
        """Enter blobs and the claims that may be undecided; empties the batch."""
        rows: dict[str, tuple[int, str, int, int, int, bool]] = {}
        claims = []
        for blob in batch:
            claim = _claim(blob.claim)
            part = bool(claim) and claim[0] == PART
            rows[blob.locator] = (blob.blob_id, blob.locator, blob.size, blob.pack, blob.total, part)
            if claim and claim[0] == PUT and len(claim) == 5 + len(NewVersion._fields) and claim[1] >= horizon:
                _, at, bucket_id, key, conditional, *described = claim
                described_row = orjson.dumps(described).decode()
                claims.append((blob.blob_id, at, bucket_id, key, bool(conditional), described_row, blob.size))
        batch.clear()
        for blob_id, locator in self._made.add_blobs(list(rows.values())):
            # compaction was interrupted between writing a record anew and giving the old one up
            if not self._contents.intact(self._made.locator(blob_id)) and self._contents.intact(locator):
                self._made.replace_blob(rows[locator])
        self._made.add_claims(claims)

    def _restore_claims(self, report: Report, journals: _Journals) -> None:
        seq = max(self._made.highest(), report.decided_until, *journals.ids, 0)
        for claimed in self._made.undecided():
            new = _described(claimed)
            if new is None or not self._contents.intact(claimed.locator):
                self._made.refuse(claimed, "it is damaged, and what was decided is not known")
                continue
            seq += 1
            self._made.restore(claimed, seq, new)
            report.restored_claims += 1


def _claim(text: bytes) -> list[Any]:
    try:
        found = orjson.loads(text) if text else []
    except orjson.JSONDecodeError:
        return []
    return found if isinstance(found, list) and len(found) > 1 and isinstance(found[1], int) else []


def _described(claimed: Claimed) -> NewVersion | None:
    try:
        return NewVersion(*orjson.loads(claimed.fields))._replace(body=claimed.locator)
    except (ValueError, TypeError):
        return None


def move_aside(index_path: Path) -> Path | None:
    """Rename what there is of an index so that nothing takes it for the new one's; where its file went."""
    number = 1
    while (kept := index_path.with_name(f"{index_path.name}.before-rebuild-{number}")).exists():
        number += 1
    for suffix in ("-wal", "-shm", ""):
        part = index_path.with_name(index_path.name + suffix)
        if part.exists():
            os.rename(part, kept.with_name(kept.name + suffix))
    return kept if kept.exists() else None
