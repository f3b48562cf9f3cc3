"""Files and directories of others that a gateway may not read, or that are rotten, stop nothing but themselves."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from sluice_s3.app.cli.import_ import import_command
from sluice_s3.app.errors import BucketAlreadyExists, BucketNotEmpty, StoreUnavailable
from sluice_s3.app.jobs.plain_files import scan as tree_jobs
from sluice_s3.app.jobs.plain_files.scan import PlainFileScanner
from sluice_s3.app.jobs.plain_files.watch import reconcile_paths
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import buckets
from sluice_s3.app.store.plain_files.reads import SMALL_FILE_BYTES, is_provisional_etag
from sluice_s3.app.store.plain_files.reconcile import reconcile_bucket
from sluice_s3.storage_drivers.tree import openat2
from tests.unit.store.test_tree import md5, opened, put, read, settings

pytestmark = pytest.mark.slow

__all__ = ["settings"]

Close = Callable[..., None]


@pytest.fixture
def close(monkeypatch: pytest.MonkeyPatch) -> Close:
    """Make files and directories answer with an error, also for root."""
    whole = openat2.open_beneath
    closed: dict[bytes, int] = {}

    def refusing(root: int, path: bytes, flags: int) -> int:
        for name, number in closed.items():
            if path.startswith(name + b"/") or (path == name and not flags & os.O_PATH):
                raise OSError(number, os.strerror(number))
        return whole(root, path, flags)

    # what is known to be regular is opened through /proc else
    monkeypatch.setattr(openat2, "_has_proc", lambda: False)
    monkeypatch.setattr(openat2, "open_beneath", refusing)

    def change(*paths: str, number: int = errno.EACCES, again: bool = False) -> None:
        for path in paths:
            closed.pop(path.encode(), None) if again else closed.update({path.encode(): number})

    return change


def make(root: Path, *keys: str, body: bytes = b"body") -> None:
    for key in keys:
        path = root / "bucket" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
        os.utime(path, (1, 1))  # settled


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EIO])
async def test_a_directory_that_cannot_be_read_hides_no_other(settings: Settings, close: Close, number: int) -> None:
    async with opened(settings) as (store, tree, bucket):
        await put(tree, bucket, "closed/ours", b"ours")
        make(tree.files.root, "a", "closed/in/a", "z/a")
        close("bucket/closed", number=number)
        scanned = await reconcile_bucket(tree, bucket)
        assert (scanned.adopted, scanned.vanished, scanned.counts.unreadable) == (2, 0, 1)
        with pytest.raises(StoreUnavailable):
            await tree.find(bucket, "closed/ours")
        await reconcile_paths(tree, bucket, ["bucket/closed/ours", "bucket/closed/in/a", "bucket/a"], scanned)
        assert (scanned.adopted, scanned.vanished) == (2, 0)
        close("bucket/closed", again=True)
        assert await read(store, tree, bucket, "closed/ours") == (md5(b"ours"), b"ours")
        assert (await reconcile_bucket(tree, bucket)).adopted == 1


async def test_a_bucket_that_cannot_be_read_is_not_empty(settings: Settings, close: Close) -> None:
    async with opened(settings) as (store, tree, bucket):
        make(tree.files.root, "closed/a")
        close("bucket/closed")
        with pytest.raises(BucketNotEmpty):
            await buckets.delete_bucket(store, bucket)
        (tree.files.root / "other" / "closed").mkdir(parents=True)
        close("other/closed")
        with pytest.raises(BucketAlreadyExists):
            await buckets.create_bucket(store, "other", "owner", "r", 10)
        close("bucket")
        with pytest.raises(StoreUnavailable):
            await reconcile_bucket(tree, bucket)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EIO])
async def test_a_file_that_cannot_be_read_keeps_no_other_from_its_hashes(
    settings: Settings, close: Close, number: int
) -> None:
    async with opened(settings) as (store, tree, bucket):
        make(tree.files.root, "a", "closed", "z")
        make(tree.files.root, "large", body=b"l" * (SMALL_FILE_BYTES + 1))
        close("bucket/closed", "bucket/large", number=number)
        now = [0.0]
        jobs = PlainFileScanner(store, tree, 10, lambda: now[0])
        now[0] = 10.0
        assert await jobs.run_once() == 2
        etags = {}
        for key in ("a", "closed", "large", "z"):
            version = await tree.find(bucket, key)
            assert version is not None
            etags[key] = version.etag if not is_provisional_etag(version) else ""
        assert etags == {"a": md5(b"body"), "z": md5(b"body"), "closed": "", "large": ""}
        make(tree.files.root, "new")
        now[0] = 20.0
        assert await jobs.run_once() == 1
        close("bucket/closed", "bucket/large", again=True)
        assert await jobs.run_once() == 0  # not each second again
        now[0] += tree_jobs.RETRY_SECONDS
        assert await jobs.run_once() == 2
        assert await tree.index.unhashed(0, 10) == []


def test_import_says_that_not_all_can_be_read(
    settings: Settings, close: Close, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "tree", "a", "closed/a", "file")
    config = tmp_path / "config.toml"
    config.write_text(f'[stores.default]\npath = "{tmp_path / "tree"}"\nlayout = "tree"\n')
    close("bucket/closed", "bucket/file")
    with pytest.raises(typer.Exit) as left:
        import_command("bucket", None, None, True, None, config, None, False)
    assert left.value.exit_code == 1
    told = capsys.readouterr()
    assert "2 files are in bucket bucket (2 of them new or changed" in told.out
    assert "1 hashed" in told.out
    assert "2 files and directories cannot be read" in told.err
