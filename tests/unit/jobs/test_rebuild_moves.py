"""An index that is lost, or replaced by an older one, while a bucket moves to another store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.relocation import bucket_migration
from sluice_s3.app.jobs.relocation.bucket_migration import BucketMigrator
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.blob_ids import BlobIds
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.layout import ObjectsLayout
from sluice_s3.storage_drivers.packs.holes import MIN_HOLE_BYTES
from tests.unit.jobs.mixed import THRESHOLD
from tests.unit.jobs.packed import compact, complete, content, copy, delete, put_part, start_upload
from tests.unit.jobs.test_bucket_migration import collect, decide, lies_on, whole
from tests.unit.jobs.test_recover import back_up, recovered, restore
from tests.unit.jobs.two import LARGE, make, rebuilt, settings_of, stores
from tests.unit.store.site import Bytes, prepare, put

pytestmark = pytest.mark.slow

BODY_BYTES = THRESHOLD - 1000
OBJECTS = 4 * MIN_HOLE_BYTES // BODY_BYTES
"""Neighbours in a pack: a hole takes all of them but the ends of the first and the last."""
Contents = dict[Bucket, dict[str, bytes]]
WAYS = pytest.mark.parametrize("way", ["rebuild", "recover"])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = settings_of(tmp_path)
    prepare(settings)
    return settings


async def fill(store: Store) -> tuple[Bucket, Bucket]:
    """Return a bucket that fills pages of a pack, and one whose records are before and after these."""
    fast = store.of("fast")
    bucket = await make(store, "fast")
    stays = await store.index.create_bucket("stays", "owner", "us-east-1", 10, "fast")
    await put(fast, stays, "first", b"of the pack")
    for number in range(OBJECTS):
        await put(fast, bucket, f"k{number:02}", os.urandom(BODY_BYTES))
    await put(fast, bucket, "large", LARGE)
    await put(fast, stays, "last", b"of the pack")
    return bucket, stays


async def begin(store: Store, settings: Settings) -> tuple[tuple[Bucket, Bucket], Contents, Path]:
    """Fill the buckets and begin to move the first one; return them, what they have, and a backup of before."""
    buckets = await fill(store)
    expected = {bucket: await whole(store, bucket) for bucket in buckets}
    await decide(store)
    backup = back_up(settings)
    await store.index.begin_move(buckets[0].name, "slow")
    await decide(store)
    return buckets, expected, backup


async def go_on(store: Store) -> None:
    """The move makes one pass, and what it leaves behind is removed."""
    await BucketMigrator(store, lambda: 2, lambda: 1).run_once()
    await collect(store)


async def seal(store: Store) -> None:
    """What is written from now on goes to other packs."""
    await store.close_packs()
    store.open_packs()


def back_up_before(monkeypatch: pytest.MonkeyPatch, settings: Settings, store: Store, change: str) -> list[Path]:
    """Seal the store's packs and take a backup, which is returned, before the index's next `change`."""
    backups: list[Path] = []
    commit = getattr(store.index, change)

    async def late(*arguments: Any) -> Any:
        monkeypatch.undo()
        await seal(store)
        backups.append(back_up(settings))
        return await commit(*arguments)

    monkeypatch.setattr(store.index, change, late)
    return backups


def damage(settings: Settings, blob: int) -> None:
    """Change the first byte of a blob of the store `slow`."""
    root = settings.named_stores["slow"].directory
    assert root is not None
    with open(ObjectsLayout(root).blob(blob), "r+b") as file:
        file.write(b"X")


def make_again(settings: Settings, way: str, backup: Path | None) -> None:
    """Make the index from the journals alone, or from a backup and what the journals say since."""
    if way == "recover":
        assert backup is not None
        restore(settings, backup)
    report, lost = rebuilt(settings) if way == "rebuild" else recovered(settings)
    (settings.run_dir / "writers").mkdir(parents=True, exist_ok=True)
    assert (report.damage, lost) == ([], [])


async def check_books(store: Store) -> None:
    """Index and stores agree."""
    for one in store.all.values():
        found = await fsck(one, repair=False)
        assert (found.missing, found.short, found.miscounted, found.overcounted) == ([], [], [], [])


@WAYS
async def test_what_moved_is_found_where_it_is(settings: Settings, way: str) -> None:
    """The journals name the old bodies until the move ends, and these are holes of packs by then."""
    async with stores(settings) as store:
        buckets, expected, backup = await begin(store, settings)
        await go_on(store)
        assert await lies_on(store, buckets[0]) == {"slow"}
    make_again(settings, way, backup)
    async with stores(settings) as store:
        assert {bucket: await whole(store, bucket) for bucket in buckets} == expected
        await check_books(store)
        assert await lies_on(store, buckets[0]) == {"slow"}


@WAYS
async def test_ids_do_not_follow_time(settings: Settings, way: str) -> None:
    """The process that copies may have reserved its ids before the others wrote what it copies."""
    async with stores(settings) as store:
        own, older = store.ids, BlobIds(store.index)
        await older.take_for_record()
        buckets, expected, backup = await begin(store, settings)
        for one in store.all.values():
            one.ids = older
        await go_on(store)
        for one in store.all.values():
            one.ids = own
        await older.close()
        assert await lies_on(store, buckets[0]) == {"slow"}
    make_again(settings, way, backup)
    async with stores(settings) as store:
        assert {bucket: await whole(store, bucket) for bucket in buckets} == expected
        await check_books(store)


async def test_a_damaged_copy_is_better_than_none(settings: Settings) -> None:
    """The row stays: all but the damage can be read, and a scrub tells of it."""
    async with stores(settings) as store:
        bucket, _ = await fill(store)
        await decide(store)
        await store.index.begin_move(bucket.name, "slow")
        await decide(store)
        await go_on(store)
        large = await objects.find(store, bucket.id, "large")
        number = store.of("slow").driver.blob_id(large.body)
    damage(settings, number)
    make_again(settings, "rebuild", None)
    async with stores(settings) as store:
        assert (await objects.find(store, bucket.id, "large")).body == large.body


async def test_a_move_that_is_cancelled_during_a_copy(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old store's journals describe the bucket before the copies are there: no row takes them any more."""
    async with stores(settings) as store:
        buckets, expected, _ = await begin(store, settings)
        swap = store.index.swap

        async def late(*arguments: Any) -> Any:
            monkeypatch.undo()
            await store.index.turn_back(buckets[0].name)
            await decide(store)
            return await swap(*arguments)

        monkeypatch.setattr(store.index, "swap", late)
        await go_on(store)
        await go_on(store)
        assert await lies_on(store, buckets[0]) == {"fast"}
        assert {bucket: await whole(store, bucket) for bucket in buckets} == expected
    make_again(settings, "rebuild", None)
    async with stores(settings) as store:
        assert {bucket: await whole(store, bucket) for bucket in buckets} == expected


