"""Recovers an index from an older one and from what the journals say beyond it.

`rebuild` makes an index from journals and blobs alone. Here, the rows of the older index, the *base*, go into the
scratch tables first, as if journals had contained them. So only data newer than the base must be read from the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Table

from sluice_s3.app.index.journals.rows import ANNOUNCED, KEYRING, ROOT_NOTE, WATERMARK
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.schema.tables import (
    access_keys,
    accounts,
    audit_events,
    buckets,
    identities,
    last_uses,
    log_rows,
    memberships,
    meta,
    outbox,
    parts,
    pieces,
    quarantine,
    sessions,
    tombstones,
    uploads,
    versions,
)
from sluice_s3.app.index.sql.transaction import of_store
from sluice_s3.app.index.sqlite.connection import all_rows, one_row
from sluice_s3.app.index.tools.rebuild import IndexRebuild, Row

TRUSTED_BYTES = 1 << 62
"""The size of a blob that the base holds and whose file exists: its contents are not checked further."""
SETTINGS = (accounts, access_keys, identities, memberships, buckets)
KEPT_TABLES = (sessions, last_uses, outbox, log_rows, quarantine, audit_events)
"""Tables to copy unchanged."""


class BlobLocation(NamedTuple):
    """The place of a blob."""

    blob_id: int
    pack: int
    """0 for a file of its own."""
    record_bytes: int


def _names(table: Table) -> str:
    return ", ".join(column.name for column in table.c)


BASE_SCRATCH = """
CREATE TABLE scratch.present (blob INTEGER PRIMARY KEY, store TEXT);
CREATE TABLE scratch.open_uploads (id INTEGER PRIMARY KEY);
"""
SEED = f"""
INSERT INTO scratch.decided ({_names(versions)}, blob, removed)
    SELECT {_names(versions)}, blob_of(body), 0 FROM base.versions
    WHERE bucket_id IN (SELECT id FROM main.buckets);
INSERT INTO scratch.uploads ({_names(uploads)}) SELECT {_names(uploads)} FROM base.uploads WHERE completed_seq > 0;
INSERT INTO scratch.pieces ({_names(pieces)}, blob) SELECT {_names(pieces)}, blob_of(locator) FROM base.pieces;
"""  # noqa: S608 - names of columns
SEED_BLOBS = f"""
CREATE TEMP TABLE held AS
    SELECT body AS locator FROM base.versions WHERE body != '' AND body NOT LIKE '{PIECES}%'
    UNION SELECT locator FROM base.pieces WHERE locator != ''
    UNION SELECT json_extract(extent.value, '$[0]') FROM base.parts AS parts, json_each(parts.extents) AS extent;
INSERT OR IGNORE INTO scratch.blobs (blob, locator, size, pack, total, part)
    SELECT blob, locator, {TRUSTED_BYTES}, pack, record_bytes_of(locator), 0 FROM (
        SELECT locator, blob_of(locator) AS blob, pack_of(locator) AS pack FROM temp.held)
    WHERE blob IS NOT NULL AND CASE WHEN pack = 0 THEN blob IN (SELECT blob FROM scratch.present)
        ELSE pack IN (SELECT id FROM scratch.packs) END;
DROP TABLE temp.held;
INSERT OR IGNORE INTO scratch.named SELECT blob_of(json_extract(extent.value, '$[0]'))
    FROM base.parts AS parts, json_each(parts.extents) AS extent
    WHERE blob_of(json_extract(extent.value, '$[0]')) IS NOT NULL;
"""  # noqa: S608 - constants
NAMES_ABSENT = f"""
SELECT EXISTS (SELECT 1 FROM scratch.decided WHERE NOT removed AND blob NOT IN (SELECT blob FROM scratch.blobs)
        AND bucket_id IN (SELECT id FROM main.buckets))
    OR EXISTS (SELECT 1 FROM scratch.pieces WHERE size > 0 AND blob NOT IN (SELECT blob FROM scratch.blobs)
        AND upload IN (SELECT CAST(substr(body, {len(PIECES) + 1}) AS INTEGER) FROM scratch.decided
            WHERE NOT removed AND body LIKE '{PIECES}%'))
