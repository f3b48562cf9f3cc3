"""Moves of buckets, removal, compaction and lost indexes in random order: nothing is lost, and nothing comes back."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from sluice_s3.app.errors import DomainError
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.jobs.journals.writer import JournalWriter, other_stores_watermark
from sluice_s3.app.jobs.reclaim.compaction import Compactor
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.relocation import bucket_migration
from sluice_s3.app.jobs.relocation.bucket_migration import BucketMigrator
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.blob_ids import BlobIds
from sluice_s3.app.store.store import Store
from tests.support.environment import sized
from tests.unit.jobs.mixed import THRESHOLD
from tests.unit.jobs.packed import complete, copy, put_part, start_upload
from tests.unit.jobs.test_bucket_migration import copy_to
from tests.unit.jobs.test_rebuild_moves import check_books, make_again, seal
from tests.unit.jobs.test_recover import back_up
from tests.unit.jobs.two import settings_of, stores
from tests.unit.jobs.versioned import contents
from tests.unit.store.site import prepare, put

pytestmark = pytest.mark.slow

SEEDS = sized((1, 2, 12, 33), range(500))
"""12 and 33 lost data while `rebuild` and `recover` took holes in packs for what had been there."""
ROUNDS = 8
"""Each ends with a restart, of an index that is made again more often than not."""
KEYS = 30
BODY_BYTES = (3000, 8442, 18_000, 18_000, THRESHOLD + 5000)
PART_BYTES = (9000, 19_000, 2 * THRESHOLD)
DAY_SECONDS = 100_000.0

Step = Callable[[], Awaitable[object]]


class Round:
    """What a gateway does from one start to the next. `done` names the steps, for the message of a failure."""

    def __init__(self, store: Store, buckets: list[Bucket], rng: random.Random, done: list[str]) -> None:
        self._store = store
        self._names = [bucket.name for bucket in buckets]
        self._rng = rng
        self._done = done
        self._now = 0.0
        self._writers = {name: JournalWriter(one) for name, one in store.all.items()}
        self._garbage = [self._collector(one) for one in store.all.values()]
        self._garbage.append(GarbageCollector(store, lambda: 2, lambda: 1, 0, blobs=False))
        self._compactors = [
            Compactor(one, 1 << 30, 0, lambda *_: None, lambda: self._now) for one in store.all.values()
        ]
        self._migrator = BucketMigrator(store, lambda: 2, lambda: 1)
        self._leader_ids = BlobIds(store.index)
        self.upkeep: dict[str, Step] = {
            "migrate": self._migrate,
            "collect": self._collect,
            "compact": self._compact,
            "seal": self._seal,
        }
        """Steps that no journal records."""
        self.steps: dict[str, Step] = {
            **self.upkeep,
            "change": self.change,
            "journal": self.journal,
            "snapshot": self._snapshot,
            "move": self._move,
            "turn back": self._turn_back,
        }

    def _collector(self, store: Store) -> GarbageCollector:
        bound, elsewhere = self._writers[store.name].bound, partial(other_stores_watermark, store)
        return GarbageCollector(store, lambda: 2, lambda: 1, 0, bound, pieces=False, elsewhere=elsewhere)

    async def begin(self) -> None:
        """Reserve the ids of the copies, as another worker may that was started first."""
        await self._leader_ids.take_for_record()

    async def end(self) -> None:
        """Give the rest of them back."""
        await self._leader_ids.close()

    async def run(self, steps: dict[str, Step], number: int) -> None:
        """Take so many steps."""
        for name in self._rng.choices(list(steps), k=number):
            self._done.append(name)
            with suppress(DomainError):  # refused
                await steps[name]()

    async def change(self) -> None:
        """Some requests."""
        for _ in range(self._rng.randrange(40)):
            with suppress(DomainError):  # there is no such key
                await self._request(await self._bucket(), f"k{self._rng.randrange(KEYS)}")

    async def _bucket(self) -> Bucket:
        bucket = await self._store.index.bucket(self._rng.choice(self._names))
        assert bucket is not None
        return bucket

    async def _request(self, bucket: Bucket, key: str) -> None:
        own = self._store.of(bucket.store)
        kind = self._rng.choices(("put", "delete", "copy", "copy elsewhere", "multipart"), (11, 4, 2, 2, 2))[0]
        if kind == "put":
            await put(own, bucket, key, os.urandom(self._rng.choice(BODY_BYTES)))
        elif kind == "delete":
            await objects.delete(own, bucket.id, key, None, None, {})
        elif kind == "copy":
            await copy(own, bucket, key, f"k{self._rng.randrange(KEYS)}")
        elif kind == "copy elsewhere":
            await copy_to(own, bucket, await self._bucket(), key)
        else:
            upload = await start_upload(own, bucket, key)
            for number in (1, 2):
                await put_part(own, upload, number, os.urandom(self._rng.choice(PART_BYTES)))
            if self._rng.random() < 0.8:
                await complete(own, bucket, upload)

    async def journal(self) -> None:
        """All changes are in the journals."""
        for writer in self._writers.values():
            await writer.run_once()
            while writer._snapshot is not None:
                await writer.run_once()

    async def _snapshot(self) -> None:
        self._rng.choice(list(self._writers.values())).request_snapshot()
        await self.journal()

    async def _move(self) -> None:
        await self._store.index.begin_move(self._rng.choice(self._names), self._rng.choice(("fast", "slow")))

    async def _turn_back(self) -> None:
        await self._store.index.turn_back(self._rng.choice(self._names))

    async def _migrate(self) -> None:
        own = self._store.ids
        self._set_ids(self._leader_ids)
        try:
            await self._migrator.run_once()
        finally:
            self._set_ids(own)

    def _set_ids(self, ids: BlobIds) -> None:
        for store in self._store.all.values():
            store.ids = ids

    async def _collect(self) -> None:
        for _ in range(2):
            for collector in self._garbage:
                await collector.run_once()

    async def _compact(self) -> None:
        for _ in range(3):
            self._now += DAY_SECONDS
            for compactor in self._compactors:
                await compactor.run_once()
            await self._collect()

    async def _seal(self) -> None:
        for store in self._store.all.values():
            await seal(store)


async def _run_round(round_: Round, store: Store, settings: Settings, rng: random.Random) -> Path | None:
    """Changes, journals, upkeep; return the backup that was taken meanwhile, if any."""
    backup = None
    await round_.begin()
    for _ in range(rng.randrange(4)):
        await round_.run(round_.steps, rng.randrange(8))
        if rng.random() < 0.3:
            await round_.journal()
            backup = back_up(settings)
    await round_.change()
    for one in store.all.values():
        await one.report_rejected_records()
    await round_.journal()
    await round_.run(round_.upkeep, rng.randrange(6))
    await round_.end()
    return backup


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_index_is_lost_at_any_time(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(bucket_migration, "RECORDS_PER_BATCH", rng.choice((3, 64)))
    settings = settings_of(tmp_path)
    await asyncio.to_thread(prepare, settings)
    async with stores(settings) as store:
        create = store.index.create_bucket
        buckets = [await create(f"b{at}", "owner", "us-east-1", 10, ("fast", "slow")[at % 2]) for at in range(3)]
        await store.index.set_versioning(buckets[0].id, ENABLED)
    done: list[str] = []
    backup = None
    for _ in range(ROUNDS):
        async with stores(settings) as store:
            backup = await _run_round(Round(store, buckets, rng, done), store, settings, rng) or backup
            expected = [await contents(store, bucket) for bucket in buckets]
        way = rng.choice(("restart", "rebuild", "recover") if backup else ("restart", "rebuild"))
        done.append(way)
        if way != "restart":
            make_again(settings, way, backup)
            backup = None
        async with stores(settings) as store:
            found = [await contents(store, bucket) for bucket in buckets]
            assert found == expected, done
            await check_books(store)
