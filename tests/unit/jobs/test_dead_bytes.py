"""Every way in which a record of a pack dies is counted, once: never more than the truth."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import CommitUnknown, DataDamaged, NoSuchUpload, PreconditionFailed
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.object_lock.retention_clock import RetentionClock
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.store import Store
from sluice_s3.storage_drivers.packs.reader import parse_locator
from tests.support.settings import make_settings
from tests.unit.jobs.packed import (
    PACK,
    allocated,
    body,
    collect,
    compact,
    complete,
    content,
    copy,
    copy_part,
    delete,
    files,
    fill,
    packed,
    packs_of,
    put_part,
    start_upload,
)
from tests.unit.store.site import Bytes, opened, prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=PACK)
    prepare(made)
    return made


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with packed(settings) as store:
        yield store


@pytest.fixture
async def bucket(store: Store) -> Bucket:
    return await store.index.create_bucket("packed", "owner", "us-east-1", 10)


async def dead(store: Store) -> int:
    """Bytes counted dead, when the queue is empty and what was refused is written down."""
    await store.report_rejected_records()
    while await collect(store):
        pass
    return sum(pack.dead for pack in (await packs_of(store)).values())


async def total(store: Store, bucket: Bucket, key: str) -> int:
    """Bytes of the record of an object."""
    place = store.driver.packed((await objects.find(store, bucket.id, key)).body)
    assert place is not None
    return place[1]


async def test_overwritten_and_deleted(store: Store, bucket: Bucket) -> None:
    await put(store, bucket, "k", body("one"))
    first = await total(store, bucket, "k")
    await put(store, bucket, "k", body("second"))
    second = await total(store, bucket, "k")
    assert await dead(store) == first
    await put(store, bucket, "k", b"")
    assert await dead(store) == first + second
    await delete(store, bucket, "k", "never there")
    assert await dead(store) == first + second


async def test_refused_by_a_condition(store: Store, bucket: Bucket) -> None:
    await put(store, bucket, "k", body("k"))
    source = Bytes(body("k"))
    with pytest.raises(PreconditionFailed):
        await objects.put(store, bucket.id, "k", source, source.describe, Conditions(if_none_match=True), {})
    # its claim says `true` where the other says `false`
    assert await dead(store) == await total(store, bucket, "k") - 1


async def test_refused_by_the_source_leaves_no_record(store: Store, bucket: Bucket) -> None:
    source = Bytes(body("k"), refuse=ValueError("no"))
    with pytest.raises(ValueError, match="no"):
        await objects.put(store, bucket.id, "k", source, source.describe, None, {})
    assert await dead(store) == 0


async def test_copies_die_with_their_last_holder(store: Store, bucket: Bucket) -> None:
    await put(store, bucket, "k", body("k"))
    one = await total(store, bucket, "k")
    await copy(store, bucket, "k", "copy")
    upload = await start_upload(store, bucket, "upload")
    await copy_part(store, bucket, "copy", upload, 1)
    await delete(store, bucket, "k")
    await delete(store, bucket, "copy")
    assert await dead(store) == 0
    await store.index.abort_upload(upload)
    assert await dead(store) == one


async def test_parts(store: Store, bucket: Bucket) -> None:
    """Replaced, left out of Complete, aborted, and refused because the upload is gone."""
    upload = await start_upload(store, bucket, "k")
    sizes = []
    for number, text in ((1, "replaced"), (1, "one"), (2, "two"), (3, "left out")):
        part = await put_part(store, upload, number, body(text))
        place = store.driver.packed(part.extents[0].locator)
        assert place is not None
        sizes.append(place[1])
    assert await dead(store) == sizes[0]
    chosen = await store.index.parts(upload, 0, 2)
    new = Bytes(b"").describe("")._replace(size=sum(part.size for part in chosen), parts=2)
    await store.index.complete_upload(upload, chosen, new)
    assert await dead(store) == sizes[0] + sizes[3]
    with pytest.raises(NoSuchUpload):
        await put_part(store, upload, 1, body("replaced"))
    assert await dead(store) == 2 * sizes[0] + sizes[3]
    await delete(store, bucket, "k")
    assert await dead(store) == sum(sizes) + sizes[0]


async def test_a_commit_that_was_cancelled_and_took_effect_is_not_dead(
    store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: asyncio.Task[Any]
    running = asyncio.Event()
    loop = asyncio.get_running_loop()
    writer = store.index._writer  # type: ignore[attr-defined]
    run_job = writer._run_job

    def slow(group: Any, job: Any) -> None:
        if job.function.__name__ == "put_version":
            asyncio.run_coroutine_threadsafe(_cancel(), loop).result(10)
        run_job(group, job)

    async def _cancel() -> None:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        running.set()

    monkeypatch.setattr(writer, "_run_job", slow)
    waiting = asyncio.create_task(put(store, bucket, "k", body("k")))
    await running.wait()
    monkeypatch.undo()
    await put(store, bucket, "other", b"behind it")
    assert await content(store, bucket, "k") == body("k")
    assert await dead(store) == 0


async def test_an_unknown_outcome_is_counted_once(
    store: Store, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The queue is worked through twice, and so is the list of what was refused."""
    await put(store, bucket, "k", body("k"))
    one = await total(store, bucket, "k")
    await put(store, bucket, "k", b"small")
    source = Bytes(body("k"))
    with pytest.raises(PreconditionFailed):
        await objects.put(store, bucket.id, "k", source, source.describe, Conditions(if_none_match=True), {})
    garbage = GarbageCollector(store, lambda: 2, lambda: 1, 0)
    for name, job in (("forget_discards", garbage.run_once), ("refuse_blobs", store.report_rejected_records)):
        commit = getattr(store.index, name)

        async def unknown(*arguments: Any, commit: Any = commit) -> None:
            await commit(*arguments)
            raise CommitUnknown()

        with monkeypatch.context() as patch:
            patch.setattr(store.index, name, unknown)
            with pytest.raises(CommitUnknown):
                await job()
        await job()
    assert await dead(store) == 2 * one - 1  # `true` in the claim of the one, `false` in the other's


