"""Connections to the SQLite file: setup, refusals, and the meaning of errors.

They use APSW, which costs 10 to 25 % less per operation than the standard library's module. APSW is another build of
SQLite than that module. Only migrations use the module: see `migrate`.
"""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from pathlib import Path
from typing import Any

import apsw

from sluice_s3.app.errors import DomainError, Overloaded, StoreFull, StoreUnavailable
from sluice_s3.app.private_files import UnsafeFile

logger = logging.getLogger("sluice.index")

BUSY_TIMEOUT_MS = 5000
"""Milliseconds to wait for a process that does not take our file lock (a `sqlite3` shell, a backup)."""
CACHE_KIB = 32 * 1024
STATEMENTS = 256
"""Compiled statements that a connection caches. It is more than a connection uses."""

NETWORK_FILESYSTEMS = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFE534D42: "SMB",
    0xFF534D42: "CIFS",
    0x65735546: "FUSE",
    0x01021997: "9P",
    0x00C36400: "Ceph",
    0x0BD00BD0: "Lustre",
    0x5346414F: "AFS",
}
"""statfs(2) magic numbers of filesystems on which SQLite's WAL loses data (sqlite.org/wal.html: shared memory)."""


def open_connection(path: Path, *, durability: str = "full", create: bool = False) -> apsw.Connection:
    """Open a connection in WAL mode with autocommit and without automatic checkpoints.

    Threads may use it in turn, never two at a time: SQLite's own lock, taken for each column of each row, would be a
    quarter of a page's query (sqlite.org/threadsafe.html, "Multi-thread"). Raises StoreUnavailable when there is no
    index at `path` (unless `create`) or when it cannot be in WAL mode.
    """
    # the flags also apply to attached databases, `mode` only to this one
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOMUTEX
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    try:
        connection = apsw.Connection(uri, flags=flags, statementcachesize=STATEMENTS)
    except apsw.Error as error:
        raise to_domain_error(error) from error
    try:
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        # without it, a build with STAT4 like APSW's recompiles some statements whenever their parameters change: the
        # values might lead to another plan (sqlite.org/queryplanner-ng.html, section 4)
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
        (journal,) = one_row(connection, "PRAGMA journal_mode=WAL")
        if journal != "wal":
            raise StoreUnavailable(reason=f"the index cannot use a write-ahead log here (journal mode {journal})")
        connection.execute(f"PRAGMA synchronous={'FULL' if durability == 'full' else 'NORMAL'}")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    except apsw.Error as error:
        connection.close()
        raise to_domain_error(error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def database_files(path: Path) -> list[Path]:
    """Return the files that SQLite opens for a database in WAL mode.

    Includes those beside the target of a link.
    """
    paths = dict.fromkeys((path, Path(os.path.realpath(path))))
    return [path_.with_name(path_.name + suffix) for path_ in paths for suffix in ("", "-wal", "-shm", "-journal")]


def all_rows(connection: apsw.Connection, sql: str, parameters: apsw.Bindings = ()) -> list[Any]:
    """Return the rows of a query as tuples."""
    return connection.execute(sql, parameters).fetchall()


def one_row(connection: apsw.Connection, sql: str, parameters: apsw.Bindings = ()) -> Any:
    """Return the only row of a query as a tuple, or None.

    APSW's `fetchone` would leave the query unfinished. An unfinished query holds its snapshot, and so the log, open.
    """
    rows = all_rows(connection, sql, parameters)
    return rows[0] if rows else None


def to_domain_error(error: Exception) -> DomainError:
    """Return the domain error for an error of SQLite or its filesystem.

    Details go to the log only.
    """
    if isinstance(error, UnsafeFile):
        return StoreUnavailable(reason=str(error))
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Overloaded(reason="the index is locked")
    code = getattr(error, "extendedresult", -1)
    name = apsw.mapping_extended_result_codes.get(code) or apsw.mapping_result_codes.get(code, "")
    logger.error("index: %s %s: %s", type(error).__name__, name, error)
    if isinstance(error, apsw.FullError):
        return StoreFull(reason="the index has no space left")
    if is_corrupt(error):
        return StoreUnavailable(reason="its file is damaged: `sluice rebuild --replace` makes it again from the data")
    return StoreUnavailable(reason="the index cannot be used")


def is_corrupt(error: Exception) -> bool:
    """Return whether SQLite reports that the file is damaged or is no database."""
    return isinstance(error, apsw.CorruptError | apsw.NotADBError)


def network_filesystem(path: Path) -> str | None:
    """Return the network or user-space filesystem that holds `path`, None when local."""
    if not sys.platform.startswith("linux"):
        return None
    buffer = ctypes.create_string_buffer(512)
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer) != 0:
        return None
    magic = ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
    return NETWORK_FILESYSTEMS.get(magic)


def refuse_network(directory: Path) -> None:
    """Raise StoreUnavailable when `directory` is on a filesystem that is unsafe for SQLite."""
    kind = network_filesystem(directory)
    if kind is not None:
        raise StoreUnavailable(
            reason=f"the index must be on a local disk and {directory} is on {kind}: choose another place for it "
            "with --index sqlite:////PATH"
        )
