"""The last commit is remembered outside of the index, and only what is surely of this index and this boot counts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice_s3.app.errors import IndexBehind, StoreUnavailable
from sluice_s3.app.index.sqlite import commit_witness, migrate
from sluice_s3.app.index.sqlite.commit_witness import NAME, CommitWitness
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OWNER


@pytest.fixture
def index_path(tmp_path: Path) -> Path:
    """A file that stands for an index; its directory is the runtime directory, too."""
    path = tmp_path / "sluice.db"
    path.write_bytes(b"index")
    return path


def last_commit(index_path: Path) -> int:
    """What a process reads that opens it now."""
    witness = CommitWitness(index_path.parent, index_path)
    try:
        return witness.read()
    finally:
        witness.close()


def record(index_path: Path, sequence: int) -> None:
    """A server commits, and dies."""
    witness = CommitWitness(index_path.parent, index_path)
    witness.record(sequence)
    witness.close()


def test_all_processes_see_the_last_commit(index_path: Path) -> None:
    one, other = (CommitWitness(index_path.parent, index_path) for _ in range(2))
    one.record(5)
    assert other.read() == 5
    other.record((1 << 62) + 1)
    one.close()
    other.close()
    assert last_commit(index_path) == (1 << 62) + 1


def test_a_copy_over_the_index_is_compared(index_path: Path) -> None:
    record(index_path, 5)
    index_path.write_bytes(b"older")
    assert last_commit(index_path) == 5


def test_another_file_in_its_place_is_not_compared(index_path: Path) -> None:
    record(index_path, 5)
    index_path.with_name("new").write_bytes(b"rebuilt")
    os.replace(index_path.with_name("new"), index_path)
    assert last_commit(index_path) == 0


def test_another_boot_is_not_compared(index_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record(index_path, 5)
    boot = tmp_path / "boot"
    boot.write_text("another")
    monkeypatch.setattr(commit_witness, "BOOT_ID", boot)
    assert last_commit(index_path) == 0


def test_a_system_without_boot_ids_compares_nothing(
    index_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_witness, "BOOT_ID", tmp_path / "missing")
    record(index_path, 5)
    assert last_commit(index_path) == 0


@pytest.mark.parametrize("torn", ["empty", "zeros", "noise", "without its number", "without its identity"])
def test_a_torn_record_is_not_compared(index_path: Path, torn: str) -> None:
    record(index_path, 5)
    file = index_path.with_name(NAME)
    whole = file.read_bytes()
    file.write_bytes(
        {
            "empty": b"",
            "zeros": bytes(16),
            "noise": b"\xff" * 16,
            "without its number": whole[:8],
            "without its identity": bytes(8) + whole[8:],
        }[torn]
    )
    assert last_commit(index_path) == 0
    record(index_path, 6)
    assert last_commit(index_path) == 6


def test_a_new_index_is_not_compared_with_the_one_before(tmp_path: Path) -> None:
    """Its file may have the inode of the one that was removed."""
    path = tmp_path / "sluice.db"
    path.write_bytes(b"index")
    record(path, 5)
    path.unlink()
    migrate.upgrade(path, tmp_path / "index.lock")
    assert not (tmp_path / NAME).exists()


async def test_an_older_index_takes_no_commit(tmp_path: Path) -> None:
    """A commit would hide that some are missing; who only reads, beside no server, sees what there is."""
    path, run_dir = tmp_path / "sluice.db", tmp_path / "run"
    index = SqliteIndex(path, run_dir)
    await index.start(migrate=True)
    without_log = path.read_bytes()
    bucket = await index.create_bucket("bucket", OWNER, "us-east-1", 10)
    await index.close()
    path.write_bytes(without_log)
    for _ in range(2):
        with pytest.raises(IndexBehind):
            await SqliteIndex(path, run_dir).start(migrate=True)
    reader = SqliteIndex(path, run_dir, writer=False)
    await reader.start()
    assert await reader.bucket("bucket") is None
    with pytest.raises(StoreUnavailable, match="lacks acknowledged writes"):
        await reader.create_bucket("other", OWNER, "us-east-1", 10)
    with pytest.raises(IndexBehind):
        await reader.check()
    await reader.close()
    assert bucket.name == "bucket"
