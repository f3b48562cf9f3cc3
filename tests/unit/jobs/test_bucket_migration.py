"""Buckets move to another store while they are used, and nothing is lost, doubled or left behind."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.access.lookup_cache import LookupCache
from sluice_s3.app.errors import BucketBusy, NoSuchBucket, NoSuchKey
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import PIECES
from sluice_s3.app.index.objects.rows import CommitResult, NewVersion
from sluice_s3.app.index.relocation.rows import progress_note
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.jobs.relocation import bucket_migration as job
from sluice_s3.app.jobs.relocation.bucket_migration import BucketMigrator
from sluice_s3.app.s3.objects import system_put
from sluice_s3.app.s3.services import Services
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store
from tests.reliability.crash.operations import MOVE_POINTS
from tests.unit.jobs.mixed import tables
from tests.unit.jobs.packed import compact, complete, content, copy, copy_part, put_part, start_upload
from tests.unit.jobs.two import LARGE, fill, make, rebuilt, settings_of, stores
from tests.unit.jobs.versioned import contents
from tests.unit.store.site import prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = settings_of(tmp_path)
    prepare(settings)
    return settings


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with stores(settings) as store:
        yield store


async def decide(store: Store) -> None:
    for one in store.all.values():
        await JournalWriter(one).run_once()


async def collect(store: Store) -> None:
    """Take away what is in the discard queues, at once."""
    for _ in range(3):
        for one in store.all.values():
            await GarbageCollector(one, lambda: 2, lambda: 1, 0).run_once()


async def move(store: Store, bucket: Bucket, name: str) -> Bucket:
    """All of it, as the elected worker does it."""
    await decide(store)
    moved = await store.index.begin_move(bucket.name, name)
    await decide(store)
    mover = BucketMigrator(store, lambda: 2, lambda: 1)
    for _ in range(100):  # a round ends when its time is over, on a slow machine with little done
        await mover.run_once()
        if not await store.index.moving():
            break
    assert not await store.index.moving()
    await decide(store)
    return moved


async def whole(store: Store, bucket: Bucket) -> dict[str, bytes]:
    """All objects of a bucket."""
    page = await store.index.list_current(bucket.id, "", "", "", 1000)
    return {entry.key: await content(store, bucket, entry.key) for entry in page.entries}


async def lies_on(store: Store, bucket: Bucket) -> set[str]:
    """The stores on which anything of a bucket lies."""
    bodies = [row.body for row in await store.index.bodies(bucket.id, 0)]
    held = [
        one for body in bodies if body.startswith(PIECES) for one in await store.index.find_piece_blobs(int(body[7:]))
    ]
    parts = [one for _, one in await store.index.find_part_blobs(bucket.id)]
    found = {store_of_locator(body) for body in bodies if not body.startswith(PIECES)}
    return found | {store_of_locator(one.locator) for one in [*held, *parts]}


async def test_all_versions_move(store: Store, settings: Settings) -> None:
    bucket = await make(store, "fast")
    own = store.of("fast")
    await put(own, bucket, "k", b"before")
    await store.index.set_versioning(bucket.id, ENABLED)
    for text in (b"one", LARGE, b""):
        await put(own, bucket, "k", text)
    await copy(own, bucket, "k", "copied")
    await objects.delete(own, bucket.id, "k", None, None, {})
    expected = await contents(store, bucket)
    assert len(expected) == 6
    await move(store, bucket, "slow")
    assert await lies_on(store, bucket) == {"slow"}
    assert await contents(store, bucket) == expected
    await clean(store)


async def clean(store: Store) -> None:
    await collect(store)
    for one in store.all.values():
        report = await fsck(one, repair=False)
        assert report.clean, report


async def test_all_of_a_bucket_goes_and_comes_back(store: Store, settings: Settings) -> None:
    bucket = await make(store, "fast")
    other = await make(store, "slow")
    await fill(store, bucket)
    fast = store.of("fast")
    upload = await start_upload(fast, bucket, "open")
    await put_part(fast, upload, 1, b"p" * 100)
    await put_part(fast, upload, 2, LARGE)
    before = await whole(store, bucket)
    for name in ("slow", "fast", "slow"):
        moved = await move(store, bucket, name)
        assert moved.store == name
        assert await lies_on(store, bucket) == {name}
        assert await whole(store, bucket) == before
        await clean(store)
    gone = settings.named_stores["fast"].path
    assert gone is not None
    assert not [path for path in (gone / "data").glob("*/*") if path.suffix == ""]
    await complete(store, bucket, upload)
    assert await content(store, bucket, "open") == b"p" * 100 + LARGE
    assert other.store == "slow"


async def test_what_is_shared_inside_is_copied_once_and_what_others_share_stays(store: Store) -> None:
    bucket = await make(store, "fast")
    stays = await store.index.create_bucket("stays", "owner", "us-east-1", 10, "fast")
    await fill(store, bucket)
    fast = store.of("fast")
    for key in ("k1", "large", "parts"):
        await copy(fast, bucket, key, f"{key}-again")
        await copy_to(fast, bucket, stays, key)
    before, kept = await whole(store, bucket), await whole(store, stays)
    upload = await start_upload(fast, bucket, "open")
    await copy_part(fast, bucket, "large", upload, 1)
    await move(store, bucket, "slow")
    assert await lies_on(store, bucket) == {"slow"}
    assert await lies_on(store, stays) == {"fast"}
    assert (await whole(store, bucket), await whole(store, stays)) == (before, kept)
    bodies = {row.key: row.body for row in await store.index.bodies(bucket.id, 0)}
    for key in ("k1", "large", "parts"):
        assert bodies[key] == bodies[f"{key}-again"]
    await clean(store)
    await store.index.abort_upload(upload)
    for place in (bucket, stays):
        for key in await whole(store, place):
            await objects.delete(store, place.id, key, None, None, {})
    await clean(store)
    for one in store.all.values():
        async for locator, _ in one.driver.walk():
            assert one.driver.packed(locator) is not None  # dead records, of packs that are still written


async def copy_to(store: Store, bucket: Bucket, target: Bucket, key: str) -> None:
    """CopyObject into another bucket."""
    found = await objects.find(store, bucket.id, key)
    new = NewVersion(found.size, found.etag, "{}", "STANDARD", "", "", "", "", found.parts, "owner")
    await store.index.copy_version(found.seq, target.id, key, new)


async def test_changes_meanwhile(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers never see an error, and every change that was answered holds."""
    monkeypatch.setattr(job, "RECORDS_PER_BATCH", 3)
    bucket = await make(store, "fast")
    there: dict[str, bytes] = {}
    for number in range(120):
        there[f"k{number}"] = b"%d " % number * (10 if number % 10 else 5000)
        await put(store.of("fast"), bucket, f"k{number}", there[f"k{number}"])
    await decide(store)
    await store.index.begin_move(bucket.name, "slow")
    stop = False
    chance = random.Random(5)

    async def change() -> None:
        turn = 0
        while not stop:
            turn += 1
            key = f"k{chance.randrange(130)}"
            # some requests began before the bucket changed
            target = store.of(chance.choice(["slow", "fast"]) if turn < 40 else "slow")
            if chance.random() < 0.3:
                there.pop(key, None)
                await objects.delete(store, bucket.id, key, None, None, {})
            else:
                there[key] = b"new %d " % turn * chance.choice([3, 6000])
                await put(target, bucket, key, there[key])
            await asyncio.sleep(0)

    async def read() -> None:
        while not stop:
            key = f"k{chance.randrange(130)}"
            with suppress(NoSuchKey):
                assert await content(store, bucket, key)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(change()), asyncio.create_task(read())]
    oldest = 1
    mover = BucketMigrator(store, lambda: oldest, lambda: 1)
    for _ in range(3):
        await mover.run_once()
        await decide(store)
        assert await store.index.moving()  # requests from before still run
    oldest = 2
    stop = True
    await asyncio.gather(*tasks)
    await decide(store)
    for _ in range(3):
        await mover.run_once()
    assert not await store.index.moving()
    assert await whole(store, bucket) == there
    assert await lies_on(store, bucket) <= {"slow"}
    await clean(store)


