"""An index of several stores is made anew from all of them."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.index import open_index
from app.index.rows import Bucket
from app.jobs.decisions import Decisions
from app.jobs.fsck import fsck
from app.jobs.rebuild import Rebuild, Report
from app.settings import Settings
from app.startup import CannotStart, start
from app.store import objects
from app.store.driver import make_stores
from app.store.offline import open_all
from app.store.store import Store
from tests.jobs.mixed import THRESHOLD, tables
from tests.jobs.packed import complete, content, put_part, start_upload
from tests.store.site import prepare, put

LARGE = b"large " * THRESHOLD


def settings_of(path: Path) -> Settings:
    return Settings(  # type: ignore[call-arg]
        root_access_key="ROOTKEY",
        root_secret_key="root-secret-key",  # type: ignore[arg-type]
        durability="relaxed",
        pack_threshold=THRESHOLD,
        stores={"fast": {"path": path / "fast"}, "slow": {"path": path / "slow"}},  # type: ignore[dict-item]
        index=f"sqlite:///{path}/index/sluice.db",
    )


@asynccontextmanager
async def stores(settings: Settings) -> AsyncIterator[Store]:
    """All stores, with a writer of their own; the default one is given."""
    index = open_index(settings)
    await index.start()
    store = make_stores(index, settings)
    known = await index.identities()
    try:
        for one in store.all.values():
            await start(one, known)
            one.open_packs()
        yield store
    finally:
        for one in store.all.values():
            await one.close_packs()
        await store.ids.close()
        for one in store.all.values():
            await one.driver.close()
        await index.close()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = settings_of(tmp_path)
    prepare(settings)
    return settings


def rebuilt(settings: Settings) -> tuple[Report, list[tuple[str, str, int, int, str]]]:
    """Rebuild as the command does."""
    shutil.rmtree(settings.index_path.parent)
    with Rebuild(open_all(settings), settings.index_path, commit_timeout=20, progress=lambda *_: None) as work:
        report = work.run()
        lost = list(work.lost())
        work.install(replace=False)
    (settings.run_dir / "writers").mkdir(parents=True, exist_ok=True)
    return report, lost


async def make(store: Store, name: str) -> Bucket:
    return await store.index.create_bucket(f"on-{name}", "owner", "us-east-1", 10, name)


async def fill(store: Store, bucket: Bucket) -> None:
    """Small and large objects, one deleted, one of parts."""
    own = store.of(bucket.store)
    for number in range(5):
        await put(own, bucket, f"k{number}", b"%d of " % number + bucket.name.encode())
    await put(own, bucket, "large", LARGE)
    await objects.delete(own, bucket.id, "k3", None, None, {})
    upload = await start_upload(own, bucket, "parts")
    for number in (1, 2):
        await put_part(own, upload, number, b"%d" % number * THRESHOLD * number)
    await complete(own, bucket, upload)


async def test_all_of_it_comes_back(settings: Settings) -> None:
    async with stores(settings) as store:
        buckets = [await make(store, name) for name in store.all]
        for bucket in buckets:
            await fill(store, bucket)
        for one in store.all.values():
            await Decisions(one).run_once()
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
            await Decisions(one).run_once()
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
            await Decisions(one).run_once()
    kept = settings.index_path.with_name("kept")
    shutil.copytree(settings.index_path.parent, settings.index_path.parent.with_name("kept"))
    rebuilt(settings)
    shutil.rmtree(settings.index_path.parent)
    shutil.copytree(kept.parent.with_name("kept"), settings.index_path.parent)
    with pytest.raises(CannotStart, match="store fast: the index is of store"):
        async with stores(settings):
            pass
