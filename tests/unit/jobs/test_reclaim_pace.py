"""Removal of garbage beside requests: what it yields, and what must not wait for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.jobs import runner
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.leader_election import FlockElection
from sluice_s3.app.jobs.pacing import LEAST_SPREAD_SECONDS, SPREAD_SECONDS, Pacer
from sluice_s3.app.jobs.reclaim import garbage_collector
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.runner import StoreJobs
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.support.waiting import eventually_async
from tests.unit.index.tools import part
from tests.unit.store.site import files, opened, prepare, put

pytestmark = pytest.mark.slow

GRACE = 5


class Clock:
    """Milliseconds, which pass in sleeps only."""

    def __init__(self) -> None:
        self.ms = 1000.0
        self.sleeps = 0

    def __call__(self) -> int:
        return int(self.ms)

    async def sleep(self, seconds: float) -> None:
        self.ms += 1000 * seconds
        self.sleeps += 1


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


async def discard(store: Store, bucket: Bucket, count: int) -> None:
    """Put objects and delete them."""
    for number in range(count):
        await put(store, bucket, f"k{number}", b"x")
        await objects.delete(store, bucket.id, f"k{number}", None, None, {})


def collector(store: Store, clock: Clock, *, busy: bool = True) -> GarbageCollector:
    pacer = Pacer(lambda: busy, sleep=clock.sleep)
    return GarbageCollector(store, lambda: 1 << 40, clock, GRACE, pacer=pacer)


@pytest.mark.parametrize("busy", [True, False])
async def test_garbage_goes_in_steps_beside_requests_and_at_once_without(settings: Settings, busy: bool) -> None:
    clock = Clock()
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        await discard(store, bucket, 30)
        garbage = collector(store, clock, busy=busy)
        assert await garbage.run_once() == 0
        clock.ms += 1000 * GRACE
        assert await store.index.discard_backlog("default") != (0, 0)
        began = clock()
        assert await garbage.run_once() == 30
        assert files(settings) == []
        assert await store.index.discard_backlog("default") == (0, 0)
        assert (clock.sleeps > 2) is busy
        assert clock() - began <= 1000 * LEAST_SPREAD_SECONDS


async def test_a_file_that_cannot_be_removed_keeps_no_other(settings: Settings) -> None:
    clock = Clock()
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        for number in range(12):
            await put(store, bucket, f"k{number}", b"x")
        (bad,) = (settings.data / "data").glob(f"*/{files(settings)[5]}")
        bad.unlink()
        bad.mkdir()
        for number in range(12):
            await objects.delete(store, bucket.id, f"k{number}", None, None, {})
        garbage = collector(store, clock, busy=False)
        await garbage.run_once()
        clock.ms += 1000 * GRACE
        for _ in range(12):
            with pytest.raises(StoreUnavailable):
                await garbage.run_once()
        assert (await store.index.discard_backlog("default"))[0] == 1
        bad.rmdir()
        assert await garbage.run_once() == 1
        assert await store.index.discard_backlog("default") == (0, 0)


async def test_a_store_with_more_garbage_than_fits_into_memory_does_not_wait(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage_collector, "MAX_WAITING", 20)
    monkeypatch.setattr(garbage_collector, "BLOBS_PER_BATCH", 10)
    clock = Clock()
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        await discard(store, bucket, 45)
        garbage = collector(store, clock)
        sleeps = []
        for _ in range(6):
            await garbage.run_once()
            clock.ms += 1000 * GRACE
            sleeps.append(clock.sleeps)
        assert sleeps[1] < 15, "the first ten of twenty do not wait"
        assert files(settings) == []


async def test_garbage_that_was_due_for_long_does_not_wait(settings: Settings) -> None:
    clock = Clock()
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        await discard(store, bucket, 30)
        garbage = collector(store, clock)
        await garbage.run_once()
        clock.ms += 1000 * GRACE
        discard_many = store.driver.discard_many

        async def fail(_: Sequence[str]) -> None:
            raise StoreUnavailable()

        store.driver.discard_many = fail  # type: ignore[method-assign]
        with pytest.raises(StoreUnavailable):
            await garbage.run_once()
        store.driver.discard_many = discard_many  # type: ignore[method-assign]
        clock.ms += 1000 * SPREAD_SECONDS
        clock.sleeps = 0
        assert await garbage.run_once() == 30
        assert clock.sleeps == 0


async def test_a_full_store_is_emptied_at_once(settings: Settings) -> None:
    clock = Clock()
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        await discard(store, bucket, 30)
        garbage = collector(store, clock)
        await garbage.run_once()
        clock.ms += 1000 * GRACE
        store.full = True
        assert await garbage.run_once() == 30
        assert clock.sleeps == 0


async def test_the_pieces_of_an_upload_are_released_by_short_transactions(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(garbage_collector, "ENTRIES_PER_COMMIT", 3)
    clock = Clock()
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        upload = await store.index.create_upload(bucket.id, "k", "{}", "STANDARD", "", "", "owner")
        for number in range(1, 11):
            await store.index.put_part(upload, part(number, store.driver.locator(1000 + number)))
        await store.index.abort_upload(upload)
        garbage = collector(store, clock)
        await garbage.run_once()
        clock.ms += 1000 * GRACE
        assert await garbage.run_once() == 1
        assert len(await store.index.discards(0, 100)) == 10, "the parts' blobs have a grace of their own"


async def test_what_comes_meanwhile_is_seen_meanwhile(settings: Settings) -> None:
    """The grace of new garbage does not begin only when the old is gone."""
    clock = Clock()
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        await discard(store, bucket, 10)
        garbage = collector(store, clock)
        await garbage.run_once()
        clock.ms += 1000 * GRACE
        discard_many = store.driver.discard_many
        steps = 0

        async def take_long(locators: Sequence[str]) -> None:
            nonlocal steps
            steps += 1
            if steps == 1:
                await discard(store, bucket, 10)
            clock.ms += 1000 * GRACE
            await discard_many(locators)

        store.driver.discard_many = take_long  # type: ignore[method-assign]
        assert await garbage.run_once() == 20
        assert files(settings) == []


async def test_journals_do_not_wait_for_the_collector(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "ROUND_SECONDS", 0.01)
    async with opened(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        waits = asyncio.Event()

        async def sleep(_: float) -> None:
            waits.set()
            await asyncio.Event().wait()

        journals = JournalWriter(store)
        garbage = GarbageCollector(
            store, lambda: 2, lambda: 1, 0, journals.bound, pacer=Pacer(lambda: True, sleep=sleep)
        )
        election = FlockElection(tmp_path / "jobs.lock")
        running = asyncio.create_task(StoreJobs(store, garbage, journals).run(election.get_leadership("store")))
        await discard(store, bucket, 3)
        await asyncio.wait_for(waits.wait(), 60)
        await put(store, bucket, "later", b"x")

        async def is_journaled() -> bool:
            return (await store.index.journal_lag())[0] == 0

        await eventually_async(is_journaled)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await election.close()


def test_records_are_removed_in_the_order_of_their_place() -> None:
    """Neighbours of any size, so that holes are as large as can be."""
    places = [(pack, offset) for pack in (0x9, 0xA1) for offset in (0x20, 0xF00, 0x1000, 0x12345)]
    records = [f"cold/p:{pack:x}.{offset:x}.{0x7FF + offset % 7:x}.{99:x}" for pack, offset in places]
    shuffled = [records[number] for number in (5, 2, 7, 0, 3, 6, 1, 4)]
    assert sorted(shuffled, key=garbage_collector._place) == records
