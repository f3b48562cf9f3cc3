"""Rebuild of the index from the data alone.

Journals record commits, blobs record writes. What a journal records is restored. A write without a journal record is
restored only if it was unconditional, was not refused, and no journaled change of its key is as new; everything else is
listed.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson

from sluice_s3.app.encryption.keyring import parse_ring_number
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.journals.rows import KEYRING
from sluice_s3.app.index.objects.rows import NULL_VERSION, NewVersion
from sluice_s3.app.index.tools.rebuild import IndexRebuild, RecoveredBlob
from sluice_s3.app.jobs.journals.rebuild_source import Journals, Report, label
from sluice_s3.app.private_files import sync_directory
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.offline import OfflineStore, blob_id
from sluice_s3.app.store.recovery_headers import MOVED, PART, parse_object
from sluice_s3.storage_drivers.errors import BlobDamaged, StoreFailed
from sluice_s3.storage_drivers.objects.offline_reader import Blob, Damaged

ROWS_PER_BATCH = 5000
WORK_PREFIX = "rebuild-"
"""Prefix of the directories in which new indexes are built."""
STORE_COLUMN, SOURCE_COLUMN, MOVED_COLUMN = map(Bucket._fields.index, ("store", "source", "moved"))

Progress = Callable[[str, int, int], None]
"""Called with the step, how much of it is done, and of how much."""
Settled = Callable[[int], int]
"""The drawn number from which recovery headers of a bucket, by its id, may lack a journal record."""


class Rebuild:
    """One rebuild of the index at `index_path` from all its stores.

    Call `run`, `find_lost`, then `install` or not. It closes the stores with itself.
    """

    def __init__(self, stores: Sequence[OfflineStore], index_path: Path, *, progress: Progress) -> None:
        self._stores = {store.name: store for store in stores}
        self._index_path = index_path
        self._progress = progress
        index_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in index_path.parent.glob(f"{WORK_PREFIX}*"):  # left by a killed process: no other rebuild runs
            shutil.rmtree(left, ignore_errors=True)
        self._work = Path(tempfile.mkdtemp(prefix=WORK_PREFIX, dir=index_path.parent))
        self._index = self._open_new(self._work / "sluice.db")
        self._journaled_elsewhere: dict[str, set[int]] = {}

    def _open_new(self, path: Path) -> IndexRebuild:
        return IndexRebuild(path)

    def close(self) -> None:
        """Remove what was not installed."""
        self._index.close()
        shutil.rmtree(self._work, ignore_errors=True)
        for store in self._stores.values():
            store.close()

    def __enter__(self) -> Rebuild:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self) -> Report:
        """Read everything and build the new index."""
        report = Report()
        journals = self._open_journals(report)
        settings = self._choose_settings(journals)
        self._index.set_settings(settings)
        self._journaled_elsewhere = _find_journaled_elsewhere(settings, journals)
        self._seed(journals, settings)
        self._replay(journals)
        store_of_bucket = {row[0]: row[STORE_COLUMN] for row in settings.get("buckets", ()) if len(row) > STORE_COLUMN}
        settled = {name: self._find_settled(journals, name, store_of_bucket) for name in self._stores}
        for name, store in self._stores.items():
            before = report.files + report.records
            self._read_packs(store, self._packs_to_read(store), report, settled[name])
            self._read_files(self._files_to_read(store), report, settled[name])
            if not journals[name].ids and report.files + report.records > before:
                report.damage.append(f"{label(store)}there are no journals")
        numbers = [number for found in journals.values() for number in found.ids]
        if any(set(found.ids) - set(found.store.journals()) for found in journals.values()):
            raise StoreFailed("the gateway replaced journals while they were read: run it again")
        self._follow_moves()
        self._read_rest(report, settled)
        self._restore_blobs(report, numbers)
        self._progress("making the index", 0, 0)
        self._index.build(whole=not report.damage)
        report.counts = self._index.counts()
        for name, store in self._stores.items():
            sizes = [(number, store.journal_size(number)) for number in journals[name].ids]
            identity = store.identity
            self._index.add_store(name, identity.store, identity.generation + 1, journals[name].decided_until, sizes)
        highest = max(self._index.find_highest(), report.decided_until, *numbers, self._last_drawn())
        self._index.finish(highest, self._stores)
        return report

    # steps that a recovery does in another way
    def _open_journals(self, report: Report) -> dict[str, Journals]:
        return {name: Journals(store, report) for name, store in self._stores.items()}

    def _choose_settings(self, journals: dict[str, Journals]) -> dict[str, Any]:
        """Return the last accounts, keys and buckets in the journals."""
        _, settings = max((found.settings for found in journals.values()), key=lambda entry: entry[0])
        ring = max((found.keyring for found in journals.values()), key=parse_ring_number)
        return {**settings, KEYRING: ring}

    def _seed(self, journals: dict[str, Journals], settings: dict[str, Any]) -> None:
        """Prepare the index before the journals are replayed. A rebuild begins with an empty one."""

    def _packs_to_read(self, store: OfflineStore) -> list[int]:
        return store.packs()

    def _files_to_read(self, store: OfflineStore) -> Iterator[Blob | Damaged]:
        return store.files()

    def _read_rest(self, report: Report, settled: dict[str, Settled]) -> None:
        """Read what was left out, if a row needs it. A rebuild leaves nothing out."""

    def _last_drawn(self) -> int:
        """Return the last number that is known to have been drawn."""
        return 0

    def find_lost(self, *, superseded: bool = False) -> Iterator[tuple[str, str, int, int, str]]:
        """Yield what was not restored: (bucket, key, size, milliseconds, reason).

        With `superseded`, also the last writes whose keys have a journaled change that is as new.
        """
        return self._index.find_lost(superseded=superseded)

    def install(self, *, replace: bool) -> Path | None:
        """Move the new index to its path; return where an old one was moved.

        An old one requires `replace`.
        """
        self._index.close()
        if self._index_path.exists() and not replace:
            raise StoreFailed("there is an index")
        for store in self._stores.values():  # first: an index without its log, which is moved before it, is refused
            store.raise_generation()
        old = move_aside(self._index_path)
        os.rename(self._work / "sluice.db", self._index_path)
        sync_directory(self._index_path.parent)
        return old

    def _find_settled(self, journals: dict[str, Journals], name: str, store_of_bucket: dict[int, str]) -> Settled:
        """Return from which number headers on a store may lack a journal record.

        A bucket that another store's journals describe follows those. What the own journals had settled by the numbers
        that those contain is settled too: a store that was idle until the bucket came may have settled little.
        """

        def of(bucket_id: int) -> int:
            if bucket_id not in elsewhere:
                return own.settled
            found = journals[store_of_bucket[bucket_id]]
            return max(found.settled, own.settled_by(found.decided_until))

        own, elsewhere = journals[name], self._journaled_elsewhere[name]
        return of

    # journals
    def _replay(self, journals: dict[str, Journals]) -> None:
        """Apply all records that count, in the order of all journals.

        The last record of a row wins.
        """
        numbers = [(number, found) for found in journals.values() for number in found.ids]
        replayed = 0
        for number, found in sorted(numbers, key=lambda entry: entry[0]):
            others = self._journaled_elsewhere[found.store.name]
            for fields in found.records(number):
                versions = [row for row in fields.get("versions", ()) if row[1] not in others]
                self._index.add_versions((row, blob_id(row[13])) for row in versions)
                self._replay_removals(fields.get("removals", ()))
                self._index.add_uploads(fields.get("uploads", ()))
                self._index.add_pieces((row, blob_id(row[4])) for row in fields.get("pieces", ()))
                replayed += 1
                self._progress("decisions", replayed, 0)

    def _replay_removals(self, rows: Any) -> None:
        # older journals describe no other versions
        deleted = ((row, row[6] if len(row) > 6 else NULL_VERSION) for row in rows if row[1] == "object")
        self._index.add_removals((row[0], *row[2:5], version_id) for row, version_id in deleted)
        blobs = (blob_id(row[3]) for row in rows if row[1] == "blob")
        self._index.add_voids(blob for blob in blobs if blob is not None)
        self._index.add_ended_writers(int(row[3]) for row in rows if row[1] == "writer")

    # blobs
    def _read_packs(self, store: OfflineStore, packs: Sequence[int], report: Report, settled: Settled) -> None:
        for position, pack in enumerate(packs):
            self._progress("packs", position, len(packs))
            batch: list[Blob] = []
            try:
                for blob in store.records(pack):
                    report.records += 1
                    batch.append(blob)
                    if len(batch) == ROWS_PER_BATCH:
                        self._add_blobs(batch, settled)
            except BlobDamaged as error:  # not added, so that it does not count as dead and is not removed
                if store.pack_size(pack)[1] > 0:  # else a process died just after creating it
                    report.damage.append(f"{label(store)}{error}")
                continue
            self._add_blobs(batch, settled)
            self._index.add_pack(pack, *store.pack_size(pack), store.name)

    def _read_files(self, files: Iterable[Blob | Damaged], report: Report, settled: Settled) -> None:
        batch: list[Blob] = []
        for found in files:
            if isinstance(found, Damaged):
                report.unreadable_files += 1
                continue
            report.files += 1
            batch.append(found)
            if len(batch) == ROWS_PER_BATCH:
                self._add_blobs(batch, settled)
                self._progress("files", report.files, 0)
        self._add_blobs(batch, settled)

    def _add_blobs(self, batch: list[Blob], settled: Settled) -> None:
        """Enter blobs and the headers without a certain journal record; empties the batch."""
        rows: dict[str, tuple[int, str, int, int, int, bool]] = {}
        headers, aliases = [], []
        for blob in batch:
            header = _parse_header(blob.recovery_header)
            part = bool(header) and header[0] == PART
            rows[blob.locator] = (blob.blob_id, blob.locator, blob.size, blob.pack, blob.total, part)
            if header and header[0] == MOVED and len(header) == 7 and isinstance(header[6], int):
                aliases.append((header[6], blob.blob_id))
            described = parse_object(header) if header else None
            if described is not None and described[0].drawn >= settled(described[0].bucket_id):
                headers.append((blob.blob_id, *described[0], orjson.dumps(described[1]).decode(), blob.size))
        batch.clear()
        for known_blob, locator in self._index.add_blobs(list(rows.values())):
            # Compaction stopped between copying a record and releasing the old one.
            if not self._is_intact(self._index.locator(known_blob)) and self._is_intact(locator):
                self._index.replace_blob(rows[locator])
        self._index.add_headers(headers)
        self._index.add_aliases(aliases)

    def _follow_moves(self) -> None:
        """Let rows reference copies of blobs that are gone from their old store.

        Rows change without a journal record when a bucket moves. An old record may be there in part: its pages may be a
        hole, and an older index trusts it.
        """
        for number, blob in enumerate(self._index.find_gone(), 1):
            if (copy := self._choose_copy(blob)) is not None:
                self._index.use_copy(blob, copy)
            self._progress("moved blobs", number, 0)

    def _choose_copy(self, blob: int) -> int | None:
        """Return the copy to use in place of a blob, None for the blob itself."""
        locator = self._index.locator(blob)
        if locator and self._is_intact(locator):
            return None
        copies = self._index.copies(blob)
        if not locator and len(copies) == 1:
            return copies[0]
        intact = (copy for copy in copies if self._is_intact(self._index.locator(copy)))
        return next(intact, None if locator or not copies else copies[0])

    def _is_intact(self, locator: str) -> bool:
        return self._stores[store_of_locator(locator)].intact(locator)

    def _restore_blobs(self, report: Report, journals: list[int]) -> None:
        seq = max(self._index.find_highest(), report.decided_until, *journals, 0)
        for blob in self._index.find_restorable():
            new = _parse_version(blob)
            if new is None or not self._is_intact(blob.locator):
                self._index.refuse(blob, "it is damaged, and what was decided is not known")
                continue
            seq += 1
            self._index.restore(blob, seq, new)
            report.restored_claims += 1


def _find_journaled_elsewhere(settings: dict[str, Any], journals: dict[str, Journals]) -> dict[str, set[int]]:
    """Return by store the buckets that other stores' journals describe completely.

    The journals of both stores describe a bucket that moves, until its target has a whole snapshot that began later.
    From then on only the target's journals count, since deletes are not written to others.
    """
    found: dict[str, set[int]] = defaultdict(set)
    for row in settings.get("buckets", ()):
        if len(row) <= MOVED_COLUMN:
            continue
        own = journals.get(row[STORE_COLUMN])
        if own is None:
            continue
        journaling = {own.store.name}
        if own.snapshot < row[MOVED_COLUMN]:
            journaling.add(row[SOURCE_COLUMN])
        for name in journals.keys() - journaling:
            found[name].add(row[0])
    return found


def _parse_header(text: bytes) -> list[Any]:
    try:
        found = orjson.loads(text) if text else []
    except orjson.JSONDecodeError:
        return []
    return found if isinstance(found, list) and len(found) > 1 and isinstance(found[1], int) else []


def _parse_version(blob: RecoveredBlob) -> NewVersion | None:
    try:
        return NewVersion(*orjson.loads(blob.fields))._replace(body=blob.locator)
    except (ValueError, TypeError):
        return None


def move_aside(index_path: Path) -> Path | None:
    """Rename an existing index, so that it is not mistaken for the new one.

    Returns its new path.
    """
    number = 1
    while (aside := index_path.with_name(f"{index_path.name}.before-rebuild-{number}")).exists():
        number += 1
    for suffix in ("-wal", "-shm", ""):
        part = index_path.with_name(index_path.name + suffix)
        if part.exists():
            os.rename(part, aside.with_name(aside.name + suffix))
    return aside if aside.exists() else None
