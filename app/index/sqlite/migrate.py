"""Creates an index, or upgrades it to the revision that this code needs.

A new index gets its tables at once: Alembic and what it imports take longer than all else of a first start.

Alembic is imported only where it is used. SQLAlchemy has no driver for APSW, so Alembic uses the standard library's
module, which is another build of SQLite in this process. The two builds must never have one file open at the same time.
Each assumes that it alone holds the fcntl locks of the process, and the kernel drops those as soon as either build
closes any descriptor of the file (sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
from sqlalchemy import create_mock_engine

from sluice_s3.app.errors import DomainError, StoreFull, StoreUnavailable
from sluice_s3.app.index.schema.tables import OLDEST_REVISION, REVISION, UNKNOWN_REVISION, metadata
from sluice_s3.app.index.sqlite import commit_witness
from sluice_s3.app.index.sqlite.connection import BUSY_TIMEOUT_MS, one_row, open_connection, to_domain_error
from sluice_s3.app.private_files import open_file, sync_directory

logger = logging.getLogger("sluice.index")

_VERSION_TABLE = """
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""
"""As Alembic creates it."""
TOO_OLD = (
    "the index is of revision {}, whose files this version cannot read: start the version that wrote it, and copy the "
    "buckets with `sluice pull` to a new gateway"
)


def revision(connection: apsw.Connection) -> str | None:
    """Return the revision of an index, or None when it has no tables yet."""
    versioned = one_row(connection, "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'")
    if versioned is None:
        return None
    row = one_row(connection, "SELECT version_num FROM alembic_version")
    return None if row is None else str(row[0])


def require_revision(connection: apsw.Connection) -> None:
    """Raise StoreUnavailable unless the index has the revision that this code needs."""
    current = revision(connection)
    if current != REVISION:
        raise StoreUnavailable(reason=f"the index is of revision {current} and this version needs {REVISION}")


def was_never_served(path: Path) -> bool:
    """Return whether an index is what a refused start leaves: tables without an account.

    Raises DomainError for a file that cannot be opened.
    """
    with closing(open_connection(path)) as connection:
        return revision(connection) == REVISION and one_row(connection, "SELECT 1 FROM accounts LIMIT 1") is None


def upgrade(path: Path, lock_path: Path, *, keep: bool = True) -> None:
    """Create or upgrade the index at `path`, under the exclusive file lock of its commits.

    With `keep`, an upgrade leaves a copy of the older one beside it, since there is no way back. Raises DomainError;
    StoreFull also when there is no room for the copy.
    """
    lock = open_file(lock_path)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        new = not path.exists()
        if new:  # it will hold secret keys; SQLite gives its log the same mode
            commit_witness.forget(lock_path.parent)
            real_path = os.path.realpath(path)  # the owner of this link was checked; a link at its target is refused
            os.close(os.open(real_path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        with closing(open_connection(path, create=True)) as connection:
            current = revision(connection)
            if current == REVISION:
                return
            if current is not None and current < OLDEST_REVISION:
                raise StoreUnavailable(reason=TOO_OLD.format(current))
            is_empty = one_row(connection, "SELECT 1 FROM sqlite_master") is None
            if is_empty:
                create_tables(connection)
            elif keep and current is not None and current < REVISION:
                kept = _keep_copy(connection, path, current)
                logger.warning(
                    "index: upgrading it from revision %s to %s; earlier versions of Sluice cannot use it then. "
                    "A copy of the older one is %s",
                    current,
                    REVISION,
                    kept,
                )
        if not is_empty:
            # APSW has closed the file, and nothing in this process can have it open: `require_revision` refuses this
            # revision
            _run_alembic(path)
        if new:
            sync_directory(path.parent)
            sync_directory(path.parent.parent)
    finally:
        os.close(lock)


def _keep_copy(connection: apsw.Connection, path: Path, current: str) -> Path:
    """Copy an index that will be upgraded, durably, and return where to. Raises DomainError."""
    kept, unfinished = path.with_name(f"{path.name}.of-{current}"), path.with_name(f"{path.name}.unfinished-copy")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with closing(apsw.Connection(str(unfinished))) as copy, copy.backup("main", connection, "main") as backup:
            backup.step(-1)
        unfinished.rename(kept)  # SQLite has synced the copy
        sync_directory(kept.parent)
    except apsw.Error as error:
        unfinished.unlink(missing_ok=True)
        raise to_domain_error(error) from error
    return kept


def table_definitions() -> list[str]:
    """Return the statements that create the tables and indexes of this revision."""
    statements: list[str] = []

    def keep(definition: Any, *_: Any) -> None:
        statements.append(str(definition.compile(dialect=engine.dialect)))

    engine = create_mock_engine("sqlite://", keep)
    metadata.create_all(engine, checkfirst=False)
    return statements


def create_tables(connection: apsw.Connection) -> None:
    """Create in one transaction what all migrations create. Raises DomainError."""
    try:
        with closing(connection.cursor()) as cursor:
            cursor.execute("BEGIN IMMEDIATE")
            for statement in (*table_definitions(), _VERSION_TABLE):
                cursor.execute(statement)
            cursor.execute("INSERT INTO alembic_version VALUES (?)", (REVISION,))
            cursor.execute("INSERT INTO sequence (id, value) VALUES (1, 0)")
            cursor.execute("COMMIT")
    except apsw.Error as error:
        raise to_domain_error(error) from error


def _run_alembic(path: Path) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError
    from sqlalchemy import create_engine, event
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import NullPool

    import sluice_s3.migrations

    config = Config()
    config.set_main_option("script_location", str(Path(sluice_s3.migrations.__file__).parent).replace("%", "%%"))
    # SQLAlchemy closes a connection of NullPool on its release: at the end of `with`, before APSW opens the file
    engine = create_engine("sqlite://", creator=lambda: _connection(path), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    try:
        with engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except CommandError as error:
        raise StoreUnavailable(reason=UNKNOWN_REVISION.format(error)) from error
    except DBAPIError as error:
        raise _translated(error.orig) from error
    finally:
        engine.dispose()


def _translated(error: BaseException | None) -> DomainError:
    """Return the domain error for an error of the standard library's module.

    See `connection.to_domain_error`.
    """
    logger.error("index: %s %s: %s", type(error).__name__, getattr(error, "sqlite_errorname", ""), error)
    if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL:
        return StoreFull(reason="the index has no space left")
    return StoreUnavailable(reason="the index cannot be used")


def _connection(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None)
