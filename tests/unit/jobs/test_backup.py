"""Backups taken while a store changes: what they have, what they copy, and what becomes of them."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import DataDamaged, StoreUnavailable
from sluice_s3.app.index.sqlite.connection import open_connection
from sluice_s3.app.index.sqlite.migrate import require_revision
from sluice_s3.app.index.tools.backup import take_out
from sluice_s3.app.jobs.backup import copier, create, directory, restore
from sluice_s3.app.jobs.backup.check import Report, check
from sluice_s3.app.jobs.backup.copying import Copied
from sluice_s3.app.jobs.backup.create import Summary
from sluice_s3.app.jobs.backup.directory import BackupDirectory
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.rebuild import Rebuild
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import CannotStart, prepare
from sluice_s3.app.store.offline import open_offline_stores
from sluice_s3.app.store.store import Store
from tests.support.environment import sized
from tests.support.settings import make_settings
from tests.unit.index.test_migrations import older
from tests.unit.jobs.mixed import THRESHOLD, Past, tables, writing
from tests.unit.jobs.packed import PACK, collect, compact, delete
from tests.unit.jobs.test_rebuild import bodies
from tests.unit.store.site import opened, put

pytestmark = pytest.mark.slow


def quiet(*_: object) -> None:
    """Show no progress."""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path / "source", pack_size=PACK, pack_threshold=THRESHOLD)
    prepare(made)
    return made


def target(tmp_path: Path, name: str = "restored") -> Settings:
    return make_settings(tmp_path / name, pack_size=PACK, pack_threshold=THRESHOLD)


async def back_up(settings: Settings, tmp_path: Path, *, keys: bool = True) -> Summary:
    return await create.create(settings, BackupDirectory(tmp_path / "backups"), keys=keys, progress=quiet)


async def restored(settings: Settings, tmp_path: Path, name: str | None = None) -> Report:
    """Restore in a thread, as the command does, and start as `sluice serve` does, up to its workers."""
    work = restore.Restore(settings, BackupDirectory(tmp_path / "backups"), name, quiet)
    report = await asyncio.to_thread(work.run)
    await asyncio.to_thread(prepare, settings)
    return report


def hashes(found: dict[Any, tuple[Any, int]]) -> dict[Any, Any]:
    """Rows without their numbers in the commit sequence, and hashes of bodies."""
    return {place: (version._replace(body=""), digest) for place, (version, digest) in found.items()}


def during_copy(monkeypatch: pytest.MonkeyPatch, change: Callable[[], Any]) -> None:
    """Run `change` on the event loop when the index is copied and nothing of the data is."""
    run, loop = copier.Copier.run, asyncio.get_running_loop()

    def changed(self: copier.Copier, progress: copier.Progress, stopped: threading.Event) -> copier.Copies:
        asyncio.run_coroutine_threadsafe(change(), loop).result(60)
        return run(self, progress, stopped)

    monkeypatch.setattr(copier.Copier, "run", changed)


async def all_goes(store: Store) -> None:
    """Whatever is discarded goes, and packs are compacted until nothing moves."""
    await store.close_packs()
    store.open_packs()
    for _ in range(3):
        await collect(store)
        await compact(store)
    await collect(store)


async def test_a_backup_has_the_state_of_its_index_whatever_happens_meanwhile(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with writing(settings) as store:
        past = Past(store, seed=11, keys=sized(60, 5000))
        await past.begin()
        await past.run(sized(400, 20_000))
        await JournalWriter(store).run_once()

        async def changed() -> None:
            await past.run(sized(400, 20_000))
            for bucket in past.buckets:
                entries = (await store.index.list_current(bucket.id, "", "", "", 1000)).entries
                await delete(store, bucket, *(entry.key for entry in entries[::2]))
            await all_goes(store)
            assert await store.index.discards(0, 1), "the hold has nothing to hold"

        await all_goes(store)
        before = hashes(await bodies(store))
        during_copy(monkeypatch, changed)
        made = await back_up(settings, tmp_path)
        after = hashes(await bodies(store))
        waiting = len(await store.index.discards(0, 10_000))
        await all_goes(store)
        assert len(await store.index.discards(0, 10_000)) < waiting, "the hold ended with the backup"
    assert (made.faults, before != after) == ([], True)
    new = target(tmp_path)
    report = await restored(new, tmp_path)
    assert report.whole
    async with writing(new) as store:
        assert hashes(await bodies(store)) == before
        assert (await fsck(store, repair=False)).damaged is False
        bucket = await store.index.bucket("once")
        assert bucket is not None
        await put(store, bucket, "later", b"it goes on")
        await JournalWriter(store).run_once()
        now = hashes(await bodies(store))
        await all_goes(store)
        assert hashes(await bodies(store)) == now
    before_rebuild = tables(new.index_path)
    shutil.rmtree(new.index_path.parent)
    with Rebuild(open_offline_stores(new), new.index_path, progress=quiet) as work:
        work.run()
        assert list(work.find_lost()) == []
        work.install(replace=False)
    assert tables(new.index_path)["versions"] == before_rebuild["versions"], "its journals have everything"


async def test_the_next_backup_copies_what_is_new(settings: Settings, tmp_path: Path) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        for number in range(20):
            await put(store, bucket, f"small{number}", os.urandom(3000))
        await put(store, bucket, "large", os.urandom(100_000))
        first = await back_up(settings, tmp_path)
        second = await back_up(settings, tmp_path)
        await put(store, bucket, "one more", os.urandom(5000))
        await put(store, bucket, "large too", os.urandom(50_000))
        third = await back_up(settings, tmp_path)
        await delete(store, bucket, "large")
        fourth = await back_up(settings, tmp_path)
    assert 160_000 < first.copied_bytes == first.bytes < 170_000
    assert (second.copied_files, second.copied_bytes, second.bytes) == (0, 0, first.bytes)
    assert (third.copied_files, third.copied_bytes) == (2, third.bytes - first.bytes)
    assert 55_000 < third.copied_bytes < 56_500
    assert fourth.copied_bytes == 0
    backups = BackupDirectory(tmp_path / "backups")
    assert backups.snapshots() == [first.name, second.name, third.name, fourth.name]
    assert backups.prune(2)[:2] == (2, 0)
    assert backups.prune(1)[:2] == (1, 1), "the file of `large`"
    assert check(backups, None, quiet).whole
    assert (await restored(target(tmp_path), tmp_path)).files == 2


async def test_what_an_interrupted_backup_copied_is_used(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await put(store, bucket, "large", os.urandom(100_000))
        with monkeypatch.context() as patched:
            patched.setattr(BackupDirectory, "commit", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await back_up(settings, tmp_path)
        assert BackupDirectory(tmp_path / "backups").snapshots() == []
        made = await back_up(settings, tmp_path)
    assert (made.files, made.copied_files) == (1, 0)
    assert [path.name for path in (tmp_path / "backups/snapshots").iterdir()] == [made.name]
    assert check(BackupDirectory(tmp_path / "backups"), None, quiet).whole


@pytest.fixture
async def made(settings: Settings, tmp_path: Path) -> Path:
    """A directory with a backup of a small and a large object."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await put(store, bucket, "small", b"small")
        await put(store, bucket, "large", os.urandom(100_000))
        await back_up(settings, tmp_path)
    return tmp_path / "backups"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize("harm", [flip, cut, os.unlink], ids=["flipped", "cut", "gone"])
