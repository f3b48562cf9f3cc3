"""What connections insist on, the shared generation, and checkpoints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import apsw
import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.engine.generation import Generation
from sluice_s3.app.index.sqlite import checkpoint, connection
from sluice_s3.app.index.sqlite.connection import open_connection
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.settings import Settings
from tests.unit.index.tools import new, open_at


@pytest.mark.parametrize(("durability", "synchronous"), [("full", 2), ("relaxed", 1)])
def test_a_connection_logs_ahead_and_syncs_as_told(template: Path, durability: str, synchronous: int) -> None:
    opened = open_connection(template, durability=durability)
    assert opened.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    assert opened.execute("PRAGMA synchronous").fetchall() == [(synchronous,)]
    assert opened.execute("PRAGMA wal_autocheckpoint").fetchall() == [(0,)]
    opened.close()


def test_statements_are_compiled_once(template: Path) -> None:
    """And not again for other parameters, which made a PUT a tenth."""
    opened = open_connection(template)
    assert opened.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
    opened.close()


def test_an_index_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable):
        open_connection(tmp_path / "sluice.db")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sluice.db"
    path.write_bytes(b"not a database at all, but long enough to look like one" * 100)
    with pytest.raises(StoreUnavailable):
        open_connection(path)


def test_a_path_with_odd_characters(tmp_path: Path) -> None:
    path = tmp_path / "100% ?#ü.db"
    open_connection(path, create=True).close()
    assert path.exists()


def test_no_log_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a mount without shared memory: SQLite answers with the mode that it kept."""

    class NoWal(apsw.Connection):
        def execute(self, sql: str, *arguments: Any) -> apsw.Cursor:
            return super().execute(sql.replace("journal_mode=WAL", "journal_mode=DELETE"), *arguments)

    monkeypatch.setattr(apsw, "Connection", NoWal)
    with pytest.raises(StoreUnavailable, match="write-ahead log"):
        open_connection(tmp_path / "sluice.db", create=True)


