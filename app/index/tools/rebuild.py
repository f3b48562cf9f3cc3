"""Rebuilds an index from what lies beside the data.

SQLite does all work, so that memory does not grow with it. The contents of journals and blobs are collected in scratch
tables. Then one statement per table creates the rows of the new index from them. Raises apsw.Error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Table, Text

from sluice_s3.app.index.journals.rows import KEYRING, SETTLED, WATERMARK
from sluice_s3.app.index.meta.transactions import STORE_IDENTITY_NOTE
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.objects.rows import NULL_VERSION, NewVersion
from sluice_s3.app.index.plain_files.rows import TREE
from sluice_s3.app.index.schema.tables import (
    CURRENT,
    DEFAULT,
    ENABLED,
    access_keys,
    accounts,
    buckets,
    identities,
    memberships,
    pieces,
    uploads,
    versions,
)
from sluice_s3.app.index.sql.transaction import of_store
from sluice_s3.app.index.sqlite import migrate
from sluice_s3.app.index.sqlite.connection import all_rows, one_row, open_connection
from sluice_s3.app.index.tools.rebuild_sql import (
    COPIES,
    FORGET_DECIDED_CLAIMS,
    GONE_BLOBS,
    JUDGE_CLAIMS,
    KEEP_RECORDS,
    NAME_BLOBS,
    RESTORE_NOTES,
    STATES,
    SUMMED,
)
from sluice_s3.app.index.versioning import version_ids

MARGIN = 1 << 20
"""Numbers of the commit sequence to skip, because some were drawn and left no trace."""
CACHE_KIB = 256 * 1024
COLUMN_DEFAULTS = {"store": DEFAULT, "source": "", "moved": 0, "settings": "", "versioning": 0, "identity": ""}
"""Columns that older journals lack, and their values at that time."""

Row = Sequence[Any]

VERSION = tuple(versions.c.keys())
_VERSION = ", ".join(VERSION)
_SET = ", ".join(f"{name} = excluded.{name}" for name in (*VERSION, "blob", "removed"))


def _typed(table: Table) -> str:
    """Return columns with types: SQLite uses an index only for the column's own type."""
    return ", ".join(f"{column.name} {'TEXT' if isinstance(column.type, Text) else 'INTEGER'}" for column in table.c)


SCRATCH = f"""
CREATE TABLE scratch.decided ({_typed(versions)}, blob INTEGER, removed INTEGER,
    PRIMARY KEY (bucket_id, key, version_id)) WITHOUT ROWID;
CREATE TABLE scratch.uploads ({_typed(uploads)}, PRIMARY KEY (id)) WITHOUT ROWID;
CREATE TABLE scratch.pieces ({_typed(pieces)}, blob INTEGER,
    PRIMARY KEY (upload, start, part_number)) WITHOUT ROWID;
CREATE TABLE scratch.blobs (blob INTEGER PRIMARY KEY, locator TEXT, size INTEGER, pack INTEGER, total INTEGER,
    part INTEGER);
CREATE TABLE scratch.claims (blob INTEGER PRIMARY KEY, at INTEGER, bucket_id INTEGER, key TEXT, conditional INTEGER,
    drawn INTEGER, writer INTEGER, fields TEXT, size INTEGER, reason TEXT);
CREATE TABLE scratch.ended (writer INTEGER PRIMARY KEY);
CREATE TABLE scratch.aliases (old INTEGER, blob INTEGER, PRIMARY KEY (old, blob)) WITHOUT ROWID;
CREATE TABLE scratch.named (blob INTEGER PRIMARY KEY);
CREATE TABLE scratch.voids (blob INTEGER PRIMARY KEY);
CREATE TABLE scratch.lost (bucket_id INTEGER, key TEXT, size INTEGER, at INTEGER, reason TEXT);
CREATE TABLE scratch.packs (id INTEGER PRIMARY KEY, size INTEGER, total INTEGER, store TEXT);
CREATE TABLE scratch.wanted (upload INTEGER PRIMARY KEY, size INTEGER);
CREATE TABLE scratch.summed (upload INTEGER PRIMARY KEY, size INTEGER, missing INTEGER);
CREATE TABLE scratch.judged (seq INTEGER PRIMARY KEY, reason TEXT);
CREATE TABLE scratch.several (bucket_id INTEGER, key TEXT, PRIMARY KEY (bucket_id, key)) WITHOUT ROWID;
CREATE TABLE scratch.holders (body TEXT PRIMARY KEY, holders INTEGER) WITHOUT ROWID;
CREATE TABLE scratch.living (pack INTEGER PRIMARY KEY, bytes INTEGER);
"""

