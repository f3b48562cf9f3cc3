"""The index in a backup: a copy in one state, and what becomes of it when it is restored."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from sluice_s3.app.errors import DataDamaged, DomainError, StoreUnavailable
from sluice_s3.app.index.journals.rows import ANNOUNCED, KEYRING, KEYRING_JOURNALED, ROOT_NOTE, WATERMARK
from sluice_s3.app.index.meta.transactions import STORE_IDENTITY_NOTE
from sluice_s3.app.index.plain_files.rows import TREE, is_plain_file
from sluice_s3.app.index.schema.tables import DEFAULT
from sluice_s3.app.index.sql.transaction import of_store
from sluice_s3.app.index.sqlite import migrate
from sluice_s3.app.index.sqlite.connection import all_rows, one_row, open_connection, to_domain_error
from sluice_s3.app.index.tools import copy
from sluice_s3.app.private_files import sync_directory

StoreIdentities = Mapping[str, tuple[str, int]]
FORGOTTEN = (
    "DELETE FROM journals",
    "DELETE FROM heartbeats",
    "DELETE FROM leases",
    "DELETE FROM intents",
    "UPDATE writers SET state = 'dead'",
)
"""What means nothing to a restored index: there are no journals yet, and no writer of it is alive."""


async def export(path: Path, url: str | None, target: Path) -> None:
    """Copy the index at `path` (SQLite), or at `url` (Postgres), into the SQLite file `target`, in one state.

    The index may be in use. Raises DomainError, OSError.
    """
    try:
        if url is None:
            copy.copy_file(path, target)
        else:
            source_end, target_end = copy.open_endpoint(url), copy.open_endpoint(f"sqlite:///{target}", write=True)
            async with source_end as source, target_end as written:
                await copy.copy(source, written, lambda *_: None)
            shutil.rmtree(target.parent / "run")
        _make_single_file(target)
        target.with_name("lock").unlink(missing_ok=True)
    except apsw.Error as error:
        raise to_domain_error(error) from error


def take_out(path: Path, target: Path) -> None:
    """Copy the index of a backup to `target`, upgraded to the revision of this code. Raises DomainError, OSError."""
    shutil.copyfile(path, target)  # an SQLite connection in WAL mode would write to the backup
    try:
        migrate.upgrade(target, target.with_name("lock"), keep=False)
        _make_single_file(target)
    except apsw.Error as error:
        raise to_domain_error(error) from error


def _make_single_file(path: Path) -> None:
    with closing(open_connection(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode=DELETE")
    os.chmod(path, 0o600)


class ExportedIndex:
    """The copy of an index at `path`. Raises DataDamaged for a file that is none."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        flags = apsw.SQLITE_OPEN_READWRITE if write else apsw.SQLITE_OPEN_READONLY
        try:
            self._connection = apsw.Connection(str(path), flags=flags)
            self.identities = self._read_identities()
        except apsw.Error as error:
            raise DataDamaged(reason="its index cannot be read") from error
        self.close = self._connection.close

    def __enter__(self) -> ExportedIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read_identities(self) -> dict[str, tuple[str, int]]:
        prefix = f"{STORE_IDENTITY_NOTE}:"
        found = {}
        for name, value in all_rows(self._connection, "SELECT name, value FROM meta"):
            if name == STORE_IDENTITY_NOTE or name.startswith(prefix):
                uuid, _, generation = value.partition(" ")
                found[name.removeprefix(prefix) if name.startswith(prefix) else DEFAULT] = uuid, int(generation)
        return found

    def _note(self, name: str) -> str:
        found = one_row(self._connection, "SELECT value FROM meta WHERE name = ?", (name,))
        return str(found[0]) if found else ""

    @property
    def gateway(self) -> str:
        """A UUID that is the same in all backups of one gateway."""
        return self._note(ROOT_NOTE)

    @property
    def keyring(self) -> str:
        """The sealed key ring; empty for none."""
        return self._note(KEYRING)

    def counts(self) -> tuple[int, int, int]:
        """Return the number of buckets, of versions (with delete markers), and of damaged blobs in quarantine."""
        query = (
            "SELECT (SELECT count(*) FROM buckets), (SELECT count(*) FROM versions), (SELECT count(*) FROM quarantine)"
        )
        buckets, versions, damaged = one_row(self._connection, query)
        return buckets, versions, damaged

    def buckets_on(self, store: str) -> list[str]:
        """Return the names of a store's buckets."""
        return [name for (name,) in all_rows(self._connection, "SELECT name FROM buckets WHERE store = ?", (store,))]

    def has_version(self, bucket: str, key: str, size: int, etag: str) -> bool:
        """Return whether there is a version of this size and ETag."""
        query = (
            "SELECT 1 FROM versions JOIN buckets ON buckets.id = bucket_id "
            "WHERE (name, key, size, etag) = (?, ?, ?, ?) LIMIT 1"
        )
        return one_row(self._connection, query, (bucket, key, size, etag)) is not None

    def check(self) -> None:
        """Raise DataDamaged unless SQLite finds the whole file in order."""
        try:
            (answer,) = one_row(self._connection, "PRAGMA integrity_check(1)")
        except apsw.Error as error:
            raise DataDamaged(reason="its index is damaged") from error
        if answer != "ok":
            raise DataDamaged(reason="its index is damaged")

    def adopt(self, identities: StoreIdentities, restamp: Callable[[str], str]) -> None:
        """Make it the index of restored stores with these identities, in one transaction.

        Every change counts as not journaled, so that the first start writes the journals of all of it. `restamp`
        returns the new body of a plain file.
        """
        execute = self._connection.execute

        def moved(*bodies: Any) -> str:
            (body,) = bodies
            return restamp(body) if is_plain_file(body) else body

        self._connection.create_scalar_function("restamp", moved, 1)
        with self._connection:
            for statement in FORGOTTEN:
                execute(statement)
            for name, (uuid, generation) in identities.items():
                for note in (WATERMARK, ANNOUNCED, KEYRING_JOURNALED):
                    execute("DELETE FROM meta WHERE name = ?", (of_store(note, name),))
                note = of_store(STORE_IDENTITY_NOTE, name)
                execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (note, f"{uuid} {generation}"))
            execute(f"UPDATE versions SET body = restamp(body) WHERE instr(body, '{TREE}') > 0")  # noqa: S608


