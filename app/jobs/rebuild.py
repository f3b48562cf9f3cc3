"""Makes the index anew from the data alone: journals say what was decided, blobs what was written (DESIGN §4).

What a journal decided is restored. What was written and not decided is restored only if it carried no condition, was
not refused, and nothing decided for its key is as new; everything else is listed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from app.encryption.ring import number_of
from app.index.decisions import KEYRING
from app.index.rebuilding import Claimed, Rebuilding
from app.index.rows import NULL_VERSION, Bucket, NewVersion
from app.jobs.decisions import RETAINED_MS
from app.jobs.rebuild_journals import Journals, label
from app.store.claims import MOVED, PART, PUT
from app.store.offline import Offline, blob_id
from app.store.place import owner
from storage_drivers.errors import BlobDamaged, StoreFailed
from storage_drivers.objects.contents import Blob, Damaged

BATCH = 5000
WORK = "rebuild-"
"""How the directories begin in which new indexes are made."""
STORE_COLUMN, SOURCE_COLUMN, MOVED_COLUMN = map(Bucket._fields.index, ("store", "source", "moved"))
SLACK_MS = 1000
"""The claim of a record is made before its commit begins to wait, by less than this."""
SYNC_MS = 40_000
"""That of a file is made before it is synced, which may take so long: as far as removals are told for certain, see
`app.jobs.decisions.RETAINED_MS`."""

Progress = Callable[[str, int, int], None]
"""Told what is being done, how much of it is, and of how much."""
Horizon = Callable[[int], int]
"""Milliseconds since which claims of a bucket, given by its id, may be undecided."""


@dataclass(slots=True)
class Report:
    """What rebuild found and made."""

    journals: int = 0
    decided_until: int = 0
    """Number of the commit sequence up to which all was written down."""
    decided_at: int = 0
    """Milliseconds: all that was committed before was written down; of several stores, that of the last."""
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


class Rebuild:
    """One rebuilding of the index at `index_path` from all its stores: `run`, `lost`, then `install` or not.

    The stores are closed with it.
    """

    def __init__(
        self, stores: Sequence[Offline], index_path: Path, *, commit_timeout: float, progress: Progress
    ) -> None:
        self._stores = {store.name: store for store in stores}
        self._index_path = index_path
        self._commit_timeout = int(commit_timeout * 1000)
        self._progress = progress
        index_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in index_path.parent.glob(f"{WORK}*"):  # by one that was killed: nobody else is at it
            shutil.rmtree(left, ignore_errors=True)
        self._work = Path(tempfile.mkdtemp(prefix=WORK, dir=index_path.parent))
        self._made = Rebuilding(self._work / "sluice.db")
        self._elsewhere: dict[str, set[int]] = {}

    def close(self) -> None:
        """Take away what was not installed."""
        self._made.close()
        shutil.rmtree(self._work, ignore_errors=True)
        for store in self._stores.values():
            store.close()

    def __enter__(self) -> Rebuild:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self) -> Report:
        """Read everything and make the new index."""
        report = Report()
        journals = {name: Journals(store, report) for name, store in self._stores.items()}
        told = self._replay(journals)
        for name, store in self._stores.items():
            horizon = self._horizon(journals, name, told)
            before = report.files + report.records
            self._read_packs(store, report, horizon)
            self._read_files(store, report, horizon)
            if not journals[name].ids and report.files + report.records > before:
                report.damage.append(f"{label(store)}there are no journals")
        numbers = [number for found in journals.values() for number in found.ids]
        self._restore_claims(report, numbers)
        self._progress("making the index", 0, 0)
        self._made.make(whole=not report.damage)
        report.counts = self._made.counts()
        for name, store in self._stores.items():
            sizes = [(number, store.journal_size(number)) for number in journals[name].ids]
            known = store.identity
            self._made.add_store(name, known.store, known.generation + 1, journals[name].decided_until, sizes)
        self._made.finish(max(self._made.highest(), report.decided_until, *numbers, 0))
        return report

    def lost(self, *, superseded: bool = False) -> Iterator[tuple[str, str, int, int, str]]:
        """What was not restored: (bucket, key, size, milliseconds, reason).

        With `superseded` the writes of the last moments for whose keys something as new was decided.
        """
        return self._made.lost(superseded=superseded)

    def install(self, *, replace: bool) -> Path | None:
        """Put the new index in its place; where the old one went if there was one (then `replace` must be true)."""
        self._made.close()
        if self._index_path.exists() and not replace:
            raise StoreFailed("there is an index")
        for store in self._stores.values():  # first: an index that has lost its log, which goes before it, is refused
            store.raise_generation()
        old = move_aside(self._index_path)
        os.rename(self._work / "sluice.db", self._index_path)
        descriptor = os.open(self._index_path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return old

    def _horizon(self, journals: dict[str, Journals], name: str, told: dict[int, str]) -> Horizon:
        """When claims on a store may be undecided: that of a bucket of which another one's journals tell, by those."""

        def of(bucket_id: int) -> int:
            found = journals[told[bucket_id]] if bucket_id in elsewhere else own
            return found.decided_at - self._commit_timeout - SLACK_MS

        own, elsewhere = journals[name], self._elsewhere[name]
        return of

    # journals
    def _replay(self, journals: dict[str, Journals]) -> dict[int, str]:
        """Enter all that counts, in the order of the journals of all stores: of the same row the last one is right.

        The store of each bucket, as far as they tell.
        """
        _, settings = max((found.settings for found in journals.values()), key=lambda one: one[0])
        ring = max((found.keyring for found in journals.values()), key=number_of)
        self._made.set_settings({**settings, KEYRING: ring})
        self._elsewhere = elsewhere = _elsewhere(settings, journals)
        numbers = [(number, found) for found in journals.values() for number in found.ids]
        since = min(found.decided_at for found in journals.values()) - RETAINED_MS
        done = 0
        for number, found in sorted(numbers, key=lambda one: one[0]):
            others = elsewhere[found.store.name]
            for fields in found.records(number):
                versions = [row for row in fields.get("versions", ()) if row[1] not in others]
                self._made.add_versions((row, blob_id(row[13])) for row in versions)
                self._replay_removals(fields.get("removals", ()), since)
                self._made.add_uploads(fields.get("uploads", ()))
                self._made.add_pieces((row, blob_id(row[4])) for row in fields.get("pieces", ()))
                done += 1
                self._progress("decisions", done, 0)
        return {row[0]: row[STORE_COLUMN] for row in settings.get("buckets", ()) if len(row) > STORE_COLUMN}

    def _replay_removals(self, rows: Any, since: int) -> None:
        # older journals tell of no other versions
        deleted = ((row, row[6] if len(row) > 6 else NULL_VERSION) for row in rows if row[1] == "object")
        self._made.add_removals((row[0], *row[2:5], version_id) for row, version_id in deleted)
        blobs = (blob_id(row[3]) for row in rows if row[1] == "blob")
        self._made.add_voids(blob for blob in blobs if blob is not None)
        self._made.keep_removals(row for row in rows if row[4] >= since)

    # blobs
    def _read_packs(self, store: Offline, report: Report, horizon: Horizon) -> None:
        found = store.packs()
        for done, pack in enumerate(found):
            self._progress("packs", done, len(found))
            batch: list[Blob] = []
            try:
                for blob in store.records(pack):
                    report.records += 1
                    batch.append(blob)
                    if len(batch) == BATCH:
                        self._take(batch, horizon)
            except BlobDamaged as error:  # not entered, so that nothing takes it for dead and away
                if store.pack_size(pack)[1] > 0:  # else a process died when it had just made it
                    report.damage.append(f"{label(store)}{error}")
                continue
            self._take(batch, horizon)
            self._made.add_pack(pack, *store.pack_size(pack), store.name)

    def _read_files(self, store: Offline, report: Report, horizon: Horizon) -> None:
        batch: list[Blob] = []
        for found in store.files():
            if isinstance(found, Damaged):
                report.unreadable_files += 1
                continue
            report.files += 1
            batch.append(found)
            if len(batch) == BATCH:
                self._take(batch, horizon)
                self._progress("files", report.files, 0)
        self._take(batch, horizon)

    def _take(self, batch: list[Blob], horizon: Horizon) -> None:
        """Enter blobs and the claims that may be undecided; empties the batch."""
        rows: dict[str, tuple[int, str, int, int, int, bool]] = {}
        claims, aliases = [], []
        for blob in batch:
            claim = _claim(blob.claim)
            part = bool(claim) and claim[0] == PART
            rows[blob.locator] = (blob.blob_id, blob.locator, blob.size, blob.pack, blob.total, part)
            if claim and claim[0] == MOVED and len(claim) == 7 and isinstance(claim[6], int):
                aliases.append((claim[6], blob.blob_id))
            if claim and claim[0] == PUT and len(claim) == 5 + len(NewVersion._fields):
                _, at, bucket_id, key, conditional, *described = claim
                if at < horizon(bucket_id) - (0 if blob.pack else SYNC_MS):
                    continue
                described_row = orjson.dumps(described).decode()
                claims.append((blob.blob_id, at, bucket_id, key, bool(conditional), described_row, blob.size))
        batch.clear()
        for known, locator in self._made.add_blobs(list(rows.values())):
            # compaction was interrupted between writing a record anew and giving the old one up
            if not self._intact(self._made.locator(known)) and self._intact(locator):
                self._made.replace_blob(rows[locator])
        self._made.add_claims(claims)
        self._made.add_aliases(aliases)

    def _intact(self, locator: str) -> bool:
        return self._stores[owner(locator)].intact(locator)

    def _restore_claims(self, report: Report, journals: list[int]) -> None:
        seq = max(self._made.highest(), report.decided_until, *journals, 0)
        for claimed in self._made.undecided():
            new = _described(claimed)
            if new is None or not self._intact(claimed.locator):
                self._made.refuse(claimed, "it is damaged, and what was decided is not known")
                continue
            seq += 1
            self._made.restore(claimed, seq, new)
            report.restored_claims += 1


def _elsewhere(settings: dict[str, Any], journals: dict[str, Journals]) -> dict[str, set[int]]:
    """By store, the buckets of which other journals than its own tell all.

    A bucket that is being moved is told of by the journals of both stores, until those of its own have a whole snapshot
    that was begun later: from then on only those count, since others are not told what is deleted.
    """
    found: dict[str, set[int]] = defaultdict(set)
    for row in settings.get("buckets", ()):
        if len(row) <= MOVED_COLUMN:
            continue
        own = journals.get(row[STORE_COLUMN])
        if own is None:
            continue
        telling = {own.store.name}
        if own.snapshot < row[MOVED_COLUMN]:
            telling.add(row[SOURCE_COLUMN])
        for name in journals.keys() - telling:
            found[name].add(row[0])
    return found


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
