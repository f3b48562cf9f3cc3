"""Connections to the SQLite file: how each is set up, what it refuses, and what its errors mean."""

from __future__ import annotations

import ctypes
import logging
import os
import sqlite3
import sys
from pathlib import Path

from app.errors import DomainError, Overloaded, StoreFull, StoreUnavailable

logger = logging.getLogger("sluice.index")

BUSY_TIMEOUT = 5.0
"""Seconds to wait for a process that does not take our file lock (a `sqlite3` shell, a backup)."""
CACHE_KIB = 32 * 1024
STATEMENTS = 256
"""Compiled statements a connection keeps; more than there are."""

NETWORK_FILESYSTEMS = {
    0x6969: "NFS",
    0x517B: "SMB",
    0xFE534D42: "SMB",
    0xFF534D42: "CIFS",
    0x65735546: "FUSE",
    0x01021997: "9P",
    0x00C36400: "Ceph",
    0x5346414F: "AFS",
}
"""statfs(2) magic numbers of filesystems on which SQLite's WAL loses data (sqlite.org/wal.html: shared memory)."""


def open_connection(path: Path, *, durability: str = "full", create: bool = False) -> sqlite3.Connection:
    """A connection in WAL mode that commits by itself, without checkpoints of its own.

    Raises StoreUnavailable when there is no index at `path` (unless `create`) or when it cannot be in WAL mode.
    """
    mode = "rwc" if create else "rw"
    try:
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_TIMEOUT,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=STATEMENTS,
        )
    except sqlite3.Error as error:
        raise translated(error) from error
    try:
        (journal,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
        if journal != "wal":
            raise StoreUnavailable(reason=f"the index cannot use a write-ahead log here (journal mode {journal})")
        connection.execute(f"PRAGMA synchronous={'FULL' if durability == 'full' else 'NORMAL'}")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    except sqlite3.Error as error:
        connection.close()
        raise translated(error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def translated(error: Exception) -> DomainError:
    """The domain error for what SQLite (or the file system under it) raised. Details go to the log only."""
    code = getattr(error, "sqlite_errorcode", None)
    primary = code & 0xFF if code is not None else None
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return Overloaded(reason="the index is locked")
    logger.error("index: %s %s: %s", type(error).__name__, getattr(error, "sqlite_errorname", ""), error)
    if primary == sqlite3.SQLITE_FULL:
        return StoreFull(reason="the index has no space left")
    return StoreUnavailable(reason="the index cannot be used")


def network_filesystem(path: Path) -> str | None:
    """The kind of network or user-space filesystem that holds `path`, None for a local one."""
    if not sys.platform.startswith("linux"):
        return None
    buffer = ctypes.create_string_buffer(512)
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer) != 0:
        return None
    magic = ctypes.c_long.from_buffer(buffer).value & 0xFFFFFFFF
    return NETWORK_FILESYSTEMS.get(magic)


def refuse_network(directory: Path) -> None:
    """Raise StoreUnavailable when the index would lie on a filesystem that SQLite cannot trust."""
    kind = network_filesystem(directory)
    if kind is not None:
        raise StoreUnavailable(
            reason=f"the index must be on a local disk and {directory} is on {kind}: choose another place for it "
            "with --index sqlite:////PATH"
        )
