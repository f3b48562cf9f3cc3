"""Slices are given back however a reader ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice_s3.app.errors import DataDamaged
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.unit.store.site import opened, prepare, put

SIZE = 300_000


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


async def new_bucket(store: Store) -> Bucket:
    """A bucket."""
    return await store.index.create_bucket("reading", "owner", "us-east-1", 10)


async def test_small_bodies_come_at_once_and_large_ones_in_slices(settings: Settings) -> None:
    async with opened(settings) as store:
        bucket = await new_bucket(store)
        await put(store, bucket, "small", b"0123456789")
        await put(store, bucket, "large", bytes(SIZE))
        small = await objects.find(store, bucket.id, "small")
        os.utime(settings.data / "data" / small.body[-2:] / small.body.removeprefix("f:"))
        first = await reading.read_body(store, small, 2, 3, {})
        assert isinstance(first, reading.BodyStream), "a file that was touched is checked in a thread"
        await first.aclose()
        if store.driver.capabilities.nowait:
            assert await reading.read_body(store, small, 2, 3, {}) == b"234"
        assert await reading.read_body(store, small, 0, 0, {}) == b""
        slices = await reading.read_body(store, await objects.find(store, bucket.id, "large"), 5, SIZE - 5, {})
        assert isinstance(slices, reading.BodyStream)
        found = [(piece.offset, piece.count) async for piece in slices]
        assert found == [(5, SIZE - 5)]


@pytest.mark.parametrize("taken", [0, 1])
async def test_a_reader_that_stops_leaves_no_descriptor(settings: Settings, taken: int) -> None:
    async with opened(settings) as store:
        bucket = await new_bucket(store)
        await put(store, bucket, "large", bytes(SIZE))
        version = await objects.find(store, bucket.id, "large")
        before = descriptors()
        slices = await reading.read_body(store, version, 0, SIZE, {})
        assert isinstance(slices, reading.BodyStream)
        assert descriptors() == before + 1
        for _ in range(taken):
            (await anext(slices)).release()
        await slices.aclose()
        assert descriptors() == before


async def test_a_missing_or_short_blob_is_an_alarm(settings: Settings) -> None:
    async with opened(settings) as store:
        bucket = await new_bucket(store)
        await put(store, bucket, "large", bytes(SIZE))
        version = await objects.find(store, bucket.id, "large")
        (blob,) = (settings.data / "data").glob("*/*")
        blob.write_bytes(bytes(1000))
        with pytest.raises(DataDamaged):
            await reading.read_body(store, version, 0, SIZE, {})
        with pytest.raises(DataDamaged):
            await reading.read_body(store, version, 990, 20, {})
        blob.unlink()
        for length in (10, SIZE):
            with pytest.raises(DataDamaged):
                await reading.read_body(store, version, 0, length, {})
        with pytest.raises(DataDamaged):
            await reading.feed_bytes(store, version, 0, SIZE, lambda piece: None)
