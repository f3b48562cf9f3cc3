"""Blobs that go to another store are held a few at a time, and few rows change in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.jobs.relocation import blob_copier, versions
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.store import Store
from tests.unit.jobs.packed import complete, copy, put_part, start_upload
from tests.unit.jobs.test_bucket_migration import lies_on, move, whole
from tests.unit.jobs.test_transitions import TO_SLOW, clean, ruled, running
from tests.unit.jobs.two import make, settings_of, stores
from tests.unit.store.site import prepare, put

PART = 5_000
PARTS = 30
BOUND = 6 * PART
MOST = 8


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = settings_of(tmp_path).model_copy(update={"storage_classes": "STANDARD_IA=slow"})
    prepare(made)
    return made


@pytest.fixture
async def store(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Store]:
    monkeypatch.setattr(blob_copier, "BYTES_PER_BATCH", BOUND, raising=False)
    monkeypatch.setattr(blob_copier, "RECORDS_PER_BATCH", MOST)
    monkeypatch.setattr(versions, "RECORDS_PER_BATCH", MOST)
    async with stores(settings) as made:
        yield made


class Watched:
    """Counts bytes of records that were read from one store and are not written to the other one yet."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.most = self.all = self.records = 0
        self._reread = store.of("fast").driver.reread_records
        self._keep = store.of("slow").write_blob
        monkeypatch.setattr(store.of("fast").driver, "reread_records", self.reread)
        monkeypatch.setattr(store.of("slow"), "write_blob", self.keep)

    async def reread(self, locators: Any, take: Any) -> Any:
        def taken(number: int, body: Any) -> None:
            self.now += len(body)
            self.all += len(body)
            self.most = max(self.most, self.now)
            take(number, body)

        self.records = max(self.records, len(locators))
        return await self._reread(locators, taken)

    async def keep(self, source: Any, claim: Any) -> Any:
        size = source.size
        kept = await self._keep(source, claim)
        self.now -= size
        return kept


async def of_parts(store: Store, bucket: Bucket, key: str, count: int) -> None:
    fast = store.of("fast")
    upload = await start_upload(fast, bucket, key)
    for number in range(1, count + 1):
        await put_part(fast, upload, number, b"%04d" % number * (PART // 4))
    await complete(fast, bucket, upload)


async def test_an_object_of_many_parts_is_not_held_whole(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await ruled(store, TO_SLOW)
    await of_parts(store, bucket, "many", PARTS)
    before = await whole(store, bucket)
    watched = Watched(store, monkeypatch)
    made, counted = running(store, 40)
    await made.run_once()
    assert counted == {"transition": 1}
    assert watched.all == PARTS * PART
    assert (watched.now, watched.records <= MOST) == (0, True)
    assert watched.most <= BOUND
    assert await whole(store, bucket) == before
    assert await lies_on(store, bucket) == {"slow"}
    await clean(store)


async def test_rows_of_few_blobs_change_in_one_transaction(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A version has all its blobs at new places at once; one of many goes alone."""
    bucket = await ruled(store, TO_SLOW)
    for number in range(5):
        await of_parts(store, bucket, f"a{number}", 3)
    await of_parts(store, bucket, "many", PARTS)
    await put(store.of("fast"), bucket, "small", b"small")
    before = await whole(store, bucket)
    reclass = store.index.reclass
    steps: list[list[int]] = []

    async def counting(found: Any, told: Any, entries: Any) -> Any:
        steps.append([len(one.locators) for one in entries])
        return await reclass(found, told, entries)

    monkeypatch.setattr(store.index, "reclass", counting)
    made, counted = running(store, 40)
    await made.run_once()
    assert counted == {"transition": 7}
    assert steps == [[3, 3], [3, 3], [3], [PARTS], [1]]
    assert await whole(store, bucket) == before
    assert await lies_on(store, bucket) == {"slow"}
    await clean(store)


async def test_a_move_that_splits_an_object_does_not_hold_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await make(store, "fast")
    await of_parts(store, bucket, "many", PARTS)
    await copy(store.of("fast"), bucket, "many", "copied")
    before = await whole(store, bucket)
    watched = Watched(store, monkeypatch)
    await move(store, bucket, "slow")
    assert watched.all == PARTS * PART
    assert watched.most <= BOUND
    assert await whole(store, bucket) == before
    assert await lies_on(store, bucket) == {"slow"}
    await clean(store)
