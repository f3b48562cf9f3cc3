"""Limits of a store: past them it takes no more, and what frees space goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sluice_s3.app.errors import StoreFull
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.jobs.integrity.capacity import CapacityMonitor
from sluice_s3.app.settings import Settings, StoreSettings
from sluice_s3.app.store import objects
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.unit.jobs.packed import packed, put_part, start_upload
from tests.unit.store.site import prepare, put


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    settings = make_settings(tmp_path)
    prepare(settings)
    return settings


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with packed(settings) as store:
        yield store


@pytest.fixture
async def bucket(store: Store) -> Bucket:
    return await store.index.create_bucket("limited", "owner", "us-east-1", 10)


def limits(store: Store, **limits: int) -> CapacityMonitor:
    return CapacityMonitor(store, StoreSettings(path=Path("x"), **limits), lambda: 0.0)  # type: ignore[arg-type]


async def look(space: CapacityMonitor) -> None:
    await space.count()
    await space.look()


async def test_bytes_of_objects_and_parts(store: Store, bucket: Bucket) -> None:
    space = limits(store, max_bytes=1000)
    await put(store, bucket, "a", b"x" * 600)
    await look(space)
    assert not store.full
    upload = await start_upload(store, bucket, "u")
    await put_part(store, upload, 1, b"y" * 400)
    await look(space)
    assert store.full
    for size in (10, 300_000):
        with pytest.raises(StoreFull):
            await put(store, bucket, "b", b"z" * size)
    await put(store, bucket, "empty", b"")
    await objects.delete(store, bucket.id, "a", None, None, {})
    await look(space)
    await put(store, bucket, "b", b"z" * 10)


async def test_space_of_the_filesystem(store: Store, bucket: Bucket) -> None:
    space = limits(store, min_free=1 << 62)
    await look(space)
    with pytest.raises(StoreFull):
        await put(store, bucket, "a", b"x")
    space = limits(store, min_free=1)
    await look(space)
    await put(store, bucket, "a", b"x")


async def test_without_limits_nothing_is_counted(store: Store) -> None:
    await look(limits(store))
    assert await store.index.note(store.stored_note) == ""
    assert not store.full
