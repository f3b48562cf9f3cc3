"""An index of several stores is made anew from all of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sluice_s3.app.index.journals.rows import KEYRING
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.settings import Settings
from sluice_s3.app.startup import CannotStart
from sluice_s3.app.store import objects
from sluice_s3.app.store.encryption.keyring import change_ring
from tests.unit.jobs.encrypted import MASTER, with_ring
from tests.unit.jobs.mixed import tables
from tests.unit.jobs.packed import content
from tests.unit.jobs.two import LARGE, fill, make, rebuilt, settings_of, stores
from tests.unit.store.site import prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = settings_of(tmp_path)
    prepare(settings)
    return settings


async def test_all_of_it_comes_back(settings: Settings) -> None:
    async with stores(settings) as store:
        buckets = [await make(store, name) for name in store.all]
        for bucket in buckets:
            await fill(store, bucket)
        for one in store.all.values():
            await JournalWriter(one).run_once()
        for bucket in buckets:  # what is not decided comes back by its claims
            await put(store.of(bucket.store), bucket, "last", bucket.name.encode())
    before = tables(settings.index_path)
    report, lost = rebuilt(settings)
    assert (report.damage, lost) == ([], [])
    assert report.restored_claims == 2
    after = tables(settings.index_path)
    for table in ("buckets", "accounts", "pieces", "uploads"):
        assert after[table] == before[table]
    async with stores(settings) as store:
        for bucket in buckets:
            own = store.of(bucket.store)
            assert await content(own, bucket, "last") == bucket.name.encode()
            assert await content(own, bucket, "large") == LARGE
            version = await objects.find(own, bucket.id, "k1")
            assert version.body.startswith(f"{bucket.store}/p:")
        for one in store.all.values():
            found = await fsck(one, repair=False)
            assert found.clean, found


async def test_journals_of_one_store_say_nothing_of_the_others(settings: Settings) -> None:
    async with stores(settings) as store:
        buckets = [await make(store, name) for name in store.all]
        for bucket in buckets:
            await fill(store, bucket)
        for one in store.all.values():
            await JournalWriter(one).run_once()
        slow = store.of("slow")
        for journal in await store.index.journals("slow"):
            await slow.driver.discard_journals([journal.id])
    report, lost = rebuilt(settings)
    assert report.damage == ["store slow: there are no journals"]
    assert {bucket for bucket, *_ in lost} == {"on-slow"} or not lost


async def test_every_store_refuses_the_older_index(settings: Settings) -> None:
    async with stores(settings) as store:
        await fill(store, await make(store, "slow"))
        for one in store.all.values():
            await JournalWriter(one).run_once()
    kept = settings.index_path.with_name("kept")
    shutil.copytree(settings.index_path.parent, settings.index_path.parent.with_name("kept"))
    rebuilt(settings)
    shutil.rmtree(settings.index_path.parent)
    shutil.copytree(kept.parent.with_name("kept"), settings.index_path.parent)
    with pytest.raises(CannotStart, match="store fast: the index is of store"):
        async with stores(settings):
            pass


async def test_the_ring_with_the_highest_number_comes_back(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another store may write down the settings that it read before a key was made, with later commits."""
    async with stores(settings) as store:
        await with_ring(store)
        old = await store.index.settings_rows()
        await change_ring(store.index, MASTER, lambda ring: ring.with_new_key("named", 1))
        ring = await store.index.note(KEYRING)
        await fill(store, await make(store, "fast"))
        await JournalWriter(store.of("fast")).run_once()
        await fill(store, await make(store, "slow"))

        async def read_before() -> str:
            return old

        monkeypatch.setattr(store.index, "settings_rows", read_before)
        await JournalWriter(store.of("slow")).run_once()
    rebuilt(settings)
    async with stores(settings) as store:
        assert await store.index.note(KEYRING) == ring
