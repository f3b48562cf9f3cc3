"""A mount that is missing for a moment, before anybody saw it: nothing on it is taken for gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.integrity.scrub import Scrubber
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from tests.unit.jobs.packed import content
from tests.unit.jobs.two import LARGE, make, settings_of, stores
from tests.unit.store.site import prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = settings_of(tmp_path)
    prepare(made)
    return made


@contextmanager
def unmounted(path: Path) -> Iterator[None]:
    """What is there is the directory to mount on."""
    path.rename(path.with_name("away"))
    path.mkdir()
    yield
    path.rmdir()
    path.with_name("away").rename(path)


async def test_packs_of_dead_writers_are_not_forgotten(settings: Settings, tmp_path: Path) -> None:
    async with stores(settings) as written, stores(settings) as store:
        bucket = await make(written, "slow")
        await put(written.of("slow"), bucket, "k", b"acknowledged")
        dead = written.index.incarnation  # type: ignore[attr-defined]
        with unmounted(tmp_path / "slow"), pytest.raises(StoreUnavailable):
            await sweep(store, lambda writer: writer.incarnation == dead)
        await sweep(store, lambda writer: writer.incarnation == dead)
        assert (await fsck(store.of("slow"), repair=True)).clean
        assert await content(store, bucket, "k") == b"acknowledged"


async def test_garbage_is_not_forgotten(settings: Settings, tmp_path: Path) -> None:
    async with stores(settings) as store:
        bucket, slow = await make(store, "slow"), store.of("slow")
        await put(slow, bucket, "k", LARGE)
        await objects.delete(slow, bucket.id, "k", None, None, {})
        garbage = GarbageCollector(slow, lambda: 2, lambda: 1, 0)
        with unmounted(tmp_path / "slow"), pytest.raises(StoreUnavailable):
            await garbage.run_once()
        await garbage.run_once()
        report = await fsck(slow, repair=False)
        assert report.orphans == []
        assert report.blobs == 0


@pytest.mark.parametrize("body", [b"small", LARGE])
async def test_nothing_goes_into_quarantine(settings: Settings, tmp_path: Path, body: bytes) -> None:
    async with stores(settings) as store:
        bucket, slow = await make(store, "slow"), store.of("slow")
        await put(slow, bucket, "k", body)
        with unmounted(tmp_path / "slow"), pytest.raises(StoreUnavailable):
            await Scrubber(slow, 0).run_once()
        assert await store.index.quarantine() == []
        assert (await Scrubber(slow, 0).run_once()).clean
        assert await content(store, bucket, "k") == body
