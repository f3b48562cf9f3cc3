"""Selection of the journal records that count in a rebuild, and of what is missing."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from sluice_s3.app.encryption.keyring import parse_ring_number
from sluice_s3.app.index.journals.rows import KEYRING
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.store.journals import encoding
from sluice_s3.app.store.journals.encoding import CHANGES, END, SNAPSHOT, SUPPLEMENT, RecordHeader
from sluice_s3.app.store.offline import OfflineStore
from sluice_s3.storage_drivers.base import JournalRecord


@dataclass(slots=True)
class Report:
    """The findings and results of a rebuild."""

    journals: int = 0
    decided_until: int = 0
    """Number of the commit sequence up to which everything was journaled."""
    decided_at: int = 0
    """Milliseconds: all earlier commits were journaled; of several stores, the latest."""
    files: int = 0
    records: int = 0
    unreadable_files: int = 0
    """Files that are incomplete because a process died, or damaged; what needs them is listed."""
    restored_claims: int = 0
    damage: list[str] = field(default_factory=list)
    """Journals and packs that cannot be read."""
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether every journal exists and is readable."""
        return not self.damage and self.journals > 0


class Journals:
    """Selection of the records that count in one store's journals.

    They are the newest complete snapshot, all changes after it, and the existing parts of newer snapshots. An
    unfinished snapshot loses nothing, since everything else still exists; a damaged one has replaced what came before
    it. When an index exists up to the number `after` and with the journals `known_journals`, only newer records count:
    changes after that number, and snapshots in other journals. A known snapshot has rows as they were before.
    """

    def __init__(
        self, store: OfflineStore, report: Report, after: int = 0, known_journals: Collection[int] = ()
    ) -> None:
        self.store = store
        self._report = report
        self.ids = store.journals()
        report.journals += len(self.ids)
        self.base = after
        self._known = frozenset(known_journals)
        self._rows_from = max(known_journals, default=-1) + 1
        """The first journal whose snapshot rows count."""
        self.snapshot = 0
        """The journal of the newest complete snapshot."""
        self.decided_at = 0
        self.decided_until = 0
        self.settled = 0
        """Headers with a smaller drawn number count only with a journal record."""
        self._settled: list[tuple[int, int]] = []
        """All numbers that were settled, each with the number up to which everything was journaled then."""
        self.settings: tuple[int, dict[str, Any]] = (-1, {})
        """The last journaled settings, with their time."""
        self.keyring = ""
        """The ring with the highest number: rings only grow, and a store's last settings may be read before it."""
        self._find_snapshot()

    @property
    def has_new_snapshot(self) -> bool:
        """Whether the newest complete snapshot is in no known journal."""
        return self.snapshot not in {0, *self._known}

    def settled_by(self, until: int) -> int:
        """Return the number that was settled when everything up to `until` was journaled.

        All writes whose headers name a smaller one were committed, or refused for good, by then.
        """
        return max((settled for journaled, settled in self._settled if journaled <= until), default=0)

    def _find_snapshot(self) -> None:
        """Find the newest complete snapshot, and whether all changes after it exist."""
        changes: list[tuple[int, int, int]] = []
        snapshot_until = 0
        for number in self.ids:
            damaged = parts = 0
            for record in self.store.journal(number):
                header = _parse_header(record)
                if header is None or record is None:
                    damaged += 1
                    continue
                if header.kind in (CHANGES, END) or (header.kind == SNAPSHOT and not parts):
                    self._read_summary(header, record)
                if header.kind == CHANGES and changes and changes[-1][1] == header.after:
                    changes[-1] = changes[-1][0], header.until, max(changes[-1][2], header.at)
                elif header.kind == CHANGES:
                    changes.append((header.after, header.until, header.at))
                elif header.kind in (SNAPSHOT, END):
                    snapshot_until = max(snapshot_until, header.until)
                    self.decided_at = max(self.decided_at, header.at)
                if header.kind == SNAPSHOT:
                    parts += 1
                elif header.kind == END and not damaged and _is_complete(record, parts):
                    self.snapshot = number
                    if self.has_new_snapshot and header.until >= self.base:
                        self.base, self._rows_from = header.until, number
            if damaged:
                self._report.damage.append(f"{label(self.store)}journal {number:x}: {damaged} records are damaged")
        self._follow_changes(changes, snapshot_until)

    def _follow_changes(self, changes: list[tuple[int, int, int]], snapshot_until: int) -> None:
        """Find how far changes follow the snapshot without a gap.

        The argument is the highest number of any snapshot.
        """
        covered = self.base
        for after, until, at in sorted(changes):
            self.decided_at = max(self.decided_at, at)
            if until <= covered:
                continue
            if after > covered:
                self._report_gap(covered, after)
            covered = until
        if snapshot_until > covered:
            self._report_gap(covered, snapshot_until)
            covered = snapshot_until
        self.decided_until = covered
        self._report.decided_at = max(self._report.decided_at, self.decided_at)
        self._report.decided_until = max(self._report.decided_until, covered)

    def _report_gap(self, after: int, until: int) -> None:
        self._report.damage.append(f"{label(self.store)}decisions {after + 1} to {until} are missing")

    def _read_summary(self, header: RecordHeader, record: JournalRecord) -> None:
        settings, settled = encoding.parse_summary(record)
        self.settled = max(self.settled, settled)
        self._settled.append((header.until, settled))
        if settings is None:
            return
        self.keyring = max(self.keyring, settings.get(KEYRING) or "", key=parse_ring_number)
        if header.until >= self.settings[0]:
            self.settings = header.until, settings

    def records(self, number: int) -> Iterator[dict[str, Any]]:
        """Yield every record of a journal that counts."""
        for record in self.store.journal(number):
            header = _parse_header(record)
            if record is None or header is None:
                continue
            if header.until > self.base if header.kind in (CHANGES, SUPPLEMENT) else number >= self._rows_from:
                yield encoding.decode(record)


def _is_complete(record: JournalRecord, parts: int) -> bool:
    """Return whether the snapshot that this record ends is complete."""
    return bool(encoding.decode(record).get("records") == parts)


def _parse_header(record: JournalRecord | None) -> RecordHeader | None:
    try:
        return None if record is None else encoding.parse_header(record)
    except ValueError:
        return None


def label(store: OfflineStore) -> str:
    """Return the prefix of messages about a store."""
    return "" if store.name == DEFAULT else f"store {store.name}: "
