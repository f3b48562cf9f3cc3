"""Locks and the jobs: they are written down before they are acknowledged, come back with a rebuild, and keep data."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest

from sluice_s3.app.errors import ObjectLocked, StoreUnavailable
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.object_lock.protection import COMPLIANCE, GOVERNANCE, SETTING, Lock
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.jobs import runner
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.leader_election import FlockElection
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.runner import StoreJobs
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.journals.wait import wait_until_journaled
from sluice_s3.app.store.journals.wakeup import JournalWakeup
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import THRESHOLD, writing
from tests.unit.jobs.test_rebuild import lose_index, rebuilt
from tests.unit.jobs.versioned import contents
from tests.unit.store.site import opened, prepare, put

pytestmark = pytest.mark.slow

FAR = 4_102_444_800_000


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=1 << 20, pack_threshold=THRESHOLD)
    prepare(made)
    return made


def headers(lock: Lock) -> str:
    return orjson.dumps({object_lock.LOCK: list(lock)}).decode()


async def test_a_lock_waits_for_the_journals(settings: Settings) -> None:
    lock = headers(Lock(COMPLIANCE, FAR))
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        made = await put(store, bucket, "key", b"body")
        made = made._replace(seq=await store.index.set_headers(bucket.id, "key", made.seq, lock))
        await wait_until_journaled(store, bucket, "key", made, "{}", 0)  # without a lock nothing is waited for
        with pytest.raises(StoreUnavailable):
            await wait_until_journaled(store, bucket, "key", made, lock, 0.05)
        waiting = asyncio.create_task(wait_until_journaled(store, bucket, "key", made, lock))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        await JournalWriter(store).run_once()
        await waiting


async def test_a_lock_waits_for_the_journals_though_they_passed_over_its_version(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tagged just before it is read, and then has a newer number than what is told."""
    lock = headers(Lock(COMPLIANCE, FAR))
    tagged = orjson.dumps({object_lock.LOCK: [COMPLIANCE, FAR], "tags": {"a": "b"}}).decode()
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        made = await put(store, bucket, "key", b"body")
        await put(store, bucket, "other", b"body")
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        made = made._replace(seq=await store.index.set_headers(bucket.id, "key", made.seq, lock))
        await put(store, bucket, "other", b"newer")
        await store.index.set_headers(bucket.id, "key", made.seq, tagged)
        at = made.seq + 2  # as if the tag had come while the changes up to here were read
        assert (await store.index.changes(made.seq - 1, at)).until == at
        await store.index.advance_watermark((await store.index.journals())[0], at, 0)
        with pytest.raises(StoreUnavailable):
            await wait_until_journaled(store, bucket, "key", made, lock, 0.05)
        await JournalWriter(store).run_once()
        await wait_until_journaled(store, bucket, "key", made, lock, 0)


@pytest.mark.parametrize("snapshot", [False, True])
async def test_locks_come_back_with_a_rebuild(settings: Settings, snapshot: bool) -> None:
    wanted = [Lock(GOVERNANCE, FAR), Lock(COMPLIANCE, FAR, True), Lock(hold=True), Lock(hold=False)]
    async with writing(settings) as store:
        made = f'{{"{SETTING}":["GOVERNANCE",1,0]}}'
        bucket = await store.index.create_bucket("b", "owner", "r", 10, settings=made, versioning=ENABLED)
        journal_writer = JournalWriter(store)
        ids = []
        for number, lock in enumerate(wanted):
            version = await put(store, bucket, "key", b"body" * (number + 1) * (1 + THRESHOLD * (number % 2)))
            await store.index.set_headers(bucket.id, "key", version.seq, headers(lock))
            ids.append(version.version_id)
        await store.index.delete_version(bucket.id, "key")
        if snapshot:
            journal_writer.request_snapshot()
        await journal_writer.run_once()
        while journal_writer._snapshot is not None:
            await journal_writer.run_once()
        held = await contents(store, bucket)
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (lost, report.damage) == ([], [])
    async with writing(settings) as store:
        assert await store.index.bucket("b") == bucket
        assert await contents(store, bucket) == held
        for version_id, lock in zip(ids, wanted, strict=True):
            found = await store.index.version(bucket.id, "key", version_id)
            assert found is not None
            assert object_lock.lock_of(found.headers) == lock
            if lock.hold or lock.mode:
                with pytest.raises(ObjectLocked):
                    await objects.delete(store, bucket.id, "key", version_id, None, {})


async def test_fsck_and_garbage_take_nothing_that_is_locked(settings: Settings) -> None:
    """Their reach is what no row holds; and rows that are locked stay."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket(
            "b", "owner", "r", 10, settings=f'{{"{SETTING}":[]}}', versioning=ENABLED
        )
        large = await put(store, bucket, "key", b"large" * THRESHOLD)
        small = await put(store, bucket, "key", b"small")
        for version in (large, small):
            await store.index.set_headers(bucket.id, "key", version.seq, headers(Lock(COMPLIANCE, FAR)))
        gone = await put(store, bucket, "key", b"gone" * THRESHOLD)
        for version in (gone, large, small):
            try:
                await objects.delete(store, bucket.id, "key", version.version_id, None, {}, bypass=True)
            except ObjectLocked:
                assert version is not gone
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        held = await contents(store, bucket)
        assert len(held) == 2
        await GarbageCollector(store, lambda: 2, lambda: 1, 0, journal_writer.bound).run_once()
        assert (await fsck(store, repair=True)).clean
        assert await contents(store, bucket) == held
    async with opened(settings) as store:
        assert (await fsck(store, repair=True)).clean
        assert await contents(store, bucket) == held


async def test_who_waits_has_the_journals_written(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long before the next round."""
    monkeypatch.setattr(runner, "ROUND_SECONDS", 3600.0)
    lock = headers(Lock(COMPLIANCE, FAR))
    async with writing(settings) as store:
        store.journal_wakeup = JournalWakeup(settings.run_dir, store.name)
        journal_writer = JournalWriter(store)
        garbage = GarbageCollector(store, lambda: 2, lambda: 1, 0, journal_writer.bound)
        election = FlockElection(settings.run_dir / "jobs.lock")
        running = asyncio.create_task(StoreJobs(store, garbage, journal_writer).run(election.get_leadership("store")))
        bucket = await store.index.create_bucket("b", "owner", "us-east-1", 10)
        for number in range(3):
            made = await put(store, bucket, f"key{number}", b"body")
            made = made._replace(seq=await store.index.set_headers(bucket.id, f"key{number}", made.seq, lock))
            await wait_until_journaled(store, bucket, f"key{number}", made, lock)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await election.close()
        store.journal_wakeup.close()
