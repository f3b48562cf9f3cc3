"""Brings an index to the revision that this code needs. Alembic is imported only where it is used."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path

from app.errors import StoreUnavailable
from app.index.connection import open_connection
from app.index.schema import REVISION


def revision(connection: sqlite3.Connection) -> str | None:
    """The revision of an index, None when it holds no tables yet."""
    known = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone()
    if known is None:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def check(connection: sqlite3.Connection) -> None:
    """Raise StoreUnavailable when the index is not of the revision that this code needs."""
    found = revision(connection)
    if found != REVISION:
        raise StoreUnavailable(reason=f"the index is of revision {found} and this version needs {REVISION}")


def upgrade(path: Path, lock_path: Path) -> None:
    """Make or upgrade the index at `path`, alone under the file lock of its commits."""
    lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        new = not path.exists()
        if new:  # it will hold secret keys; SQLite gives its log the same mode
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = open_connection(path, create=True)
        try:
            if revision(connection) == REVISION:
                return
        finally:
            connection.close()
        _run_alembic(path)
        if new:
            _sync_directory(path.parent)
            _sync_directory(path.parent.parent)
    finally:
        os.close(lock)


def _run_alembic(path: Path) -> None:
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import NullPool

    import migrations

    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent).replace("%", "%%"))
    engine = create_engine("sqlite://", creator=lambda: open_connection(path), poolclass=NullPool)
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.connect() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    engine.dispose()


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
