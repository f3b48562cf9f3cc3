"""The manifest of a backup: an SQLite file with every file that the backup has, and the parts of each.

`files` has the files of the stores; `parts` has runs of their bytes, each of which is one file of the backup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import apsw

from sluice_s3.app.errors import DataDamaged
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.sqlite.connection import all_rows, one_row

FORMAT = "1"
ROWS_PER_PAGE = 500
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    store TEXT, path TEXT, stamp TEXT NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (store, path)
) WITHOUT ROWID;
CREATE TABLE parts (
    store TEXT, path TEXT, start INTEGER, size INTEGER NOT NULL, hash TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (store, path, start)
) WITHOUT ROWID;
CREATE INDEX parts_name ON parts (name);
CREATE TABLE faults (store TEXT, path TEXT, reason TEXT NOT NULL, PRIMARY KEY (store, path)) WITHOUT ROWID;
"""
HELD = f"""
SELECT body AS locator FROM held.versions WHERE body != '' AND body NOT LIKE '{PIECES}%'
UNION ALL SELECT locator FROM held.pieces WHERE locator != ''
UNION ALL SELECT json_extract(extent.value, '$[0]') FROM held.parts AS parts, json_each(parts.extents) AS extent
"""  # noqa: S608 - constants
PLAN = f"""
INSERT INTO files (store, path, stamp, size)
SELECT store_of(locator), path_of(locator), stamp_of(locator), end_of(locator) FROM ({HELD}) WHERE true
ON CONFLICT DO UPDATE SET size = max(size, excluded.size)
"""  # noqa: S608 - constants


class BackedFile(NamedTuple):
    """A file of a store, as a backup has it."""

    store: str
    path: str
    stamp: str
    """The stamp of a plain file that is the one of its row, `?` of one that was changed since; else empty."""
    size: int


class Part(NamedTuple):
    """A run of bytes of such a file."""

    store: str
    path: str
    start: int
    size: int
    hash: str
    """XXH3-128 as hexadecimal digits."""
    name: str
    """The file of the backup that has them."""


class Manifest:
    """The manifest at `path`. With `create` it is a new one, else it is only read. Raises DataDamaged."""

    def __init__(self, path: Path, *, create: bool = False) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE if create else apsw.SQLITE_OPEN_READONLY
        if create:
            path.touch(mode=0o600, exist_ok=False)
        try:
            self._connection = apsw.Connection(str(path), flags=flags)
        except apsw.Error as error:
            raise DataDamaged(reason=f"its manifest cannot be read: {error}") from error
        try:
            if create:
                self._connection.execute("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF")
                self._connection.execute(TABLES)
                self.set("format", FORMAT)
            elif self.get("format") != FORMAT:
                raise DataDamaged(reason="its manifest has another format: a newer version of Sluice made this backup")
        except apsw.Error as error:
            self.close()
            raise DataDamaged(reason=f"its manifest cannot be read: {error}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def check(self) -> None:
        """Raise DataDamaged unless SQLite finds the whole file in order."""
        try:
            (answer,) = one_row(self._connection, "PRAGMA integrity_check(1)")
        except apsw.Error as error:
            raise DataDamaged(reason="its manifest is damaged") from error
        if answer != "ok":
            raise DataDamaged(reason="its manifest is damaged")

    def set(self, name: str, value: str) -> None:
        """Note a fact about the backup."""
        self._connection.execute("INSERT OR REPLACE INTO about VALUES (?, ?)", (name, value))

    def get(self, name: str) -> str:
        """Return such a fact, or an empty text."""
        found = one_row(self._connection, "SELECT value FROM about WHERE name = ?", (name,))
        return str(found[0]) if found else ""

    def plan(self, index_path: Path, describe: Callable[[str], tuple[str, str, int, str]]) -> None:
        """Enter every file that the index at `index_path` references.

        `describe` returns store, path, needed bytes and stamp of a locator.
        """
        described = lru_cache(maxsize=1)(describe)  # SQLite calls the four functions of a row one after the other

        def field(position: int) -> Callable[..., str | int]:
            return lambda locator: described(locator)[position]

        for position, name in enumerate(("store_of", "path_of", "end_of", "stamp_of")):
            self._connection.create_scalar_function(name, field(position), 1, deterministic=True)
        self._connection.execute("ATTACH ? AS held", (str(index_path),))
        try:
            self._connection.execute(PLAN)
        finally:
            self._connection.execute("DETACH held")

    def pages(self) -> Iterator[list[BackedFile]]:
        """Yield all files in pages; others may be changed meanwhile."""
        store, path = "", ""
        query = "SELECT store, path, stamp, size FROM files WHERE (store, path) > (?, ?) ORDER BY store, path LIMIT ?"
        while rows := all_rows(self._connection, query, (store, path, ROWS_PER_PAGE)):
            yield [BackedFile(*row) for row in rows]
            store, path = rows[-1][:2]

    def parts(self, store: str, path: str) -> list[Part]:
        """Return the parts of a file, in the order of its bytes."""
        query = "SELECT store, path, start, size, hash, name FROM parts WHERE (store, path) = (?, ?) ORDER BY start"
        return [Part(*row) for row in all_rows(self._connection, query, (store, path))]

    def stamp(self, store: str, path: str) -> str:
        """Return the stamp of a file; empty for a file that is not there."""
        found = one_row(self._connection, "SELECT stamp FROM files WHERE (store, path) = (?, ?)", (store, path))
        return str(found[0]) if found else ""

    def add(self, files: Iterable[BackedFile], parts: Sequence[Part], faults: Iterable[tuple[str, str, str]]) -> None:
        """Enter files, with what was found, their parts, and what is wrong with some, in one transaction."""
        with self._connection:
            self._connection.executemany(
                "INSERT OR REPLACE INTO files (store, path, stamp, size) VALUES (?, ?, ?, ?)", files
            )
            self._connection.executemany("INSERT INTO parts VALUES (?, ?, ?, ?, ?, ?)", parts)
            self._connection.executemany("INSERT OR REPLACE INTO faults VALUES (?, ?, ?)", faults)

    def remove(self, files: Iterable[tuple[str, str]]) -> None:
        """Remove files that are not there any more."""
        self._connection.executemany("DELETE FROM files WHERE (store, path) = (?, ?)", files)

    def faults(self) -> list[tuple[str, str, str]]:
        """Return what was missing or unreadable: store, path and reason."""
        return [(row[0], row[1], row[2]) for row in all_rows(self._connection, "SELECT * FROM faults")]

    def has(self, name: str) -> bool:
        """Return whether the backup needs the file of this name."""
        return one_row(self._connection, "SELECT 1 FROM parts WHERE name = ? LIMIT 1", (name,)) is not None

    def totals(self) -> tuple[int, int]:
        """Return the number of files and the sum of their bytes."""
        files, size = one_row(self._connection, "SELECT count(*), coalesce(sum(size), 0) FROM files")
        return int(files), int(size)
