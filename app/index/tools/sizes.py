"""Sizes of the files that a place of backups has, while a backup is made."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import apsw

from sluice_s3.app.index.sqlite.connection import one_row


class Sizes:
    """Sizes by name, in an SQLite file: there may be millions of them."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        self._lock = threading.Lock()
        self._connection.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")
        self._connection.execute("CREATE TABLE sizes (name TEXT PRIMARY KEY, size INTEGER NOT NULL) WITHOUT ROWID")

    def fill(self, entries: Iterable[tuple[str, int]]) -> None:
        """Enter what a listing found."""
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO sizes VALUES (?, ?)", entries)

    def of(self, name: str) -> int:
        """Return the size of a file; -1 for one that is not there."""
        with self._lock:
            found = one_row(self._connection, "SELECT size FROM sizes WHERE name = ?", (name,))
        return int(found[0]) if found else -1

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