class Died(BaseException):
    """In the place of SIGKILL."""


@pytest.mark.parametrize("versioned", [False, True])
async def test_what_the_gateway_itself_writes_meanwhile_goes_as_well(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch, versioned: bool
) -> None:
    """A log or an inventory is no request, for which the end of a move would wait."""
    bucket = await make(store, "fast")
    if versioned:
        await store.index.set_versioning(bucket.id, ENABLED)
    services = Services(settings, store, LookupCache(store.index), BodyMemoryBudget(1 << 20))
    store_object, moves = system_put.store_object, ["slow"]

    async def moved_meanwhile(*given: Any) -> CommitResult:
        if moves:
            await move(store, bucket, moves.pop())
        return await store_object(*given)

    monkeypatch.setattr(system_put, "store_object", moved_meanwhile)
    await system_put.put_as_owner(services, bucket, "log", LARGE, "text/plain")
    await collect(store)
    assert await whole(store, bucket) == {"log": LARGE}
    assert await lies_on(store, bucket) == {"slow"}
    assert len(await store.index.bodies(bucket.id, 0)) == 1


@pytest.mark.parametrize("point", MOVE_POINTS)
async def test_a_process_that_dies_leaves_a_move_that_goes_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(job, "RECORDS_PER_BATCH", 2)
    async with stores(settings) as store:
        bucket = await make(store, "fast")
        await fill(store, bucket)
        await copy(store.of("fast"), bucket, "parts", "parts-again")
        before = await whole(store, bucket)
        await decide(store)
        await store.index.begin_move(bucket.name, "slow")
        await decide(store)
    died = 0
    for turn in range(12):
        async with stores(settings) as store:
            own = store.index.incarnation  # type: ignore[attr-defined]
            await sweep(store, lambda writer, own=own: writer.incarnation != own)
            with monkeypatch.context() as patch:
                count = 0

                def die(name: str, last: int = turn % 3 + 1) -> None:
                    nonlocal count
                    count += name == point
                    if count == last and name == point:
                        raise Died

                patch.setattr(job, "crash_point", die)
                mover = BucketMigrator(store, lambda: 2, lambda: 1)
                try:
                    for _ in range(3):
                        await mover.run_once()
                except Died:
                    died += 1
                    store.ids._current = None  # as a process that is gone: nothing of its is settled
                    store.index._registers = False  # type: ignore[attr-defined]
            assert await whole(store, bucket) == before
            if not await store.index.moving():
                break
    assert died
    async with stores(settings) as store:
        own = store.index.incarnation  # type: ignore[attr-defined]
        await sweep(store, lambda writer: writer.incarnation != own)
        assert not await store.index.moving()
        assert await whole(store, bucket) == before
        assert await lies_on(store, bucket) == {"slow"}
        await clean(store)


