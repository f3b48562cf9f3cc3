"""Garbage, sweep and fsck, on a real index and driver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import PreconditionFailed
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.jobs import runner
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.leader_election import FlockElection
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.jobs.runner import Jobs, StoreJobs
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from tests.support.settings import make_settings
from tests.support.waiting import eventually_async
from tests.unit.store.site import Bytes, files, opened, prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


class Clock:
    """Times that a test sets: now, and when the oldest running request began."""

    def __init__(self) -> None:
        self.now = 1000
        self.oldest = 1000


async def test_replaced_data_goes_when_nobody_reads(settings: Settings) -> None:
    clock = Clock()
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("jobs", "owner", "us-east-1", 10)
        garbage = GarbageCollector(store, lambda: clock.oldest, lambda: clock.now, 5)
        await put(store, bucket, "k", b"old")
        await put(store, bucket, "k", b"new")
        assert await garbage.run_once() == 0
        clock.now = 6000
        assert await garbage.run_once() == 0, "a request that began before is running"
        clock.oldest = 1001
        clock.now = 5999
        assert await garbage.run_once() == 0, "the grace has not passed"
        assert len(files(settings)) == 2
        clock.now = 6000
        assert await garbage.run_once() == 1
        assert len(files(settings)) == 1
        assert await store.index.discards(0, 10) == []
        assert (await objects.find(store, bucket.id, "k")).size == 3
        assert (await fsck(store, repair=False)).clean


async def test_a_refused_put_leaves_nothing(settings: Settings) -> None:
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("jobs", "owner", "us-east-1", 10)
        source = Bytes(b"x", refuse=ValueError("no"))
        with pytest.raises(ValueError, match="no"):
            await objects.put(store, bucket.id, "k", source, source.describe, None, {})
        await put(store, bucket, "k", b"there")
        source = Bytes(b"y")
        with pytest.raises(PreconditionFailed):
            await objects.put(store, bucket.id, "k", source, source.describe, Conditions(if_none_match=True), {})
        assert len(files(settings)) == 1
        assert (await objects.find(store, bucket.id, "k")).size == 5


async def test_sweep_takes_what_dead_writers_left_and_only_that(settings: Settings) -> None:
    async with opened(settings) as dead:
        bucket = await dead.index.create_bucket("jobs", "owner", "us-east-1", 10)
        await put(dead, bucket, "k", b"committed")
        orphan = await dead.ids.take()
        await dead.driver.put(orphan, Bytes(b"never committed"))
    assert len(files(settings)) == 2
    async with opened(settings) as store:
        writing = await store.ids.take()
        await store.driver.put(writing, Bytes(b"still being written"))
        assert await sweep(store, store.index.is_writer_dead) == 1
        assert await sweep(store, store.index.is_writer_dead) == 0
        assert len(files(settings)) == 2
        assert (await objects.find(store, bucket.id, "k")).size == 9


async def test_fsck_finds_both_ways(settings: Settings) -> None:
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("jobs", "owner", "us-east-1", 10)
        for key in ("missing", "short", "whole"):
            await put(store, bucket, key, b"0123456789")
        places = {key: (await objects.find(store, bucket.id, key)).body for key in ("missing", "short", "whole")}
        await store.driver.discard(places["missing"])
        name = f"{store.driver.blob_id(places['short']):016x}"
        (next((settings.data / "data").glob(f"*/{name}"))).write_bytes(b"01234")
        orphan = settings.data / "data" / "01" / f"{1:016x}"
        orphan.write_bytes(b"nobody's")
        report = await fsck(store, repair=False)
        assert [fact["key"] for fact in report.missing] == ["missing"]
        assert [fact["key"] for fact in report.short] == ["short"]
        assert report.orphans == [store.driver.locator(1)]
        assert not report.clean
        assert orphan.exists()
        report = await fsck(store, repair=True)
        assert (report.repaired, orphan.exists()) == (1, True), "it is in quarantine"
        assert (await fsck(store, repair=False)).orphans == []
        assert [fact["key"] for fact in report.missing] == ["missing"], "rows are never taken away"
        assert (await objects.find(store, bucket.id, "missing")).size == 10


async def test_data_goes_after_the_commit_that_discarded_it_is_durable(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut after a `relaxed` commit would bring back a row, old as it may be, without its data."""
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("jobs", "owner", "us-east-1", 10)
        for body in (bytes(300_000), b"new"):
            await put(store, bucket, "k", body)
        steps: list[str] = []
        make_durable, discard_many = store.index.make_durable, store.driver.discard_many

        async def noted_durable() -> None:
            steps.append("durable")
            await make_durable()

        async def noted_discard(locators: Any) -> None:
            steps.append("discard")
            await discard_many(locators)

        monkeypatch.setattr(store.index, "make_durable", noted_durable)
        monkeypatch.setattr(store.driver, "discard_many", noted_discard)
        assert await GarbageCollector(store, lambda: 2, lambda: 1, 0).run_once() == 1
        assert steps == ["durable", "discard"]


