"""The outcomes of records: each is reported once, even if a thread that has it hangs."""

from __future__ import annotations

import logging
import threading

from sluice_s3.storage_drivers.base import AppendRequest
from sluice_s3.storage_drivers.errors import DriverError, StoreFailed

logger = logging.getLogger("sluice.store")


class Outcomes:
    """The records that the threads of one writer have, and that have no outcome yet.

    After `abandon` the threads report nothing any more.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: set[AppendRequest] = set()
        """Entries whose outcome is not reported. Guarded by the lock, like `abandon_error`."""
        self.abandon_error: DriverError | None = None
        """The error that all of them have got; None: their threads report."""
        self.troubles = 0
        """The number of groups that failed by the mount."""

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, group: list[AppendRequest]) -> bool:
        """Take a group; if all was abandoned, fail it and return False."""
        with self._lock:
            if self.abandon_error is None:
                self._under_way.update(group)
                return True
        fail(group, StoreFailed("the store was given up"))
        return False

    def finish(self, entries: list[AppendRequest]) -> None:
        """Report that these entries are written."""
        if self._is_ours(entries):
            _tell(entries)

    def fail(self, entries: list[AppendRequest], error: Exception) -> None:
        """Report an error for these entries."""
        if isinstance(error, DriverError):
            self.troubles += 1
        if self._is_ours(entries):
            fail(entries, error)

    def abandon(self, error: DriverError) -> list[AppendRequest]:
        """Return all entries under way: from now on the caller must report their outcome."""
        with self._lock:
            self.abandon_error = error
            entries = list(self._under_way)
            self._under_way.clear()
        return entries

    def _is_ours(self, entries: list[AppendRequest]) -> bool:
        """Return whether the calling thread must report the entries' outcome."""
        with self._lock:
            self._under_way.difference_update(entries)
            return self.abandon_error is None


def fail(entries: list[AppendRequest], error: Exception) -> None:
    """Report an error for these entries."""
    for entry in entries:
        entry.error = error
        entry.locator = ""
    _tell(entries)


def _tell(entries: list[AppendRequest]) -> None:
    for entry in entries:
        try:
            entry.on_done(entry)
        except Exception:
            logger.exception("packs: the callback of a record failed")