"""  # noqa: S608 - constants
# the journals hold an upload that was completed since. Of the others, those with all their parts are kept
OPEN_UPLOADS = f"""
INSERT INTO scratch.open_uploads SELECT id FROM base.uploads AS uploads
    WHERE completed_seq <= 0 AND id NOT IN (SELECT id FROM scratch.uploads)
    AND bucket_id IN (SELECT id FROM main.buckets)
    AND NOT EXISTS (
        SELECT 1 FROM base.parts AS parts, json_each(parts.extents) AS extent
        WHERE parts.upload = uploads.id
        AND blob_of(json_extract(extent.value, '$[0]')) NOT IN (SELECT blob FROM scratch.blobs));
INSERT INTO main.uploads ({_names(uploads)}) SELECT {_names(uploads)} FROM base.uploads
    WHERE id IN (SELECT id FROM scratch.open_uploads);
INSERT INTO main.parts (upload, number, size, etag, modified, checksum_algorithm, checksum, extents)
    SELECT upload, number, size, etag, modified, checksum_algorithm, checksum, (
        SELECT json_group_array(json_array(
            coalesce((SELECT blobs.locator FROM scratch.blobs AS blobs
                WHERE blobs.blob = blob_of(json_extract(extent.value, '$[0]'))), json_extract(extent.value, '$[0]')),
            json_extract(extent.value, '$[1]'), json_extract(extent.value, '$[2]')))
        FROM json_each(parts.extents) AS extent)
    FROM base.parts AS parts WHERE upload IN (SELECT id FROM scratch.open_uploads);
INSERT INTO scratch.lost SELECT bucket_id, key, 0, initiated, 'an open upload whose parts are not all there any more'
    FROM base.uploads WHERE completed_seq = 0 AND id NOT IN (SELECT id FROM scratch.uploads)
    AND id NOT IN (SELECT id FROM scratch.open_uploads) AND bucket_id IN (SELECT id FROM main.buckets);
