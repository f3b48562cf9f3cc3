"""A store that hangs stops its own jobs and nobody else's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sluice_s3.app.jobs import runner
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.leader_election import FlockElection
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.runner import Jobs, StoreJobs
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.store import Store
from tests.support.waiting import eventually_async
from tests.unit.jobs.two import LARGE, make, settings_of, stores
from tests.unit.store.site import Bytes, prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = settings_of(tmp_path)
    prepare(settings)
    return settings


def jobs_of(store: Store) -> StoreJobs:
    journal_writer = JournalWriter(store)
    return StoreJobs(
        store, GarbageCollector(store, lambda: 2, lambda: 1, 0, journal_writer.bound, pieces=False), journal_writer
    )


async def files(store: Store) -> int:
    """How many blobs lie in a store."""
    return len([locator async for locator, _ in store.driver.walk()])


@pytest.mark.parametrize("call", ["write_journal", "discard_many"])
async def test_others_go_on(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    monkeypatch.setattr(runner, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(runner, "LAST_ROUND_SECONDS", 0.1)
    async with stores(settings) as store:
        slow = store.of("slow")
        hung = asyncio.Event()

        async def hang(*_: object) -> None:
            hung.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(slow.driver, call, hang)
        jobs = Jobs(FlockElection(tmp_path / "jobs.lock"), store, store.index.is_writer_dead, jobs_of)
        running = asyncio.create_task(jobs.run())
        buckets = {name: await make(store, name) for name in store.all}
        for name, bucket in buckets.items():
            await put(store.of(name), bucket, "k", LARGE)
            await objects.delete(store, bucket.id, "k", None, None, {})
        async with asyncio.timeout(60):
            await hung.wait()
            await put(store.of("fast"), buckets["fast"], "k", LARGE)
            await put(store.of("fast"), buckets["fast"], "k", LARGE)

            async def is_collected() -> bool:
                return await files(store.of("fast")) <= 1 and not (await store.index.journal_lag("fast"))[0]

            await eventually_async(is_collected)
        assert await files(slow) == 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_others_are_swept(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a dead writer left on a good store goes, and then what it left on the other."""
    monkeypatch.setattr(runner, "ROUND_SECONDS", 0.01)
    async with stores(settings) as dead:
        for one in dead.all.values():
            await one.driver.put(await dead.ids.take(), Bytes(LARGE))
        incarnation = dead.index.incarnation  # type: ignore[attr-defined]
    async with stores(settings) as store:
        fast, slow = store.of("fast"), store.of("slow")
        assert (await files(fast), await files(slow)) == (1, 1)
        hung, answers = asyncio.Event(), asyncio.Event()
        discard_id = slow.driver.discard_id

        async def hang(blob_id: int) -> bool:
            hung.set()
            await answers.wait()
            return await discard_id(blob_id)

        monkeypatch.setattr(slow.driver, "discard_id", hang)
        jobs = Jobs(FlockElection(tmp_path / "jobs.lock"), store, store.index.is_writer_dead, jobs_of)
        running = asyncio.create_task(jobs.run())
        async with asyncio.timeout(60):
            await hung.wait()

            async def is_empty() -> bool:
                return not await files(fast)

            await eventually_async(is_empty)
            assert await files(slow) == 1
            assert incarnation in {writer.incarnation for writer in await store.index.writers()}
            # both stores' other jobs go on, that of the one which hangs too
            for one in store.all.values():
                bucket = await make(store, one.name)
                await put(one, bucket, "k", LARGE)
                await put(one, bucket, "k", LARGE)

            async def is_collected() -> bool:
                return await files(fast) <= 1 and await files(slow) <= 2

            async def is_forgotten() -> bool:
                return incarnation not in {writer.incarnation for writer in await store.index.writers()}

            await eventually_async(is_collected)
            answers.set()
            await eventually_async(is_forgotten)
            assert await files(slow) == 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