async def test_a_check_names_each_damaged_file(made: Path, tmp_path: Path, harm: Callable[[Path], None]) -> None:
    shared = sorted((made / "data").glob("*/*/*"))
    assert len(shared) == 2
    for path in shared:
        content = path.read_bytes()
        harm(path)
        report = check(BackupDirectory(made), None, quiet)
        assert [name.split(" ")[0] for name, _ in report.damaged] == [str(path.relative_to(made))]
        assert not report.whole
        path.write_bytes(content)
    assert check(BackupDirectory(made), None, quiet).whole
    (snapshot,) = (made / "snapshots").iterdir()
    harm(snapshot / "index.db")
    assert [name for name, _ in check(BackupDirectory(made), None, quiet).damaged] == [
        f"snapshots/{snapshot.name}/index.db"
    ]


async def test_a_restore_of_a_damaged_backup_names_what_is_damaged(made: Path, tmp_path: Path) -> None:
    (large,) = (path for path in (made / "data").glob("*/*/*") if path.stat().st_size > 50_000)
    flip(large)
    report = await restored(target(tmp_path), tmp_path)
    assert [name.split(" ")[0] for name, _ in report.damaged] == [str(large.relative_to(made))]
    async with opened(target(tmp_path)) as store:
        bucket = await store.index.bucket("bucket")
        assert bucket is not None
        found = await bodies_of(store, bucket.id)
    assert found == {"small": b"small", "large": None}


