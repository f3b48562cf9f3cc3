"""Renames and appends come back with a rebuild, and leave nothing for fsck and the sweep to take that is held."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import NewVersion, Rename, Version
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import append as appending
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.unit.jobs.mixed import THRESHOLD, writing
from tests.unit.jobs.test_rebuild import lose_index, rebuilt
from tests.unit.store.site import Bytes, opened, prepare, put


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path, pack_size=1 << 20, pack_threshold=THRESHOLD)
    prepare(made)
    return made


async def append(store: Store, bucket: Bucket, key: str, body: bytes) -> None:
    source = Bytes(body)

    def describe(old: Version) -> NewVersion:
        parts = max(old.parts, 1) + 1
        size = old.size + len(body)
        return NewVersion(size, f"e-{size}", old.headers, "STANDARD", "", "", "", "", parts, old.owner_id)

    async def find() -> Version:
        return await objects.find(store, bucket.id, key)

    await appending.append(store, bucket.id, key, await find(), find, source, len(body), describe, str, None)


async def contents(store: Store, bucket: Bucket) -> dict[str, bytes]:
    found = {}
    for entry in (await store.index.list_current(bucket.id, "", "", "", 1000)).entries:
        version = await objects.find(store, bucket.id, entry.key)
        taken = bytearray()
        await reading.feed_bytes(store, version, 0, version.size, taken.extend)
        found[entry.key] = bytes(taken)
    return found


async def past(store: Store, bucket: Bucket) -> None:
    large = b"L" * (THRESHOLD + 1000)
    for key, body in {"small": b"s", "large": large, "gone": b"g", "old": b"o"}.items():
        await put(store, bucket, key, body)
    await append(store, bucket, "small", b"more")
    await append(store, bucket, "large", large)
    await append(store, bucket, "small", large)
    await store.index.rename_object(bucket.id, Rename("gone", "old"))
    await store.index.rename_object(bucket.id, Rename("small", "renamed"))
    await append(store, bucket, "renamed", b"end")
    await put(store, bucket, "gone", b"again")
    await store.index.rename_object(bucket.id, Rename("gone", "last"))


@pytest.mark.parametrize("snapshot", [False, True])
async def test_both_come_back(settings: Settings, snapshot: bool) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        journal_writer = JournalWriter(store)
        await past(store, bucket)
        if snapshot:
            journal_writer.request_snapshot()
        await journal_writer.run_once()
        while journal_writer._snapshot is not None:
            await journal_writer.run_once()
        held = await contents(store, bucket)
        assert sorted(held) == ["large", "last", "old", "renamed"]
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (lost, report.damage) == ([], [])
    async with writing(settings) as store:
        assert await contents(store, bucket) == held
        assert (await fsck(store, repair=False)).clean
        await append(store, bucket, "renamed", b"on")  # it goes on
        assert (await contents(store, bucket))["renamed"] == held["renamed"] + b"on"


async def test_an_append_that_was_not_decided_leaves_what_was(settings: Settings) -> None:
    """Its piece may be in the journals already, and its claim tells that it was lost."""
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        await put(store, bucket, "k", b"one")
        await append(store, bucket, "k", b"two")
        journal_writer = JournalWriter(store)
        changes = store.index.changes
        late = False

        async def behind(*arguments: object, **more: object) -> object:
            nonlocal late
            found = await changes(*arguments, **more)  # type: ignore[arg-type]
            if not late:
                late = True
                await append(store, bucket, "k", b"three")
            return found

        store.index.changes = behind  # type: ignore[method-assign, assignment]
        decided = store.index.advance_watermark

        async def stopped(*arguments: object) -> None:
            await decided(*arguments)  # type: ignore[arg-type]
            raise asyncio.CancelledError

        store.index.advance_watermark = stopped  # type: ignore[method-assign, assignment]
        with pytest.raises(asyncio.CancelledError):
            await journal_writer.run_once()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert report.damage == []
    assert [row[1] for row in lost] == ["k"]
    async with writing(settings) as store:
        assert await contents(store, bucket) == {"k": b"onetwo"}
        await append(store, bucket, "k", b"four")
        assert await contents(store, bucket) == {"k": b"onetwofour"}
        assert await store.index.miscounted() == []


async def test_nothing_that_is_held_is_taken(settings: Settings) -> None:
    async with writing(settings) as store:
        bucket = await store.index.create_bucket("b", "owner", "r", 10)
        await past(store, bucket)
        journal_writer = JournalWriter(store)
        await journal_writer.run_once()
        held = await contents(store, bucket)
        await GarbageCollector(store, lambda: 2, lambda: 1, 0, journal_writer.bound).run_once()
        assert (await fsck(store, repair=True)).clean
        assert await contents(store, bucket) == held
    async with opened(settings) as store:
        assert (await fsck(store, repair=True)).clean
        assert await contents(store, bucket) == held
