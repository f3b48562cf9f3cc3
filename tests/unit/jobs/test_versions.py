"""Jobs in buckets that keep versions: older versions and delete markers are data like any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice_s3.app.index.engine.declared import Write
from sluice_s3.app.index.engine.lock_keys import global_lock
from sluice_s3.app.index.schema.tables import CURRENT, ENABLED, MARKER, NONCURRENT, OLD_MARKER, SUSPENDED
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from tests.support.environment import sized
from tests.support.settings import make_settings
from tests.unit.index.test_newest import set_states
from tests.unit.jobs.mixed import THRESHOLD, tables, writing
from tests.unit.jobs.packed import PACK, Counts, body, compact, packed
from tests.unit.jobs.test_rebuild import lose_index, rebuilt
from tests.unit.jobs.versioned import VersionedPast, contents, every_version
from tests.unit.store.site import opened, prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=1 << 20, pack_threshold=THRESHOLD)
    prepare(made)
    return made


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("snapshot", [False, True])
async def test_a_store_with_versions_comes_back_exactly(settings: Settings, snapshot: bool) -> None:
    async with writing(settings) as store:
        journal_writer = JournalWriter(store)
        garbage = GarbageCollector(store, lambda: 2, lambda: 1, 0, journal_writer.bound)
        past = VersionedPast(store, seed=5 + snapshot, keys=sized(30, 10_000), at_once=sized(8, 64))
        await past.begin()
        await store.index.set_versioning(past.buckets[1].id, ENABLED)
        for turn in range(20):
            await past.run(sized(60, 6000))
            if snapshot and turn in (4, 12):
                journal_writer.request_snapshot()
            await store.report_rejected_records()
            await journal_writer.run_once()
            await garbage.run_once()
        await past.end()
        await journal_writer.run_once()
        while journal_writer._snapshot is not None:
            await journal_writer.run_once()
        assert min(past.done.get(name, 0) for name in ("_delete_one", "_switch", "_describe", "_copy", "_upload")) > 3
        held = await contents(store, past.buckets[1])
        assert {state for _, _, state in held} == {NONCURRENT, CURRENT, MARKER, OLD_MARKER}
    before = tables(settings.index_path)
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (lost, report.damage, report.restored_claims) == ([], [], 0)
    after = tables(settings.index_path)
    for name, rows in before.items():
        assert after[name] == rows, name
    async with opened(settings) as store:
        assert await contents(store, past.buckets[1]) == held
        found = await fsck(store, repair=False)
        assert (found.missing, found.short, found.miscounted, found.overcounted) == ([], [], [], [])


async def test_the_newest_of_what_is_left_is_the_current_one(settings: Settings) -> None:
    """A version that steps down or up again is not written down anew."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await store.index.set_versioning(bucket.id, ENABLED)
        journal_writer = JournalWriter(store)
        first = await put(store, bucket, "back", b"first")
        second = await put(store, bucket, "back", b"second")
        await put(store, bucket, "down", b"first")
        journal_writer.request_snapshot()
        await journal_writer.run_once()
        while journal_writer._snapshot is not None:
            await journal_writer.run_once()
        await objects.delete(store, bucket.id, "back", second.version_id, None, {})
        await objects.delete(store, bucket.id, "down", None, None, {})
        await journal_writer.run_once()
        expected = await contents(store, bucket)
    lose_index(settings)
    rebuilt(settings)
    async with opened(settings) as store:
        assert await contents(store, bucket) == expected
        assert await store.index.version(bucket.id, "down") is None
        found = await store.index.version(bucket.id, "back")
        assert found is not None
        assert found.version_id == first.version_id
        known = await store.index.bucket("bucket")
        assert known is not None
        assert known.versioning == ENABLED


@pytest.mark.parametrize("versioning", [ENABLED, SUSPENDED])
async def test_what_was_not_decided_is_restored_as_the_bucket_keeps_it(settings: Settings, versioning: int) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await store.index.set_versioning(bucket.id, ENABLED)
        decided = await put(store, bucket, "k", b"decided")
        await store.index.set_versioning(bucket.id, versioning)
        await JournalWriter(store).run_once()
        for text in (b"one", b"two"):
            await put(store, bucket, "k", text)
    lose_index(settings)
    report, lost = rebuilt(settings)
    async with opened(settings) as store:
        entries = await every_version(store, bucket)
        held = list((await contents(store, bucket)).values())
        newest = await store.index.version(bucket.id, "k")
        assert newest is not None
        assert newest.version_id == entries[0].version_id
    if versioning == ENABLED:
        assert (held, report.restored_claims, lost) == ([b"two", b"one", b"decided"], 2, [])
        assert len({entry.version_id for entry in entries} - {"null"}) == 3
    else:
        assert (held, report.restored_claims, len(lost)) == ([b"two", b"decided"], 1, 1)
        assert [entry.version_id for entry in entries] == ["null", decided.version_id]


async def test_versions_whose_bucket_is_told_to_have_none_are_kept(settings: Settings) -> None:
    """The switch was written down a moment later than what was put behind it, and is lost."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        await store.index.set_versioning(bucket.id, ENABLED)
        await put(store, bucket, "k", b"body")
        journal_writer._generation, journal_writer._settings_seen = store.index.generation, 1e18
        await journal_writer.run_once()
    lose_index(settings)
    rebuilt(settings)
    async with writing(settings) as store:
        known = await store.index.bucket("bucket")
        assert known is not None
        assert known.versioning == ENABLED
        await put(store, bucket, "k", b"newer")
        assert len(await every_version(store, bucket)) == 2


async def test_compaction_moves_older_versions(settings: Settings) -> None:
    async with packed(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await store.index.set_versioning(bucket.id, ENABLED)
        gone = []
        for number in range(150):
            key = f"k{number % 10}"
            made = await put(store, bucket, key, body(f"{key}-{number}"))
            if number % 4:
                gone.append((key, made.version_id))
        for key, version_id in gone:
            await objects.delete(store, bucket.id, key, version_id, None, {})
        expected = await contents(store, bucket)
    async with packed(settings) as store:
        counts = Counts()
        await compact(store, counts)
        assert counts.moved > 0
        assert counts.freed > PACK
        assert await contents(store, bucket) == expected
        found = await fsck(store, repair=False)
        assert found.clean


async def test_a_bucket_counts_all_its_versions(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("bucket", "owner", "us-east-1", 10)
        await store.index.set_versioning(bucket.id, ENABLED)
        for text in (b"1", b"22", b"333"):
            await put(store, bucket, "k", text)
        await objects.delete(store, bucket.id, "k", None, None, {})
        assert await store.index.bucket_size(bucket.id) == (4, 6)
        assert await store.index.stored_bytes("default") == 6
        report = await fsck(store, repair=False)
        assert report.clean
        assert report.rows == 3, "a delete marker holds nothing"


async def test_fsck_finds_a_key_without_a_newest_version(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10, versioning=ENABLED)
        for body in (b"first", b"second"):
            await put(store, bucket, "key", body)
        held = await contents(store, bucket)
        version = await objects.find(store, bucket.id, "key")
        await store.index._commit(Write(set_states, locks=global_lock), ([(version.seq, NONCURRENT)],))
        report = await fsck(store, repair=False)
        assert (report.clean, report.newest) == (False, [{"bucket": "b", "key": "key"}])
        report = await fsck(store, repair=True)
        assert (report.clean, report.newest, report.reordered) == (True, [], 1)
        assert await contents(store, bucket) == held