ADD_DECIDED = f"""
INSERT INTO scratch.decided ({_VERSION}, blob, removed) VALUES ({", ".join("?" * (len(VERSION) + 2))})
ON CONFLICT (bucket_id, key, version_id) DO UPDATE SET {_SET} WHERE excluded.seq >= decided.seq
"""  # noqa: S608 - names of columns

_IS_TREE = f"'{TREE}' IN (substr({{0}}, 1, 2), substr({{0}}, instr({{0}}, '/') + 1, 2))"
"""`app.index.plain_files.rows.is_plain_file` in SQL. The next scan finds the current state of a plain file."""
REASONS = f"""
INSERT INTO scratch.judged
SELECT decided.seq AS seq, CASE
    WHEN buckets.id IS NULL THEN 'its bucket is not known'
    WHEN decided.size = 0 AND decided.body = '' THEN ''
    WHEN {_IS_TREE.format("decided.body")} THEN ''
    WHEN decided.body LIKE '{PIECES}%' THEN CASE
        WHEN summed.upload IS NULL OR uploads.id IS NULL THEN 'what it is made of is not known'
        WHEN summed.missing > 0 THEN 'a blob of it is missing'
        WHEN summed.size != decided.size THEN 'a part of it is not known'
        ELSE '' END
    WHEN blobs.blob IS NULL THEN 'its blob is missing'
    WHEN blobs.size < decided.size THEN 'its blob is too short'
    ELSE '' END AS reason
FROM scratch.decided AS decided
LEFT JOIN main.buckets AS buckets ON buckets.id = decided.bucket_id
LEFT JOIN scratch.blobs AS blobs ON blobs.blob = decided.blob
LEFT JOIN scratch.summed AS summed ON summed.upload = CASE WHEN decided.body LIKE '{PIECES}%'
    THEN CAST(substr(decided.body, {len(PIECES) + 1}) AS INTEGER) END
LEFT JOIN scratch.uploads AS uploads ON uploads.id = summed.upload
WHERE NOT decided.removed;
"""  # noqa: S608 - constants

_TAKEN = [f"decided.{name}" if name != "body" else "coalesce(blobs.locator, decided.body)" for name in VERSION]
MAKE = f"""
INSERT INTO main.versions ({_VERSION})
SELECT {", ".join(_TAKEN)} FROM scratch.decided AS decided
JOIN scratch.judged AS judged ON judged.seq = decided.seq AND judged.reason = ''
LEFT JOIN scratch.blobs AS blobs ON blobs.blob = decided.blob
WHERE NOT decided.removed ORDER BY decided.seq;
UPDATE main.buckets SET versioning = 1 WHERE versioning = 0
    AND id IN (SELECT bucket_id FROM main.versions WHERE version_id != 'null');
INSERT INTO scratch.lost
SELECT decided.bucket_id, decided.key, decided.size, decided.modified, judged.reason FROM scratch.decided AS decided
JOIN scratch.judged AS judged ON judged.seq = decided.seq AND judged.reason != '' WHERE NOT decided.removed;
INSERT INTO main.unhashed SELECT seq FROM main.versions WHERE parts = 0 AND etag LIKE '%-1'
    AND {_IS_TREE.format("body")};
INSERT INTO main.uploads SELECT * FROM scratch.uploads WHERE id IN (
    SELECT CAST(substr(body, {len(PIECES) + 1}) AS INTEGER) FROM main.versions WHERE body LIKE '{PIECES}%');
INSERT INTO main.pieces
SELECT pieces.upload, pieces.start, pieces.part_number, pieces.size, coalesce(blobs.locator, ''), pieces.blob_offset,
    pieces.checksum
FROM scratch.pieces AS pieces JOIN main.uploads AS uploads ON uploads.id = pieces.upload
LEFT JOIN scratch.blobs AS blobs ON blobs.blob = pieces.blob;
INSERT INTO scratch.holders
SELECT body, count(*) AS holders FROM (
    SELECT body FROM main.versions WHERE body != '' UNION ALL SELECT locator FROM main.pieces WHERE locator != ''
    UNION ALL SELECT json_extract(extent.value, '$[0]') FROM main.parts AS parts, json_each(parts.extents) AS extent
) GROUP BY body;
INSERT INTO main.shared SELECT body, holders FROM scratch.holders WHERE holders > 1;
INSERT INTO scratch.living
SELECT pack, sum(total) FROM (SELECT DISTINCT locator, pack, total FROM scratch.blobs
    WHERE locator IN (SELECT body FROM scratch.holders)) GROUP BY pack;
INSERT INTO main.packs (id, incarnation, sealed, size, dead, store)
SELECT packs.id, 0, 1, packs.size, packs.total - coalesce(living.bytes, 0), packs.store
FROM scratch.packs AS packs LEFT JOIN scratch.living AS living ON living.pack = packs.id;
"""  # noqa: S608 - constants

