"""Every answer to the clients of a trial, in one place."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from math import inf
from typing import NamedTuple

from tests.reliability.lab.checkers.histories import Kind, Operation, Outcome, Removal
from tests.reliability.lab.checkers.listings import Listing


class Finding(NamedTuple):
    """Something that must not be."""

    kind: str
    """lost, wrong or ghost."""
    text: str


class Due(NamedTuple):
    """An object that a lifecycle rule takes away, but not before a time of our clock."""

    made: float
    not_before: float


class Ledger:
    """Histories by `bucket/key`, of one trial. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.histories: dict[str, list[Operation]] = defaultdict(list)
        self.listings: list[tuple[str, Listing]] = []
        """With what all of their keys begin with."""
        self.removals: list[Removal] = []
        self.locked: dict[tuple[str, str], str] = {}
        """ETags of the versions that were acknowledged with a lock, by key and version."""
        self.due: dict[str, Due] = {}
        self.clocks_agree = True
        """Whether the gateways have our time. One with another gives an object a date by which it is due then."""
        self.findings: list[Finding] = []
        self.bodies: dict[str, bytes] = {}
        """All that was ever written, by ETag."""
        self.sources: dict[str, str] = {}
        """ETags of what is only copied."""
        self.answered = 0
        self.changes: list[float] = []
        """When each change was acknowledged."""
        self.cut_at = inf
        """From here on no client hears an answer: the power is being cut (`crash/ledger.py` says why)."""

    def enter(self, key: str, made: Operation) -> Operation:
        """Enter an operation; what was answered after the cut counts as not answered. Returns it as it is entered."""
        with self._lock:
            if made.outcome is Outcome.UNSENT:
                return made
            if made.ended >= self.cut_at:
                made = made._replace(outcome=Outcome.UNKNOWN, ended=inf, version="")
            self.histories[key].append(made)
            if not made.is_open:
                self.answered += 1
                if made.kind is not Kind.READ:
                    self.changes.append(made.ended)
            return made

    def enter_removal(self, made: Removal) -> None:
        """Enter the DELETE of one version."""
        with self._lock:
            if made.outcome is Outcome.UNSENT:
                return
            if made.ended >= self.cut_at:
                made = made._replace(outcome=Outcome.UNKNOWN)
            self.removals.append(made)
            if made.outcome is Outcome.DONE:
                self.changes.append(made.ended)

    def enter_lock(self, key: str, made: Operation) -> None:
        """Enter that a version was acknowledged with its lock."""
        with self._lock:
            self.locked[key, made.version] = made.value

    def enter_due(self, key: str, seconds: float, made: Operation) -> None:
        """Enter that an object is due so many seconds after its PUT began, by clocks that agree."""
        with self._lock:
            if self.clocks_agree:
                self.due[key] = Due(made.ended, made.begun + seconds)

    def enter_listing(self, prefix: str, listing: Listing) -> None:
        """Enter a LIST with all its pages."""
        with self._lock:
            if listing.ended < self.cut_at:
                self.listings.append((prefix, listing))

    def find(self, kind: str, text: str) -> None:
        """Enter a finding."""
        with self._lock:
            self.findings.append(Finding(kind, text))

    def cut(self) -> None:
        """The power is being cut."""
        with self._lock:
            self.cut_at = time.monotonic()

    def restore(self) -> None:
        """The power is back: answers count again."""
        with self._lock:
            self.cut_at = inf

    def forget(self, since: float) -> None:
        """What was answered from then on may have been undone, as the documentation says of a lost index."""
        with self._lock:
            for key, history in self.histories.items():
                self.histories[key] = [
                    made._replace(outcome=Outcome.UNKNOWN, ended=inf, version="") if made.ended >= since else made
                    for made in history
                    if made.kind is not Kind.READ or made.ended < since
                ]
            self.removals = [
                made._replace(outcome=Outcome.UNKNOWN) if made.ended >= since else made for made in self.removals
            ]
            self.listings = [one for one in self.listings if one[1].ended < since]
            self.due = {key: one for key, one in self.due.items() if one.made < since}

    def noncurrent(self, key: str) -> list[str]:
        """Versions of a key that surely are not its newest: another was begun after they were acknowledged."""
        with self._lock:
            known = [one for one in self.histories[key] if one.version]
            newest = max((one.begun for one in known), default=-inf)
            gone = {one.version for one in self.removals if one.key == key}
            return [one.version for one in known if one.ended < newest and one.version not in gone]
