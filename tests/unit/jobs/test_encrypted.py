"""What jobs do to blobs that are encrypted: they need no key, and what was written is read after them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sluice_s3.app.errors import KeyUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.journals.rows import KEYRING
from sluice_s3.app.index.objects.rows import NewVersion, Version
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.integrity.scrub import Scrubber
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.encryption.keyring import change_ring
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.unit.jobs.encrypted import (
    MASTER,
    content,
    of_customer,
    of_kms,
    put_sealed,
    upload_sealed,
    with_ring,
)
from tests.unit.jobs.mixed import LARGE, THRESHOLD, writing
from tests.unit.jobs.packed import PACK, collect, compact, delete, packed
from tests.unit.jobs.test_rebuild import lose_index, rebuilt
from tests.unit.store.site import prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=PACK, pack_threshold=THRESHOLD)
    prepare(made)
    return made


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with writing(settings) as made:
        yield made


@pytest.fixture
async def bucket(store: Store) -> Bucket:
    return await store.index.create_bucket("sealed", "owner", "us-east-1", 10)


def some(name: str, size: int) -> bytes:
    return hashlib.shake_128(name.encode()).digest(size)


async def fill(store: Store, bucket: Bucket) -> dict[str, bytes]:
    """Objects in every way of encryption; what was put."""
    by_s3 = await with_ring(store)
    await change_ring(store.index, MASTER, lambda ring: ring.with_new_key("named", 1))
    await store.keyring.read_anew()
    seals = {"s3": by_s3, "kms": of_kms(store.keyring.ring, "named"), "customer": of_customer()}
    bodies = {}
    for name, seal in seals.items():
        for size in (1, 5000, LARGE, 0):
            key = f"{name} {size}"
            bodies[key] = some(key, size)
            await put_sealed(store, bucket, key, bodies[key], seal)
        parts = [some(f"{name} part {number}", size) for number, size in enumerate((LARGE, 70_000, 3))]
        await upload_sealed(store, bucket, f"{name} parts", parts, seal)
        bodies[f"{name} parts"] = b"".join(parts)
    await put(store, bucket, "plain", b"plain")
    return bodies | {"plain": b"plain"}


async def check(store: Store, bucket: Bucket, bodies: dict[str, bytes]) -> None:
    for key, body in bodies.items():
        assert await content(store, bucket, key) == body, key


async def test_scrub_and_fsck_find_nothing_wrong(store: Store, bucket: Bucket) -> None:
    bodies = await fill(store, bucket)
    await JournalWriter(store).run_once()
    report = await Scrubber(store, 0).run_once()
    assert report.clean
    found = await fsck(store, repair=True)
    assert (found.missing, found.short, found.orphans) == ([], [], [])
    await check(store, bucket, bodies)


async def test_compaction_moves_records_as_they_are(settings: Settings) -> None:
    async with packed(settings) as store:
        bucket = await store.index.create_bucket("sealed", "owner", "us-east-1", 10)
        bodies = await fill(store, bucket)
        seal = await with_ring(store)
        for number in range(60):  # the first pack is full
            await put_sealed(store, bucket, f"dead {number}", os.urandom(18_000), seal)
        before = (await objects.find(store, bucket.id, "s3 5000")).body
        await delete(store, bucket, *(f"dead {number}" for number in range(60)))
        await collect(store)
        await compact(store)
        assert (await objects.find(store, bucket.id, "s3 5000")).body != before
        await check(store, bucket, bodies)
        assert (await fsck(store, repair=False)).clean


async def test_a_copy_holds_the_same_blob(store: Store, bucket: Bucket) -> None:
    bodies = await fill(store, bucket)

    async def find() -> Version:
        return await objects.find(store, bucket.id, "s3 parts")

    async def describe(found: Version) -> NewVersion:
        return NewVersion(*(getattr(found, name) for name in NewVersion._fields))

    await objects.copy(store, find, bucket.id, "copy", describe, None, {})
    await objects.delete(store, bucket.id, "s3 parts", None, None, {})
    await collect(store)
    assert await content(store, bucket, "copy") == bodies["s3 parts"]


async def test_a_lost_index_comes_back_with_the_ring(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("sealed", "owner", "us-east-1", 10)
        bodies = await fill(store, bucket)
        await change_ring(store.index, MASTER, lambda ring: ring.with_new_version("named", 2))
        await store.keyring.read_anew()
        bodies["young"] = b"young"
        await put_sealed(store, bucket, "young", b"young", of_kms(store.keyring.ring, "named"))
        kept = JournalWriter(store)
        await kept.run_once()
        await store.keyring.wait_until_journaled(store.name, 0)
        ring = await store.index.note(KEYRING)
        # written after the last decision: its claim alone tells of it
        await put_sealed(store, bucket, "claimed", b"claimed", await with_ring(store))
        bodies["claimed"] = b"claimed"
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (lost, report.damage, report.restored_claims) == ([], [], 1)
    async with writing(settings) as store:
        assert await store.index.note(KEYRING) == ring
        with pytest.raises(KeyUnavailable):
            store.keyring.unwrapping(1, bytes(16))
        await with_ring(store)
        found = await store.index.bucket("sealed")
        assert found is not None
        await check(store, found, bodies)
        assert (await fsck(store, repair=False)).short == []