async def test_what_is_refused(store: Store) -> None:
    bucket = await make(store, "fast")
    await put(store.of("fast"), bucket, "k", b"x")
    with pytest.raises(NoSuchBucket):
        await store.index.begin_move("not-there", "slow")
    await store.index.begin_move(bucket.name, "slow")
    assert await store.index.begin_move(bucket.name, "slow") == await store.index.bucket(bucket.name)
    with pytest.raises(BucketBusy):
        await store.index.begin_move(bucket.name, "fast")
    await decide(store)
    mover = BucketMigrator(store, lambda: 2, lambda: 1)
    for _ in range(3):
        await mover.run_once()
    assert not await store.index.moving()
    with pytest.raises(BucketBusy):  # the journals of slow do not tell of it yet
        await store.index.begin_move(bucket.name, "fast")
    await decide(store)
    await store.index.begin_move(bucket.name, "fast")


async def test_a_move_that_is_turned_back(settings: Settings) -> None:
    """What was copied comes back, what was written meanwhile too, and the journals of the old store tell all of it."""
    async with stores(settings) as store:
        bucket = await make(store, "fast")
        with pytest.raises(BucketBusy):
            await store.index.turn_back(bucket.name)
        with pytest.raises(NoSuchBucket):
            await store.index.turn_back("not-there")
        await fill(store, bucket)
        await decide(store)
        await store.index.begin_move(bucket.name, "slow")
        mover = BucketMigrator(store, lambda: 2, lambda: 1)
        await decide(store)
        await mover.run_once()
        await put(store.of("slow"), bucket, "written-meanwhile", LARGE)
        assert "slow" in await lies_on(store, bucket)
        (begun,) = await store.index.moving()
        back = await store.index.turn_back(bucket.name)
        assert (back.store, back.source) == ("fast", "slow")
        assert not await store.index.end_move(begun), "the cancelled move ended the other one"
        await decide(store)
        before = await whole(store, bucket)
    report, lost = rebuilt(settings)
    assert (report.damage, lost) == ([], [])
    async with stores(settings) as store:
        assert await whole(store, bucket) == before
        (found,) = await store.index.moving()
        assert (found.store, found.source) == ("fast", "slow")
        await decide(store)
        mover = BucketMigrator(store, lambda: 2, lambda: 1)
        for _ in range(100):
            await mover.run_once()
            await decide(store)
            if not await store.index.moving():
                break
        assert await lies_on(store, bucket) == {"fast"}
        assert await whole(store, bucket) == before
        assert await store.index.stores_in_use() == {"fast": 1}