async def test_a_backup_between_copies_and_their_rows(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The backup knows the pack of the copies as sealed, and no row in it."""
    async with stores(settings) as store:
        buckets, expected, _ = await begin(store, settings)
        backups = back_up_before(monkeypatch, settings, store.of("slow"), "swap")
        await go_on(store)
        assert await lies_on(store, buckets[0]) == {"slow"}
    make_again(settings, "recover", backups[0])
    async with stores(settings) as store:
        assert {bucket: await whole(store, bucket) for bucket in buckets} == expected


async def test_a_backup_between_a_record_and_its_row(settings: Settings) -> None:
    """As before, of a PUT: its pack is sealed, its row is committed later."""
    async with stores(settings) as store:
        bucket, _ = await fill(store)
        await decide(store)
        fast, source = store.of("fast"), Bytes(b"small")
        stored = await fast.write_blob(source, lambda: b"")
        await seal(fast)
        backup = back_up(settings)
        await store.index.put_version(bucket.id, "late", source.describe(stored.locator))
        await fast.confirm_blob(stored)
        await decide(store)
        expected = await whole(store, bucket)
        assert expected["late"] == b"small"
    make_again(settings, "recover", backup)
    async with stores(settings) as store:
        assert await whole(store, bucket) == expected


@pytest.mark.parametrize("late", [False, True])
async def test_a_backup_of_what_has_moved(settings: Settings, late: bool) -> None:
    """The target's snapshot is older than the backup, and names the places of before."""
    async with stores(settings) as store:
        buckets, expected, _ = await begin(store, settings)
        await BucketMigrator(store, lambda: 2, lambda: 2).run_once()
        if late:
            await collect(store)
        await seal(store.of("slow"))
        backup = back_up(settings)
        await collect(store)
    make_again(settings, "recover", backup)
    async with stores(settings) as store:
        assert {bucket: await whole(store, bucket) for bucket in buckets} == expected


@pytest.mark.parametrize("kind", ["large", "parts"])
async def test_a_row_that_takes_a_copy_of_another(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The backup has the copy, which one of two rows holds; the other one takes it later."""
    monkeypatch.setattr(bucket_migration, "RECORDS_PER_BATCH", 1)
    async with stores(settings) as store:
        bucket, fast = await make(store, "fast"), store.of("fast")
        if kind == "large":
            await put(fast, bucket, "a", LARGE)
        else:
            upload = await start_upload(fast, bucket, "a")
            for number in (1, 2):
                await put_part(fast, upload, number, LARGE)
            await complete(fast, bucket, upload)
        await copy(fast, bucket, "a", "b")
        expected = await whole(store, bucket)
        await decide(store)
        await store.index.begin_move(bucket.name, "slow")
        await decide(store)
        name, backups = ("swap" if kind == "large" else "split"), []
        change = getattr(store.index, name)

        async def then_backed_up(*arguments: Any) -> Any:
            monkeypatch.undo()
            changed = await change(*arguments)
            backups.append(back_up(settings))
            return changed

        monkeypatch.setattr(store.index, name, then_backed_up)
        await go_on(store)
        await go_on(store)
        assert await lies_on(store, bucket) == {"slow"}
    make_again(settings, "recover", backups[0])
    async with stores(settings) as store:
        assert await whole(store, bucket) == expected


async def test_a_backup_during_compaction(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record was copied to a pack that is sealed at the backup; its row moves later, and its old pack is removed."""
    async with stores(settings) as store:
        bucket, fast = await make(store, "fast"), store.of("fast")
        for number in range(12):
            await put(fast, bucket, f"k{number:02}", os.urandom(9000))
        await decide(store)
        await seal(fast)
        await delete(fast, bucket, *(f"k{number:02}" for number in range(12) if number != 6))
        await decide(store)
        await collect(store)
        backups = back_up_before(monkeypatch, settings, fast, "move_records")
        await compact(fast)
        await collect(store)
        await decide(store)
        expected = await whole(store, bucket)
    make_again(settings, "recover", backups[0])
    async with stores(settings) as store:
        assert await whole(store, bucket) == expected


async def test_what_was_deleted_before_a_move_stays_deleted(settings: Settings) -> None:
    """The new store was idle: it has settled nothing of what the old one has."""
    async with stores(settings) as store:
        bucket, fast = await make(store, "fast"), store.of("fast")
        writers = [JournalWriter(fast, retained=0), JournalWriter(store.of("slow"))]

        async def journal() -> None:
            for _ in range(4):
                for writer in writers:
                    await writer.run_once()

        await put(fast, bucket, "gone", b"gone")
        await journal()
        await delete(fast, bucket, "gone")
        for number in range(2):
            await journal()
            await put(fast, bucket, f"k{number}", b"kept")
        writers[0].request_snapshot()
        await journal()
        await store.index.begin_move(bucket.name, "slow")
        await journal()
        expected = await whole(store, bucket)
    make_again(settings, "rebuild", None)
    async with stores(settings) as store:
        assert await whole(store, bucket) == expected


@WAYS
async def test_a_move_that_was_turned_back(settings: Settings, way: str) -> None:
    """The old bodies are gone, their first copies too, and the headers of the second copies name only those."""
    async with stores(settings) as store:
        buckets, expected, backup = await begin(store, settings)
        await go_on(store)
        await store.index.turn_back(buckets[0].name)
        await go_on(store)
        assert await lies_on(store, buckets[0]) == {"slow"}, "nothing goes before the journals name it"
        await decide(store)
        await go_on(store)
        assert await lies_on(store, buckets[0]) == {"fast"}
    make_again(settings, way, backup)
    async with stores(settings) as store:
        assert {bucket: await whole(store, bucket) for bucket in buckets} == expected
        await check_books(store)


async def test_an_upload_whose_parts_moved(settings: Settings) -> None:
    """No journal describes an open upload, and the backup knows the old places of its parts."""
    async with stores(settings) as store:
        bucket, _ = await fill(store)
        upload = await start_upload(store.of("fast"), bucket, "parts")
        for number in range(1, OBJECTS):
            await put_part(store.of("fast"), upload, number, b"%d" % (number % 10) * BODY_BYTES)
        await put_part(store.of("fast"), upload, OBJECTS, LARGE)
        await decide(store)
        backup = back_up(settings)
        await store.index.begin_move(bucket.name, "slow")
        await decide(store)
        await go_on(store)
        assert await lies_on(store, bucket) == {"slow"}
    make_again(settings, "recover", backup)
    async with stores(settings) as store:
        await complete(store.of("slow"), bucket, upload)
        parts = [b"%d" % (number % 10) * BODY_BYTES for number in range(1, OBJECTS)]
        assert await content(store, bucket, "parts") == b"".join(parts) + LARGE