async def test_a_network_filesystem_is_refused(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert connection.network_filesystem(directory) is None
    magic = statfs_magic(directory)
    monkeypatch.setitem(connection.NETWORK_FILESYSTEMS, magic, "NFS")
    refused = open_at(directory)
    with pytest.raises(StoreUnavailable, match="NFS"):
        await refused.start()
    allowed = open_at(directory, local_only=False)
    await allowed.start()
    await allowed.close()


def statfs_magic(path: Path) -> int:
    """Through `stat`, another way than the one under test."""
    import subprocess

    answer = subprocess.run(["stat", "-f", "-c", "%t", str(path)], capture_output=True, text=True, check=True)
    return int(answer.stdout, 16)


def test_the_generation_is_shared_by_all_who_map_it(tmp_path: Path) -> None:
    one, two = Generation(tmp_path / "generation"), Generation(tmp_path / "generation")
    assert one.words[0] == two.words[0] == 0
    one.bump()
    two.bump()
    assert one.words[0] == two.words[0] == 2
    one.close()
    one.close()
    three = Generation(tmp_path / "generation")
    assert three.words[0] == 2
    two.close()
    three.close()


def test_bumps_of_many_processes_are_all_counted(tmp_path: Path) -> None:
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            mine = Generation(tmp_path / "generation")
            for _ in range(500):
                mine.bump()
            os._exit(0)
        children.append(pid)
    for pid in children:
        assert os.waitpid(pid, 0)[1] == 0
    generation = Generation(tmp_path / "generation")
    assert generation.words[0] == 2000
    generation.close()


async def test_settings_name_the_index(tmp_path: Path) -> None:
    from sluice_s3.app.index import open_index

    index = open_index(Settings(data=tmp_path, index=f"sqlite:///{tmp_path}/elsewhere/i.db", durability="relaxed"))
    await index.start(migrate=True)
    assert (tmp_path / "elsewhere" / "i.db").exists()
    assert (tmp_path / "elsewhere" / "run" / "generation").exists()
    assert index.wal_bytes > 0
    await index.close()


def checkpointer(directory: Path) -> checkpoint.Checkpointer:
    path = directory / "sluice.db"
    return checkpoint.Checkpointer(
        lambda: open_connection(path),
        Path(f"{path}-wal"),
        directory / "run" / "checkpoint.lock",
        directory / "run" / "index.lock",
    )


async def test_the_log_is_copied_and_begins_anew(
    index: SqliteIndex, bucket: Bucket, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "RESTART_FROM", 200_000)
    for number in range(100):
        await index.put_version(bucket.id, f"k{number}", new(headers="x" * 3000))
    assert index.wal_bytes > 2 * 200_000
    one = checkpointer(directory)
    opened = open_connection(directory / "sluice.db")
    one.checkpoint(opened)
    assert 0 < index.wal_bytes < 10_000  # far beyond the bound, so it was cut off as well
    for number in range(100):
        await index.put_version(bucket.id, f"k{number}", new(headers="y" * 3000))
    assert len((await index.list_current(bucket.id, "", "", "", 1000)).entries) == 100
    opened.close()


async def test_a_small_log_is_copied_beside_running_commits(
    index: SqliteIndex, bucket: Bucket, directory: Path
) -> None:
    await index.put_version(bucket.id, "k", new())
    before = (directory / "sluice.db").read_bytes()
    opened = open_connection(directory / "sluice.db")
    checkpointer(directory).checkpoint(opened)
    assert (directory / "sluice.db").read_bytes() != before
    assert index.wal_bytes > 0
    opened.close()


async def test_a_reader_only_delays_the_new_beginning(
    index: SqliteIndex, bucket: Bucket, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint, "RESTART_FROM", 1)
    reader = open_connection(directory / "sluice.db")
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM versions").fetchall()
    await index.put_version(bucket.id, "k", new())
    opened = open_connection(directory / "sluice.db")
    opened.execute("PRAGMA busy_timeout=10")
    checkpointer(directory).checkpoint(opened)
    assert index.wal_bytes > 0
    await index.put_version(bucket.id, "k2", new())  # and commits go on
    reader.close()
    checkpointer(directory).checkpoint(opened)
    assert 0 < index.wal_bytes < 10_000
    opened.close()


async def test_the_checkpointer_begins_the_log_that_it_has_copied(
    index: SqliteIndex, bucket: Bucket, directory: Path
) -> None:
    """The first commit in a log that was copied whole syncs its header: not one of the event loop."""
    opened, beside = (open_connection(directory / "sluice.db") for _ in range(2))
    one = checkpointer(directory)
    header = Path(f"{directory}/sluice.db-wal")

    def begins() -> bytes:
        return header.read_bytes()[16:24]  # the salts, which change when the log restarts

    for number in range(3):
        before = begins()
        await index.put_version(bucket.id, f"k{number}", new())
        assert begins() == before, "the commit went on in the log"
        one.checkpoint(opened)
        assert begins() != before, "the checkpointer began it"
        restarted = begins(), index.wal_bytes
        one.checkpoint(opened)
        assert (begins(), index.wal_bytes) == restarted, "without commits there is nothing to do"
    assert len((await index.list_current(bucket.id, "", "", "", 1000)).entries) == 3
    assert beside.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    opened.close()
    beside.close()


async def test_one_process_at_a_time_checkpoints(
    index: SqliteIndex, bucket: Bucket, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index of the fixture is not elected: someone held the lock before it looked."""
    import threading

    ran = threading.Event()
    monkeypatch.setattr(checkpoint, "CHECK_SECONDS", 0.01)
    monkeypatch.setattr(checkpoint, "COPY_FROM", 1)
    monkeypatch.setattr(checkpoint.Checkpointer, "checkpoint", lambda *_: ran.set())
    one, two = checkpointer(directory), checkpointer(directory)
    await index.put_version(bucket.id, "k", new())
    one.start()
    assert ran.wait(20)
    ran.clear()
    two.start()
    one.stop()
    ran.clear()
    assert ran.wait(20)  # the second took over
    two.stop()