async def test_a_pass_ends_when_its_move_is_turned_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await make(store, "fast")
    await fill(store, bucket)
    await decide(store)
    await store.index.begin_move(bucket.name, "slow")
    await decide(store)
    mover = BucketMigrator(store, lambda: 2, lambda: 1)
    read = store.index.find_part_blobs

    async def turned(bucket_id: int) -> object:
        found = await read(bucket_id)
        await store.index.turn_back(bucket.name)
        return found

    monkeypatch.setattr(store.index, "find_part_blobs", turned)
    await mover.run_once()
    assert await lies_on(store, bucket) == {"fast"}


async def test_what_lies_elsewhere_comes_to_the_store_of_its_bucket(store: Store) -> None:
    bucket = await make(store, "slow")
    stray = await make(store, "fast")
    await fill(store, stray)
    await copy_to(store, stray, bucket, "k1")  # as a request does that began before its source was moved
    assert await lies_on(store, bucket) == {"fast"}
    assert await store.index.any_on("fast")
    before = await whole(store, bucket)
    await move(store, bucket, "slow")
    assert await lies_on(store, bucket) == {"slow"}
    assert await whole(store, bucket) == before
    await move(store, stray, "slow")
    assert not await store.index.any_on("fast")


async def test_it_does_not_end_before_the_journals_tell_all(store: Store) -> None:
    bucket = await make(store, "fast")
    await put(store.of("fast"), bucket, "k", b"x")
    await store.index.begin_move(bucket.name, "slow")
    mover = BucketMigrator(store, lambda: 2, lambda: 1)
    await objects.delete(store, bucket.id, "k", None, None, {})
    for _ in range(3):
        await mover.run_once()
    assert await store.index.moving()
    await decide(store)
    await mover.run_once()
    assert not await store.index.moving()