"""  # noqa: S608 - names of columns
assert [column.name for column in parts.c] == [
    "upload", "number", "size", "etag", "modified", "checksum_algorithm", "checksum", "extents",
]  # fmt: skip


class IndexRecovery(IndexRebuild):
    """A new index at `path`, made from the one at `base`.

    `locate` returns the location of the blob of a locator, or None. Call `set_settings`, then `add_pack` and
    `add_present` for everything in the stores, then `seed`; the rest is that of `IndexRebuild`.
    """

    def __init__(self, path: Path, base: Path, locate: Callable[[str], BlobLocation | None]) -> None:
        super().__init__(path, attached={"base": base}, more_scratch=BASE_SCRATCH)
        functions: dict[str, Any] = {
            "blob_of": lambda locator: None if (location := locate(locator)) is None else location.blob_id,
            "pack_of": lambda locator: 0 if (location := locate(locator)) is None else location.pack,
            "record_bytes_of": lambda locator: 0 if (location := locate(locator)) is None else location.record_bytes,
        }
        for name, function in functions.items():
            self._connection.create_scalar_function(name, function, 1, deterministic=True)

    # contents of the base
    def position(self, store: str) -> tuple[int, int]:
        """Return two positions of the base in the journals of a store.

        They are the numbers up to which it had journaled changes, and up to which it had announced them.
        """
        watermark = int(self._base_note(of_store(WATERMARK, store)) or 0)
        return watermark, max(watermark, int(self._base_note(of_store(ANNOUNCED, store)) or 0))

    def sequence(self) -> int:
        """Return the last number that the base had drawn."""
        return int(one_row(self._connection, "SELECT value FROM base.sequence")[0])

    def journals(self, store: str) -> dict[int, int]:
        """Return the journals of a store that the base knows, and the bytes of each."""
        rows = all_rows(self._connection, "SELECT id, bytes FROM base.journals WHERE store = ?", (store,))
        return dict(rows)

    def sealed_packs(self) -> set[int]:
        """Return packs that were sealed in the base, to which nothing was added since."""
        return {number for (number,) in all_rows(self._connection, "SELECT id FROM base.packs WHERE sealed != 0")}

    def stores_with_arrivals(self) -> set[str]:
        """Return the stores to which buckets were moving at the base's time."""
        rows = all_rows(self._connection, f"SELECT DISTINCT store FROM base.{buckets.name} WHERE source != ''")  # noqa: S608
        return {store for (store,) in rows}

    def removals(self) -> list[Row]:
        """Return the tombstones of the base, which contradict recovery headers."""
        return all_rows(self._connection, f"SELECT {_names(tombstones)} FROM base.removals ORDER BY seq")  # noqa: S608

    def settings(self) -> dict[str, Any]:
        """Return accounts, keys and buckets of the base, in the format of journals."""
        found: dict[str, Any] = {}
        for table in SETTINGS:
            rows = all_rows(self._connection, f"SELECT {_names(table)} FROM base.{table.name}")  # noqa: S608
            found[table.name] = [list(row) for row in rows]
        return found | {name: self._base_note(name) for name in (ROOT_NOTE, KEYRING)}

    def _base_note(self, name: str) -> str:
        row = one_row(self._connection, "SELECT value FROM base.meta WHERE name = ?", (name,))
        return "" if row is None else str(row[0])

    # contents of the store
    def add_present(self, blobs: Iterable[int], store: str) -> None:
        """Add blobs that have a file of their own in a store."""
        insert = "INSERT OR IGNORE INTO scratch.present VALUES (?, ?)"
        self._connection.executemany(insert, ((blob, store) for blob in blobs))

    def unknown(self, store: str) -> list[int]:
        """Return blobs with files of their own that the base does not hold."""
        rows = all_rows(
            self._connection,
            "SELECT blob FROM scratch.present WHERE store = ? AND blob NOT IN (SELECT blob FROM scratch.blobs)",
            (store,),
        )
        return [blob for (blob,) in rows]

    def trusted_files(self, store: str) -> list[int]:
        """Return the blobs with files of their own that only the base described."""
        rows = all_rows(
            self._connection,
            "SELECT blob FROM scratch.present JOIN scratch.blobs USING (blob) WHERE store = ? AND size = ?",
            (store, TRUSTED_BYTES),
        )
        return [blob for (blob,) in rows]

    def names_absent(self) -> bool:
        """Return whether a row names a blob that was not found."""
        return bool(one_row(self._connection, NAMES_ABSENT)[0])

    # results
    def seed(self, replaced: Sequence[int]) -> None:
        """Copy the rows of the base, except versions of buckets that the journals contain completely."""
        self._script(SEED)
        self._connection.executemany(
            "DELETE FROM scratch.decided WHERE bucket_id = ?", ((bucket_id,) for bucket_id in replaced)
        )
        self._script(SEED_BLOBS)

    def build(self, *, whole: bool) -> None:
        """See `IndexRebuild.make`.

        Adds the uploads that are still open, and what no journal holds.
        """
        self._script(OPEN_UPLOADS)
        super().build(whole=whole)
        for table in KEPT_TABLES:
            self._connection.execute(
                f"INSERT INTO main.{table.name} ({_names(table)}) SELECT {_names(table)} FROM base.{table.name}"  # noqa: S608
            )
        self._connection.execute(
            f"INSERT OR IGNORE INTO main.{meta.name} SELECT name, value FROM base.{meta.name} "  # noqa: S608
            f"WHERE name != '{ANNOUNCED}' AND name NOT LIKE '{ANNOUNCED}:%' AND name NOT LIKE 'journal-failure%' "
            "AND name NOT LIKE 'writer:%'"
        )
