"""Checkpoints: an elected process copies the write-ahead log back, which bounds its size."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.sqlite.connection import one_row
from sluice_s3.app.index.sqlite.disk_reserve import is_tight, keep_again, release, reserve_bytes
from sluice_s3.app.private_files import open_file

logger = logging.getLogger("sluice.index")

CHECK_SECONDS = 1.0
"""Seconds between checks."""
COPY_FROM = 4 << 20
"""Bytes of log from which it is copied back, in parallel to commits."""
RESTART_FROM = 64 << 20
"""Bytes of log from which commits wait until the whole log is copied back and restarts."""
PATIENCE_MS = 200
"""Milliseconds that commits may wait for a reader to leave the log. After that, the next check retries."""


class Checkpointer:
    """A thread that checkpoints while it holds `lock_path`, by which one process is elected.

    `write_lock` is the file lock of the commits.
    """

    def __init__(self, connect: Callable[[], apsw.Connection], wal: Path, lock_path: Path, write_lock: Path) -> None:
        self._connect = connect
        self._wal = wal
        self._lock_path = lock_path
        self._write_lock = write_lock
        self._copied_version: int | None = None
        """SQLite's data_version at which the whole log was copied: commits of other connections change it."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sluice-checkpoint", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after a checkpoint in progress."""
        self._stop.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        lock = open_file(self._lock_path)
        connection: apsw.Connection | None = None
        elected = False
        try:
            while not self._stop.wait(CHECK_SECONDS):
                elected = elected or _try_lock(lock)
                if not elected:
                    continue
                try:
                    if wal_size(self._wal) < min(COPY_FROM, reserve_bytes(self._wal) // 2):
                        continue
                    if connection is None:
                        connection = self._connect()
                        connection.execute(f"PRAGMA busy_timeout={PATIENCE_MS}")
                    self.checkpoint(connection)
                except (apsw.Error, DomainError, OSError) as error:
                    logger.error("index: checkpoint: %s", error)
        finally:
            if connection is not None:
                connection.close()
            os.close(lock)

    def checkpoint(self, connection: apsw.Connection) -> None:
        """Copy the log back as far as possible, if there were commits since it was copied whole.

        Restarts the log when it is copied whole or too long, or the disk is full.
        """
        if is_tight(self._wal):
            self._make_space(connection)
            return
        (version,) = one_row(connection, "PRAGMA data_version")
        if version == self._copied_version:
            return
        _, frames, copied = one_row(connection, "PRAGMA wal_checkpoint(PASSIVE)")
        (page_size,) = one_row(connection, "PRAGMA page_size")
        if frames * page_size >= RESTART_FROM:
            with self._commits_waiting():
                mode = "TRUNCATE" if wal_size(self._wal) > 2 * RESTART_FROM else "RESTART"
                self._begin_anew(connection, mode)
                _commit_nothing(connection)
        elif copied == frames:
            with self._commits_waiting():
                _commit_nothing(connection)
            self._copied_version = version

    def _make_space(self, connection: apsw.Connection) -> None:
        """Restart the log and return unneeded space to the disk.

        Without that, no row can be added again. The database may have to grow by the contents of the log. It gets the
        space that is reserved for deletes, and does not need that space twice.
        """
        with self._commits_waiting():
            mode = "TRUNCATE" if wal_size(self._wal) > 2 * reserve_bytes(self._wal) else "RESTART"
            try:
                self._begin_anew(connection, mode)
            except apsw.FullError:
                connection.execute("BEGIN IMMEDIATE")  # also keeps out writers that do not take our file lock
                try:
                    release(self._wal)
                finally:
                    connection.execute("ROLLBACK")
                try:
                    self._begin_anew(connection, mode)
                finally:
                    keep_again(self._wal)

    def _begin_anew(self, connection: apsw.Connection, mode: str) -> None:
        busy, _, _ = one_row(connection, f"PRAGMA wal_checkpoint({mode})")
        if busy:
            logger.warning("index: a reader keeps the log from being reset (%d bytes)", wal_size(self._wal))

    @contextmanager
    def _commits_waiting(self) -> Iterator[None]:
        lock = open_file(self._write_lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def wal_size(wal: Path) -> int:
    """Return the size of the log file in bytes, 0 when there is none."""
    try:
        return os.stat(wal).st_size
    except FileNotFoundError:
        return 0


def _commit_nothing(connection: apsw.Connection) -> None:
    """Make the first commit after the log was copied whole: it begins the log at its start, and syncs that.

    A relaxed index commits on the event loop, which must not wait for this sync. It writes a number that nothing reads,
    because SQLite writes no page whose content stays the same.
    """
    (number,) = one_row(connection, "PRAGMA user_version")
    with suppress(apsw.BusyError):  # another program writes: then its commit comes first
        connection.execute(f"PRAGMA user_version={(number + 1) % (1 << 31)}")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