SUPERSEDED = "what was decided for its key is as new"
"""The reason for recovery headers that were most likely committed, and replaced since."""


class RecoveredBlob(NamedTuple):
    """A blob that its recovery header may restore."""

    blob: int
    locator: str
    at: int
    bucket_id: int
    key: str
    fields: str
    """The fields of the row as JSON."""
    versioning: int
    """The versioning of its bucket."""


class IndexRebuild:
    """A new index at `path`.

    Its directory is used by nothing else, and the caller removes it if it is not wanted. `attached` are other databases
    to read from, by name. `more_scratch` creates additional scratch tables.
    """

    def __init__(self, path: Path, *, attached: Mapping[str, Path] | None = None, more_scratch: str = "") -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        migrate.upgrade(path, path.with_name("lock"))
        self._connection = connection = open_connection(path)
        connection.execute("PRAGMA synchronous=OFF")  # durability matters only once it is finished
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        connection.execute("PRAGMA temp_store=FILE")
        connection.execute("ATTACH DATABASE ? AS scratch", (str(path.with_name("scratch")),))
        connection.execute("PRAGMA scratch.journal_mode=OFF")
        connection.execute("PRAGMA scratch.synchronous=OFF")
        connection.execute(f"PRAGMA scratch.cache_size=-{CACHE_KIB}")
        for name, other in (attached or {}).items():
            connection.execute(f"ATTACH DATABASE ? AS {name}", (str(other),))
        connection.execute(SCRATCH + more_scratch)
        connection.execute("BEGIN")

    def close(self) -> None:
        """Close the files."""
        self._connection.close()

    # contents of the journals
    def add_versions(self, rows: Iterable[tuple[Row, int | None]]) -> None:
        """Add committed versions (columns in order), each with the id of its blob or None."""
        self._connection.executemany(ADD_DECIDED, ((*row, blob, 0) for row, blob in rows))

    def add_removals(self, removed: Iterable[tuple[int, int, str, int, str]]) -> None:
        """Add deleted versions: (number, bucket, key, milliseconds since the epoch, version id)."""
        empty = dict.fromkeys(VERSION, "") | {"state": 0, "size": 0, "parts": 0}
        names = ("seq", "bucket_id", "key", "modified", "version_id")
        rows = (empty | dict(zip(names, removal, strict=True)) for removal in removed)
        self._connection.executemany(ADD_DECIDED, ((*row.values(), None, 1) for row in rows))

    def add_voids(self, blobs: Iterable[int]) -> None:
        """Add blobs whose commit was refused."""
        self._connection.executemany("INSERT OR IGNORE INTO scratch.voids VALUES (?)", ((blob,) for blob in blobs))

    def add_ended_writers(self, writers: Iterable[int]) -> None:
        """Add incarnations that commit nothing more."""
        self._connection.executemany("INSERT OR IGNORE INTO scratch.ended VALUES (?)", ((one,) for one in writers))

    def add_uploads(self, rows: Iterable[Row]) -> None:
        """Add completed uploads."""
        self._replace("scratch.uploads", len(uploads.c), rows)

    def add_pieces(self, rows: Iterable[tuple[Row, int | None]]) -> None:
        """Add pieces of completed uploads, each with the id of its blob."""
        self._replace("scratch.pieces", len(pieces.c) + 1, ((*row, blob) for row, blob in rows))

    def set_settings(self, settings: dict[str, Any]) -> None:
        """Set accounts, keys, users, groups, roles and buckets to the last ones journaled."""
        for table in (accounts, access_keys, identities, memberships, buckets):
            rows = settings.get(table.name, [])
            if table in (access_keys, buckets):
                rows = [(*row, *(COLUMN_DEFAULTS[name] for name in table.c.keys()[len(row) :])) for row in rows]
            self._replace(f"main.{table.name}", len(table.c), rows)
        for name in ("root", KEYRING):
            if settings.get(name):
                self._note(name, str(settings[name]))

    def _note(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO main.meta VALUES (?, ?)", (name, value))

    def _replace(self, table: str, width: int, rows: Iterable[Row]) -> None:
        self._connection.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * width)})", rows)  # noqa: S608

    # contents of the store
    def add_pack(self, pack: int, size: int, total: int, store: str) -> None:
        """Add a pack of `size` bytes, `total` of which can be records."""
        self._connection.execute("INSERT OR REPLACE INTO scratch.packs VALUES (?, ?, ?, ?)", (pack, size, total, store))

    def add_aliases(self, rows: Iterable[tuple[int, int]]) -> None:
        """Add blobs that were copied to another store: the old id, and that of the copy."""
        self._replace("scratch.aliases", 2, rows)

    def add_blobs(self, rows: Sequence[tuple[int, str, int, int, int, bool]]) -> list[tuple[int, str]]:
        """Add blobs (id, locator, size, pack, record bytes, is a part); return id conflicts."""
        insert = "INSERT OR IGNORE INTO scratch.blobs VALUES (?, ?, ?, ?, ?, ?)"
        before = self._connection.total_changes()
        self._connection.executemany(insert, rows)
        if self._connection.total_changes() - before == len(rows):
            return []
        query = "SELECT 1 FROM scratch.blobs WHERE blob = ? AND locator = ?"
        return [row[:2] for row in rows if one_row(self._connection, query, row[:2]) is None]

    def locator(self, blob: int) -> str:
        """Return the locator of a blob, empty for an unknown one."""
        row: Row | None = one_row(self._connection, "SELECT locator FROM scratch.blobs WHERE blob = ?", (blob,))
        return "" if row is None else str(row[0])

    def replace_blob(self, row: tuple[int, str, int, int, int, bool]) -> None:
        """Replace the place of a blob."""
        self._replace("scratch.blobs", 6, [row])

    def find_gone(self) -> Iterator[int]:
        """Yield blobs that rows name, that have copies on another store, and that are absent or records of packs."""
        self._script(NAME_BLOBS)
        yield from (blob for (blob,) in self._connection.execute(GONE_BLOBS))

    def copies(self, blob: int) -> list[int]:
        """Return the copies of a blob on other stores, and copies of these."""
        return [copy for (copy,) in all_rows(self._connection, COPIES, (blob,))]

    def use_copy(self, blob: int, copy: int) -> None:
        """Let rows that name a blob reference a copy of it."""
        self._connection.execute(
            "INSERT OR REPLACE INTO scratch.blobs SELECT ?, locator, size, pack, total, part FROM scratch.blobs "
            "WHERE blob = ?",
            (blob, copy),
        )

    def add_headers(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add possibly uncommitted headers: (blob, *`app.store.recovery_headers.ObjectHeader`, JSON fields, size)."""
        self._connection.executemany(
            "INSERT OR IGNORE INTO scratch.claims VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '')", rows
        )

    # results
    def find_restorable(self) -> Iterator[RecoveredBlob]:
        """Yield uncommitted blobs to restore if intact; the caller calls `restore` or `refuse`."""
        self._script(FORGET_DECIDED_CLAIMS)
        self._script(JUDGE_CLAIMS)
        found = self._connection.execute(
            "SELECT blob, locator, at, bucket_id, key, fields, buckets.versioning FROM scratch.claims AS claims "
            "JOIN scratch.blobs USING (blob) JOIN main.buckets AS buckets ON buckets.id = claims.bucket_id "
            "WHERE reason = '' ORDER BY drawn, at, blob"
        )
        for row in found.fetchall():
            yield RecoveredBlob._make(row)

    def refuse(self, blob: RecoveredBlob, reason: str) -> None:
        """Record why a blob is not restored."""
        self._connection.execute("UPDATE scratch.claims SET reason = ? WHERE blob = ?", (reason, blob.blob))

    def restore(self, blob: RecoveredBlob, seq: int, new: NewVersion) -> None:
        """Make a blob its key's current version; its own version id is lost."""
        bucket_key = blob.bucket_id, blob.key
        query = "SELECT coalesce(max(modified), 0) FROM scratch.decided WHERE bucket_id = ? AND key = ? AND NOT removed"
        (newest,) = one_row(self._connection, query, bucket_key)
        modified = max(blob.at, newest + 1)
        version_id = version_ids.new_version_id(modified, seq) if blob.versioning == ENABLED else NULL_VERSION
        self.add_versions([((seq, *bucket_key, version_id, CURRENT, modified, *new), blob.blob)])

    def build(self, *, whole: bool) -> None:
        """Create the rows of the new index; unless `whole`, no record counts as dead."""
        for script in (SUMMED, REASONS, STATES, MAKE, RESTORE_NOTES, "" if whole else KEEP_RECORDS):
            self._script(script)
        self._connection.execute(
            "INSERT INTO scratch.lost SELECT bucket_id, key, size, at, reason FROM scratch.claims WHERE reason != ''"
        )

    def find_highest(self) -> int:
        """Return the highest number that names anything found."""
        found = one_row(
            self._connection,
            "SELECT max(coalesce((SELECT max(seq) FROM scratch.decided), 0), "
            "coalesce((SELECT max(blob) FROM scratch.blobs), 0), coalesce((SELECT max(id) FROM scratch.packs), 0), "
            "coalesce((SELECT max(id) FROM scratch.uploads), 0), coalesce((SELECT max(id) FROM main.buckets), 0), "
            "coalesce((SELECT max(blob) FROM scratch.voids), 0))",
        )
        return int(found[0])

    def add_store(self, name: str, uuid: str, generation: int, watermark: int, journals: Iterable[Row]) -> None:
        """Add a store with its journals (id, bytes), complete up to the watermark."""
        self._replace("main.journals", 5, ((number, 0, size, 0, name) for number, size in journals))
        self._note(of_store(STORE_IDENTITY_NOTE, name), f"{uuid} {generation}")
        self._note(of_store(WATERMARK, name), str(watermark))

    def finish(self, sequence: int, stores: Iterable[str]) -> None:
        """Make the index durable; `sequence` is the highest number drawn.

        Nothing of before is under way: a later rebuild restores none of it, and needs no tombstones of this one.
        """
        execute = self._connection.execute
        execute("UPDATE main.sequence SET value = ?", (sequence + MARGIN,))
        for name in stores:
            self._note(of_store(SETTLED, name), str(sequence + MARGIN))
        execute("COMMIT")
        execute("PRAGMA synchronous=FULL")
        execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _script(self, script: str) -> None:
        # executescript would commit first
        for statement in script.split(";\n"):
            if statement.strip():
                self._connection.execute(statement)

    # for reports
    def find_lost(self, *, superseded: bool) -> Iterator[tuple[str, str, int, int, str]]:
        """Yield unrestored (or only superseded) writes: (bucket, key, size, milliseconds since the epoch, reason)."""
        yield from self._connection.execute(
            "SELECT coalesce(buckets.name, lost.bucket_id), lost.key, lost.size, lost.at, lost.reason "
            "FROM scratch.lost AS lost LEFT JOIN main.buckets AS buckets ON buckets.id = lost.bucket_id "
            "WHERE (lost.reason = ?) = ?",
            (SUPERSEDED, superseded),
        )

    def counts(self) -> dict[str, int]:
        """Return counts of the rows and blobs of the new index."""
        found: Row = one_row(
            self._connection,
            "SELECT (SELECT count(*) FROM main.buckets), (SELECT count(*) FROM main.accounts), "
            "(SELECT count(*) FROM main.versions), (SELECT count(*) FROM main.uploads), "
            "(SELECT count(*) FROM main.shared), (SELECT count(*) FROM main.packs), "
            "(SELECT coalesce(sum(dead), 0) FROM main.packs), "
            "(SELECT count(DISTINCT locator) FROM scratch.blobs WHERE pack = 0 AND NOT part AND locator NOT IN "
            "(SELECT body FROM scratch.holders)), "
            "(SELECT count(DISTINCT locator) FROM scratch.blobs WHERE part AND locator NOT IN "
            "(SELECT body FROM scratch.holders)), "
            "(SELECT count(*) FROM scratch.lost WHERE reason = :superseded), "
            "(SELECT count(*) FROM scratch.lost WHERE reason != :superseded)",
            {"superseded": SUPERSEDED},
        )
        names = "buckets accounts versions multipart shared packs dead_bytes unheld_files unheld_parts superseded"
        return dict(zip([*names.split(), "not_restored"], found, strict=True))