async def test_a_move_that_begins_while_the_journals_are_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record has the settings of the move, and ends before its number; then nothing changes on that store."""
    bucket = await make(store, "fast")
    await fill(store, bucket)
    await decide(store)
    writer, changes = JournalWriter(store.of("slow")), store.index.changes

    async def then_moved(*arguments: Any, **named: Any) -> Any:
        monkeypatch.undo()
        found = await changes(*arguments, **named)
        await store.index.begin_move(bucket.name, "slow")
        return found

    monkeypatch.setattr(store.index, "changes", then_moved)
    for _ in range(3):
        await writer.run_once()
    await BucketMigrator(store, lambda: 2, lambda: 1).run_once()
    assert await lies_on(store, bucket) == {"slow"}


async def test_a_damaged_blob_stays_and_is_told(store: Store, settings: Settings) -> None:
    bucket = await make(store, "fast")
    await put(store.of("fast"), bucket, "good", LARGE)
    await put(store.of("fast"), bucket, "bad", LARGE + b"!")
    version = await objects.find(store, bucket.id, "bad")
    await store.of("fast").driver.discard(version.body)
    await decide(store)
    await store.index.begin_move(bucket.name, "slow")
    await decide(store)
    mover = BucketMigrator(store, lambda: 2, lambda: 1)
    await mover.run_once()
    assert await lies_on(store, bucket) == {"fast", "slow"}
    assert '"stuck":1' in await store.index.note(progress_note(bucket.id))
    assert await content(store, bucket, "good") == LARGE
    await objects.delete(store, bucket.id, "bad", None, None, {})
    await decide(store)
    mover = BucketMigrator(store, lambda: 2, lambda: 1)
    for _ in range(2):
        await mover.run_once()
    assert not await store.index.moving()


async def test_a_damaged_piece_of_what_two_versions_hold_is_told(store: Store) -> None:
    bucket, fast = await make(store, "fast"), store.of("fast")
    await fill(store, bucket)
    await copy(fast, bucket, "parts", "again")
    version = await objects.find(store, bucket.id, "parts")
    pieces = await store.index.find_piece_blobs(int(version.body.removeprefix(PIECES)))
    (large,) = {piece.locator for piece in pieces if fast.driver.packed(piece.locator) is None}
    await fast.driver.discard(large)
    await decide(store)
    await store.index.begin_move(bucket.name, "slow")
    await decide(store)
    await BucketMigrator(store, lambda: 2, lambda: 1).run_once()
    assert '"stuck":1' in await store.index.note(progress_note(bucket.id))


@pytest.mark.parametrize("shared", [False, True])
async def test_what_is_replaced_during_its_copy_is_not_damaged(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, shared: bool
) -> None:
    """Removal does not wait for a copy: the blob is gone, and no row references it any more."""
    bucket, fast = await make(store, "fast"), store.of("fast")
    await fill(store, bucket)
    if shared:
        await copy(fast, bucket, "parts", "again")
    await decide(store)
    await store.index.begin_move(bucket.name, "slow")
    await decide(store)
    reread = fast.driver.reread

    async def late(locator: str, take: Any) -> AsyncIterator[int]:
        for key in ("large", "parts", "again"):
            with suppress(NoSuchKey):
                await objects.delete(store, bucket.id, key, None, None, {})
        await decide(store)
        await collect(store)
        async for count in reread(locator, take):
            yield count

    monkeypatch.setattr(fast.driver, "reread", late)
    mover = BucketMigrator(store, lambda: 2, lambda: 1)
    for _ in range(3):
        await mover.run_once()
    assert not await store.index.moving()
    assert "cannot be moved" not in caplog.text
    assert sorted(await whole(store, bucket)) == ["k0", "k1", "k2", "k4"]


@pytest.mark.parametrize("end", [False, True])
async def test_an_index_that_is_lost_in_the_middle(settings: Settings, end: bool) -> None:
    """Whatever the journals of the two stores say by then, all of it comes back, and nothing that was deleted."""
    async with stores(settings) as store:
        bucket = await make(store, "fast")
        stays = await store.index.create_bucket("stays", "owner", "us-east-1", 10, "fast")
        await fill(store, bucket)
        await copy_to(store, bucket, stays, "parts")
        await decide(store)
        await store.index.begin_move(bucket.name, "slow")
        await objects.delete(store, bucket.id, "k0", None, None, {})
        mover = BucketMigrator(store, lambda: 2, lambda: 1)
        await decide(store)
        await mover.run_once()
        await objects.delete(store, bucket.id, "k1", None, None, {})
        if end:
            for _ in range(3):
                await mover.run_once()
            assert not await store.index.moving()
            await decide(store)
            await objects.delete(store, bucket.id, "k2", None, None, {})
        await decide(store)
        await collect(store)  # the old blobs are gone
        before = await whole(store, bucket), await whole(store, stays)
    rows = tables(settings.index_path)
    report, lost = rebuilt(settings)
    assert (report.damage, lost) == ([], [])
    after = tables(settings.index_path)
    assert after["buckets"] == rows["buckets"]
    assert [row[:3] for row in after["versions"]] == [row[:3] for row in rows["versions"]]
    async with stores(settings) as store:
        assert (await whole(store, bucket), await whole(store, stays)) == before
        # copies of pieces that the journals do not tell of yet are held by nobody
        assert (await fsck(store.of("slow"), repair=True)).clean
        await clean(store)
        if not end:
            await decide(store)
            mover = BucketMigrator(store, lambda: 2, lambda: 1)
            for _ in range(3):
                await mover.run_once()
            assert not await store.index.moving()
        assert await lies_on(store, bucket) == {"slow"}


async def test_compaction_finds_what_was_moved(store: Store) -> None:
    bucket = await make(store, "fast")
    for number in range(30):
        await put(store.of("fast"), bucket, f"k{number:02}", b"%d " % number * 5000)
    await move(store, bucket, "slow")
    slow = store.of("slow")
    await slow.close_packs()
    slow.open_packs()
    for number in range(25):
        await objects.delete(store, bucket.id, f"k{number:02}", None, None, {})
    before = await whole(store, bucket)
    await compact(slow)
    assert await whole(store, bucket) == before
    await clean(store)
