"""Which records of the journals of a store count when an index is made anew of them, and what is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from app.encryption.ring import number_of
from app.index.decisions import KEYRING
from app.index.schema import DEFAULT
from app.store import decisions
from app.store.decisions import CHANGES, END, SNAPSHOT, SUPPLEMENT, Heading
from app.store.offline import Offline
from storage_drivers.base import Decision

if TYPE_CHECKING:
    from app.jobs.rebuild import Report


class Journals:
    """Which records of which journals of one store count.

    Those are the newest whole snapshot and all changes behind it, and what there is of newer snapshots: of one that was
    being written everything else is there too, but one that is damaged has replaced what was before it.
    """

    def __init__(self, store: Offline, report: Report) -> None:
        self.store = store
        self._report = report
        self.ids = store.journals()
        report.journals += len(self.ids)
        self.base = 0
        self.snapshot = 0
        """The journal that is the newest whole snapshot."""
        self.decided_at = 0
        self.decided_until = 0
        self.settings: tuple[int, dict[str, Any]] = (-1, {})
        """The last that were written down, and when."""
        self.keyring = ""
        """The ring of the highest number: rings only grow, and the last settings of a store may be read before it."""
        self._choose()

    def _choose(self) -> None:
        """Find the newest whole snapshot, and whether the changes behind it are all there."""
        changes: list[tuple[int, int, int]] = []
        told = 0
        for number in self.ids:
            damaged = parts = 0
            for record in self.store.journal(number):
                found = _heading(record)
                if found is None or record is None:
                    damaged += 1
                    continue
                if found.kind in (CHANGES, END) or (found.kind == SNAPSHOT and not parts):
                    self._look_for_settings(found, record)
                if found.kind == CHANGES and changes and changes[-1][1] == found.after:
                    changes[-1] = changes[-1][0], found.until, max(changes[-1][2], found.at)
                elif found.kind == CHANGES:
                    changes.append((found.after, found.until, found.at))
                elif found.kind in (SNAPSHOT, END):
                    told = max(told, found.until)
                    self.decided_at = max(self.decided_at, found.at)
                if found.kind == SNAPSHOT:
                    parts += 1
                elif found.kind == END and found.until >= self.base and not damaged and _counts(record, parts):
                    self.base, self.snapshot = found.until, number
            if damaged:
                self._report.damage.append(f"{label(self.store)}journal {number:x}: {damaged} records are damaged")
        self._follow(changes, told)

    def _follow(self, changes: list[tuple[int, int, int]], told: int) -> None:
        """How far changes go on from the snapshot without a gap; `told` is how far any snapshot went."""
        covered = self.base
        for after, until, at in sorted(changes):
            if until <= covered:
                continue
            if after > covered:
                self._miss(covered, after)
            covered = until
            self.decided_at = max(self.decided_at, at)
        if told > covered:
            self._miss(covered, told)
            covered = told
        self.decided_until = covered
        self._report.decided_at = max(self._report.decided_at, self.decided_at)
        self._report.decided_until = max(self._report.decided_until, covered)

    def _miss(self, after: int, until: int) -> None:
        self._report.damage.append(f"{label(self.store)}decisions {after + 1} to {until} are missing")

    def _look_for_settings(self, found: Heading, record: Decision) -> None:
        settings = decisions.settings(record)
        if settings is None:
            return
        self.keyring = max(self.keyring, settings.get(KEYRING) or "", key=number_of)
        if found.until >= self.settings[0]:
            self.settings = found.until, settings

    def records(self, number: int) -> Iterator[dict[str, Any]]:
        """Every record of a journal that counts."""
        for record in self.store.journal(number):
            found = _heading(record)
            if record is None or found is None:
                continue
            if found.until > self.base if found.kind in (CHANGES, SUPPLEMENT) else number >= self.snapshot:
                yield decisions.fields(record)


def _counts(record: Decision, parts: int) -> bool:
    """Whether a snapshot that this record ends is whole."""
    return bool(decisions.fields(record).get("records") == parts)


def _heading(record: Decision | None) -> Heading | None:
    try:
        return None if record is None else decisions.heading(record)
    except ValueError:
        return None


def label(store: Offline) -> str:
    """How what is said of a store begins."""
    return "" if store.name == DEFAULT else f"store {store.name}: "