async def test_fsck_knows_the_truth(settings: Settings) -> None:
    async with packed(settings) as store:
        bucket = await store.index.create_bucket("packed", "owner", "us-east-1", 10)
        there = await fill(store, bucket, range(20))
        await copy(store, bucket, "k0000", "copy")
        await copy(store, bucket, "k0000", "another")
        upload = await start_upload(store, bucket, "whole")
        await copy_part(store, bucket, "k0001", upload, 1)
        await put_part(store, upload, 2, body("part"))
        await complete(store, bucket, upload)
        await delete(store, bucket, "k0000", "k0002")
        await collect(store)
        (pack,) = (await packs_of(store)).values()
        assert (await fsck(store, repair=True)).recounted == 0, "it is not sealed"
    async with opened(settings) as store:
        await sweep(store, store.index.is_writer_dead)
        report = await fsck(store, repair=False)
        assert report.clean
        assert (report.uncounted, report.overcounted) == (0, [])
        await store.index.count_dead([(pack.id, 1)])
        report = await fsck(store, repair=False)
        assert not report.clean
        assert report.overcounted == [{"pack": pack.id, "counted": pack.dead + 1, "true": pack.dead}]
        assert (await fsck(store, repair=True)).recounted == 1
        await store.index.count_dead([(pack.id, -100)])
        report = await fsck(store, repair=False)
        assert (report.clean, report.uncounted) == (True, 100)
        assert (await fsck(store, repair=True)).recounted == 1
        assert (await packs_of(store))[pack.id].dead == pack.dead
        assert await content(store, bucket, "copy") == there["k0000"]


async def test_a_pack_without_a_row_is_an_orphan(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with packed(settings) as store:
        bucket = await store.index.create_bucket("packed", "owner", "us-east-1", 10)
        await put(store, bucket, "k", b"there")
        orphan = settings.data / "data" / "01" / f"{1:016x}.pack"
        orphan.write_bytes(b"nobody's")
        report = await fsck(store, repair=False)
        assert report.orphans == [store.driver.pack_locator(1)]
        assert (await fsck(store, repair=True)).repaired == 1
        assert (await fsck(store, repair=False)).orphans == []
        await collect(store)
        assert orphan.exists(), "it is in quarantine"
        with monkeypatch.context() as patch:
            patch.setattr(
                "sluice_s3.app.jobs.reclaim.garbage_collector.clock", RetentionClock(lambda: now_ms() + 8 * 86_400_000)
            )
            await collect(store)
        assert not orphan.exists()
        assert len(files(settings)) == 1
        assert await content(store, bucket, "k") == b"there"


async def test_what_is_punched_is_never_served(settings: Settings) -> None:
    """And the neighbours are whole."""
    async with packed(settings, holes=True) as store:
        if not store.driver._packs.page:  # type: ignore[attr-defined]
            pytest.skip("no holes on this file system")
        bucket = await store.index.create_bucket("packed", "owner", "us-east-1", 10)
        there = await fill(store, bucket, range(40))
        gone = [f"k{number:04}" for number in range(5, 30)]
        versions = [await objects.find(store, bucket.id, key) for key in gone]
        before = allocated(settings)
        await delete(store, bucket, *gone)
        await collect(store)
        whole = 25 * len(there["k0005"])
        assert before - whole - 25 * 400 <= allocated(settings) <= before - whole + 25 * 400
        for version in versions:
            with pytest.raises(DataDamaged):
                await objects_read(store, version)
        for key, value in there.items():
            if key not in gone:
                assert await content(store, bucket, key) == value
        report = await fsck(store, repair=False)
        assert report.clean
        await fill(store, bucket, range(40, 80))
        before = allocated(settings)
        await compact(store)
        assert allocated(settings) == before, "it is not worth it"


async def objects_read(store: Store, version: Any) -> bytes:
    from sluice_s3.app.store import reading

    taken = bytearray()
    await reading.feed_bytes(store, version, 0, version.size, taken.extend)
    return bytes(taken)


@pytest.mark.parametrize("damage", ["cut", "head"])
async def test_fsck_tells_of_records_that_are_not_whole_in_their_packs(settings: Settings, damage: str) -> None:
    """The walk of a pack ends at the first that is none, and that is not the end of the pack."""
    async with packed(settings) as store:
        bucket = await store.index.create_bucket("packed", "owner", "us-east-1", 10)
        await fill(store, bucket, range(4))
        places = {key: parse_locator(body) for key, _, body in await store.index.current_after(bucket.id, "", 10)}
    place = places["k0002"]
    (path,) = settings.data.glob(f"data/*/{place.pack:016x}.pack")
    if damage == "cut":
        os.truncate(path, place.offset + place.total // 2)
    else:
        with path.open("r+b") as file:
            file.seek(place.offset)
            file.write(b"damaged!")
    async with opened(settings) as store:
        report = await fsck(store, repair=True)
        assert [fact["key"] for fact in report.short] == (["k0002", "k0003"] if damage == "cut" else ["k0002"])
        assert (report.missing, report.orphans, report.clean) == ([], [], False)