async def test_fsck_misses_no_blob_that_was_removed_by_right(settings: Settings) -> None:
    """It was discarded and removed after fsck read its row; its entry in the queue is forgotten later."""
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("jobs", "owner", "us-east-1", 10)
        walk, references = store.driver.walk, store.index.references

        async def walk_then_put() -> AsyncIterator[tuple[str, int]]:
            async for blob in walk():
                yield blob
            await put(store, bucket, "k", bytes(300_000))

        async def read_then_remove() -> AsyncIterator[Any]:
            async for reference in references():
                if reference.key == "k":
                    await objects.delete(store, bucket.id, "k", None, None, {})
                    await store.driver.discard(reference.locator)
                yield reference

        store.driver.walk = walk_then_put  # type: ignore[method-assign]
        store.index.references = read_then_remove  # type: ignore[method-assign]
        report = await fsck(store, repair=False)
        assert (report.rows, report.missing, report.orphans) == (1, [], [])


async def test_fsck_beside_the_collector_blames_nobody(settings: Settings) -> None:
    """A blob that was discarded while fsck read the index is no orphan."""
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("jobs", "owner", "us-east-1", 10)
        await put(store, bucket, "k", b"old")
        await put(store, bucket, "k", b"new")
        walk = store.driver.walk

        async def walk_then_collect() -> AsyncIterator[tuple[str, int]]:
            async for blob in walk():
                yield blob
            assert await GarbageCollector(store, lambda: 2, lambda: 1, 0).run_once() == 1

        store.driver.walk = walk_then_collect  # type: ignore[method-assign]
        # the ids are of a writer that has ended, so that fsck asks for them
        for ids in await store.index.ranges(store.index.incarnation):  # type: ignore[attr-defined]
            await store.index.retire_range(ids)
        report = await fsck(store, repair=False)
        assert (report.blobs, report.orphans, report.clean) == (2, [], True)


async def test_fsck_beside_a_writer_blames_nobody(settings: Settings) -> None:
    """A body that was still being written when the walk passed has all its bytes when its row is read."""
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("jobs", "owner", "us-east-1", 10)
        for key in ("written", "cut"):
            await put(store, bucket, key, b"0123456789")
        cut = store.driver.blob_id((await objects.find(store, bucket.id, "cut")).body)
        next((settings.data / "data").glob(f"*/{cut:016x}")).write_bytes(b"01234")
        walk = store.driver.walk

        async def walk_early() -> AsyncIterator[tuple[str, int]]:
            async for locator, _ in walk():
                yield locator, 0

        store.driver.walk = walk_early  # type: ignore[method-assign]
        report = await fsck(store, repair=False)
        assert ([fact["key"] for fact in report.short], report.missing) == (["cut"], [])


async def test_one_worker_is_elected_and_another_takes_over(settings: Settings, tmp_path: Path) -> None:
    rounds: list[str] = []

    class Counted(GarbageCollector):
        def __init__(self, name: str, store: Any) -> None:
            super().__init__(store, lambda: 0, lambda: 0, 0)
            self.name = name

        async def run_once(self) -> int:
            rounds.append(self.name)
            return 0

    async with opened(settings) as store:
        lock = tmp_path / "jobs.lock"

        def jobs(name: str) -> Jobs:
            make = lambda store: StoreJobs(store, Counted(name, store))  # noqa: E731
            return Jobs(FlockElection(lock), store, store.index.is_writer_dead, make)

        first, second = (asyncio.create_task(jobs(name).run()) for name in ("first", "second"))
        await eventually_async(lambda: bool(rounds))
        assert set(rounds) == {"first"}
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await eventually_async(lambda: "second" in rounds)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)


async def test_the_last_round_is_not_cut_off(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "ROUND_SECONDS", 0.01)
    begun = 0
    ended: list[int] = []

    class Slow(JournalWriter):
        async def run_once(self) -> int:
            nonlocal begun
            begun += 1
            mine = begun
            for _ in range(20):  # long enough for whoever would cancel it again
                await asyncio.sleep(0)
            ended.append(mine)
            return 0

    async with opened(settings) as store:
        make = lambda store: StoreJobs(store, GarbageCollector(store, lambda: 0, lambda: 0, 0), Slow(store))  # noqa: E731
        running = asyncio.create_task(
            Jobs(FlockElection(tmp_path / "jobs.lock"), store, store.index.is_writer_dead, make).run()
        )
        await eventually_async(lambda: bool(ended))
        rounds = begun
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert begun > rounds
        assert ended[-1] == begun