async def bodies_of(store: Store, bucket_id: int) -> dict[str, bytes | None]:
    """Bodies by key; None for one that is damaged."""
    from sluice_s3.app.store import objects, reading

    found: dict[str, bytes | None] = {}
    for entry in (await store.index.list_current(bucket_id, "", "", "", 1000)).entries:
        version = await objects.find(store, bucket_id, entry.key)
        taken = bytearray()
        try:
            await reading.feed_bytes(store, version, 0, version.size, taken.extend)
            found[entry.key] = bytes(taken)
        except DataDamaged:
            found[entry.key] = None
    return found


async def test_what_is_missing_in_the_store_is_named_and_the_rest_is_there(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copier, "RETRY_SECONDS", (0.01,))
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await put(store, bucket, "small", b"small")
        await put(store, bucket, "large", os.urandom(100_000))
    (large,) = (path for path in (settings.data / "data").glob("*/*") if not path.suffix)
    large.unlink()
    made = await back_up(settings, tmp_path)
    name = str(large.relative_to(settings.data))
    assert made.faults == [("default", name, "it is missing")]
    report = check(BackupDirectory(tmp_path / "backups"), None, quiet)
    assert (report.damaged, report.missing) == ([], [(f"default: {name}", "it is missing")])


async def test_a_restore_changes_nothing_of_the_backup(made: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    assert check(BackupDirectory(made), None, quiet).whole
    assert (await restored(target(tmp_path), tmp_path)).whole
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before


async def test_a_restore_wants_an_empty_place(made: Path, settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="not empty"):
        await restored(settings, tmp_path)
    new = target(tmp_path)
    new.data.mkdir(parents=True)
    (new.data / "mine").write_text("mine")
    with pytest.raises(StoreUnavailable, match="not empty: there is 'mine'"):
        await restored(new, tmp_path)
    assert [path.name for path in new.data.iterdir()] == ["mine"]
    (new.data / "mine").unlink()
    (new.data / "index" / "run").mkdir(parents=True)  # of a restore that was refused
    assert (await restored(new, tmp_path)).whole


@pytest.mark.parametrize("step", ["install", "restore_keys"])
async def test_a_restore_that_died_serves_nothing_and_is_run_again(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    new = target(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(restore, step, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            await restored(new, tmp_path)
    with pytest.raises(CannotStart, match="did not end"):
        await asyncio.to_thread(prepare, new)
    (large,) = (path for path in (new.data / "data").glob("*/*") if not path.suffix)
    cut(large)
    if step == "install":
        new.index_path.unlink(missing_ok=True)
        new.index_path.touch()  # as of a start on a full disk
    assert (await restored(new, tmp_path)).whole
    async with opened(new) as store:
        bucket = await store.index.bucket("bucket")
        assert bucket is not None
        assert {key: len(body or b"") for key, body in (await bodies_of(store, bucket.id)).items()} == {
            "small": 5,
            "large": 100_000,
        }
    with pytest.raises(StoreUnavailable, match="not empty"):
        await restored(new, tmp_path)


async def test_two_restores_of_one_backup_share_no_file_of_later_backups(made: Path, tmp_path: Path) -> None:
    """Both go on with the same numbers."""
    for name in ("one", "other"):
        new = target(tmp_path, name)
        await restored(new, tmp_path, BackupDirectory(made).snapshots()[0])
        async with writing(new) as store:
            bucket = await store.index.bucket("bucket")
            assert bucket is not None
            await put(store, bucket, "later", name.encode() * 30_000)
            await back_up(new, tmp_path)
    names = BackupDirectory(made).snapshots()
    for name, snapshot in zip(("one", "other"), names[1:], strict=True):
        again = target(tmp_path, f"{name} again")
        await restored(again, tmp_path, snapshot)
        async with opened(again) as store:
            bucket = await store.index.bucket("bucket")
            assert bucket is not None
            assert (await bodies_of(store, bucket.id))["later"] == name.encode() * 30_000


async def test_a_full_disk_names_the_file(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(source: int, start: int, size: int | None, written: int | None) -> Copied:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(directory, "copy_run", full)
    with pytest.raises(OSError, match=r"No space left.*/restored/"):
        await restored(target(tmp_path), tmp_path)
    with pytest.raises(OSError, match=r"No space left.*/shared"):
        BackupDirectory._write(0, 0, 1, tmp_path / "shared")


async def test_keys_are_private_or_left_out(settings: Settings, tmp_path: Path) -> None:
    made = await back_up(settings, tmp_path)
    snapshot = tmp_path / "backups/snapshots" / made.name
    assert made.keys == ["credentials"]
    files = [path for path in (tmp_path / "backups").rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "backups", snapshot)} == {0o700}
    without = await back_up(settings, tmp_path, keys=False)
    assert (without.keys, (tmp_path / "backups/snapshots" / without.name / "keys").exists()) == ([], False)


async def test_a_damaged_manifest_is_no_older_backup(made: Path, settings: Settings, tmp_path: Path) -> None:
    (snapshot,) = (made / "snapshots").iterdir()
    (snapshot / "manifest.db").write_bytes(b"no database" * 1000)
    (large,) = (path for path in (made / "data").glob("*/*/*") if path.stat().st_size > 50_000)
    flip(large)
    again = await back_up(settings, tmp_path)
    assert again.copied_files == 1, "what is there is read and compared, and the damaged file copied again"
    assert check(BackupDirectory(made), None, quiet).whole
    with pytest.raises(DataDamaged, match="manifest"):
        check(BackupDirectory(made), snapshot.name, quiet)
    flip(made / "snapshots" / again.name / "index.db")
    with pytest.raises(DataDamaged, match="not what was written"):
        await restored(target(tmp_path), tmp_path)
    assert not target(tmp_path).data.exists()


async def test_a_backup_of_another_gateway_or_into_the_store_is_refused(made: Path, tmp_path: Path) -> None:
    other = target(tmp_path, "other")
    await asyncio.to_thread(prepare, other)
    with pytest.raises(StoreUnavailable, match="another gateway"):
        await back_up(other, tmp_path)
    with pytest.raises(StoreUnavailable, match="itself"):
        await back_up(other, other.data)


def test_the_index_of_an_older_backup_is_upgraded_and_the_backup_is_not(tmp_path: Path) -> None:
    path, taken = tmp_path / "index.db", tmp_path / "work" / "index.db"
    taken.parent.mkdir()
    older(path, "0009")
    before = path.read_bytes()
    take_out(path, taken)
    with closing(open_connection(taken)) as connection:
        require_revision(connection)
    assert path.read_bytes() == before
    assert not list(taken.parent.glob("*.of-*"))