async def install(path: Path, target: Path, url: str | None, identities: StoreIdentities) -> None:
    """Put the adopted index at `path` into its place: the file `target`, or the Postgres index at `url`.

    One that an interrupted restore put there is replaced, by its identities. Raises StoreUnavailable for any other.
    """
    if url is None:
        _install_file(path, target, identities)
        return
    async with copy.open_endpoint(f"sqlite:///{path}") as source, copy.open_endpoint(url, write=True) as written:
        put = copy.replace if await _is_left_over(written, identities) else copy.copy
        await put(source, written, lambda *_: None)


async def _is_left_over(end: copy.CopyEndpoint, identities: StoreIdentities) -> bool:
    (table,) = (table for table in copy.TABLES if table.name == "meta")
    notes = {row[0]: row[1] async for rows in end.rows(table) for row in rows}
    named = {of_store(STORE_IDENTITY_NOTE, name): f"{uuid} {number}" for name, (uuid, number) in identities.items()}
    return named.items() <= notes.items()


def _install_file(path: Path, target: Path, identities: StoreIdentities) -> None:
    if target.exists():
        try:
            with ExportedIndex(target) as found:
                # a server that was refused beside an unfinished restore leaves an empty one
                empty = not found.identities and found.counts() == (0, 0, 0)
                left_over = empty or found.identities == dict(identities)
        except DomainError:
            left_over = _has_no_tables(target)  # a server that was refused on a full disk leaves such a file
        if not left_over:
            raise StoreUnavailable(reason="there is another index in its place")
        for log in ("-wal", "-shm"):
            target.with_name(target.name + log).unlink(missing_ok=True)
    os.replace(path, target)
    sync_directory(target.parent)


def _has_no_tables(path: Path) -> bool:
    try:
        with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            return not connection.execute("SELECT 1 FROM sqlite_master").fetchall()
    except apsw.Error:
        return False
