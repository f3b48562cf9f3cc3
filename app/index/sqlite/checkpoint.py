"""Copies the write-ahead log back into the database, in one elected process, and keeps its size bounded."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.sqlite.connection import one_row
from sluice_s3.app.index.sqlite.disk_reserve import is_tight, keep_again, release, reserve_bytes
from sluice_s3.app.private_files import open_file

logger = logging.getLogger("sluice.index")

CHECK_SECONDS = 1.0
"""Seconds between looks."""
COPY_FROM = 4 << 20
"""Bytes of log from which it is copied back, beside running commits."""
RESTART_FROM = 64 << 20
"""Bytes of log from which commits wait until it is copied whole and begins anew."""
PATIENCE_MS = 200
"""How long commits may wait so for a reader to leave the log; then it is tried again at the next look."""


class Checkpointer:
    """A thread that holds `lock_path` while it is the elected one. `write_lock` is the file lock of the commits."""

    def __init__(self, connect: Callable[[], apsw.Connection], wal: Path, lock_path: Path, write_lock: Path) -> None:
        self._connect = connect
        self._wal = wal
        self._lock_path = lock_path
        self._write_lock = write_lock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sluice-checkpoint", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after the copying it may be at."""
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
        """Copy back what can be copied; restart the log when it has grown too long, or the disk is full."""
        if is_tight(self._wal):
            self._make_space(connection)
            return
        _, frames, _ = one_row(connection, "PRAGMA wal_checkpoint(PASSIVE)")
        (page_size,) = one_row(connection, "PRAGMA page_size")
        if frames * page_size < RESTART_FROM:
            return
        with self._commits_waiting():
            mode = "TRUNCATE" if wal_size(self._wal) > 2 * RESTART_FROM else "RESTART"
            self._begin_anew(connection, mode)

    def _make_space(self, connection: apsw.Connection) -> None:
        """Restart the log, and give the disk what it took but does not need: else nothing can be added again.

        The database may have to grow by what is in the log, for which it gets what is kept for deletes. It does not
        need that twice.
        """
        with self._commits_waiting():
            mode = "TRUNCATE" if wal_size(self._wal) > 2 * reserve_bytes(self._wal) else "RESTART"
            try:
                self._begin_anew(connection, mode)
            except apsw.FullError:
                connection.execute("BEGIN IMMEDIATE")  # nor does anybody write who does not know of our lock
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
            logger.warning("index: a reader keeps the log from beginning anew (%d bytes)", wal_size(self._wal))

    @contextmanager
    def _commits_waiting(self) -> Iterator[None]:
        lock = open_file(self._write_lock)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def wal_size(wal: Path) -> int:
    """Bytes of the log file, 0 when there is none."""
    try:
        return os.stat(wal).st_size
    except FileNotFoundError:
        return 0


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
