"""A bucket is moved to another store while a restore or a transition copies: nothing lands where nobody looks again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.multipart.rows import Upload
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.object_lock.protection import COMPLIANCE
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.jobs.relocation import versions
from sluice_s3.app.jobs.relocation.blob_copier import BlobCopier, CopyRequest
from sluice_s3.app.jobs.relocation.bucket_migration import BucketMigrator
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.journals.wait import wait_until_journaled
from sluice_s3.app.store.store import Store, StoredBlob
from tests.unit.jobs.packed import complete, content, copy, put_part, start_upload
from tests.unit.jobs.test_bucket_migration import copy_to, lies_on, move, whole
from tests.unit.jobs.test_restores import RULE, archived, ask, job, state
from tests.unit.jobs.test_transitions import clean, decide, mixed, ruled, running
from tests.unit.jobs.two import LARGE, make, rebuilt, settings_of, stores
from tests.unit.store.site import prepare, put

pytestmark = pytest.mark.slow


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = settings_of(tmp_path).model_copy(update={"storage_classes": "GLACIER=slow"})
    prepare(made)
    return made


def hold(monkeypatch: pytest.MonkeyPatch, store: Store, bucket: Bucket, name: str) -> list[Bucket]:
    """The first copy that a job makes takes until the bucket was moved; the buckets as they were then."""
    moved: list[Bucket] = []

    class Held(BlobCopier):
        async def copy(self, wants: Sequence[CopyRequest]) -> dict[str, StoredBlob]:
            kept = await super().copy(wants)
            if not moved and kept:
                moved.append(await move(store, bucket, name))
            return kept

    monkeypatch.setattr(versions, "BlobCopier", Held)
    return moved


async def test_what_is_brought_back(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stores(settings) as store:
        bucket = await archived(store)
        before = await whole(store, bucket)
        await decide(store)
        await ask(store, bucket, "large")
        moved = hold(monkeypatch, store, bucket, "slow")
        await job(store).run_once()
        assert [one.store for one in moved] == ["slow"]
        assert await lies_on(store, bucket) == {"slow"}
        assert await state(store, bucket, "large") == ("GLACIER", False, False)
        await job(store).run_once()  # it waits
        assert await state(store, bucket, "large") == ("GLACIER", False, False)
        await job(store, 0.001).run_once()
        assert await state(store, bucket, "large") == ("GLACIER", True, False)
        assert await lies_on(store, bucket) == {"slow"}
        assert await whole(store, bucket) == before
        await clean(store)


async def test_a_transition_is_made_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stores(settings) as store:
        bucket = await ruled(store, RULE)
        await mixed(store, bucket)
        before = await whole(store, bucket)
        await decide(store)
        hold(monkeypatch, store, bucket, "slow")
        made, counted = running(store, 40)
        await made.run_once()
        assert not counted
        assert await lies_on(store, bucket) == {"slow"}
        await made.run_once()
        assert counted == {"transition": len(before) - 1}
        assert await lies_on(store, bucket) == {"slow"}
        assert await whole(store, bucket) == before
        await clean(store)


async def of_one_part(store: Store, bucket: Bucket) -> Upload:
    """An upload of `parts` on the store `fast` that can be completed."""
    upload = await start_upload(store.of("fast"), bucket, "parts")
    await put_part(store.of("fast"), upload, 1, LARGE)
    return upload


async def test_an_upload_that_is_completed_between_two_looks(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stores(settings) as store:
        bucket = await make(store, "fast")
        upload = await of_one_part(store, bucket)
        bodies, find_part_blobs = store.index.bodies, store.index.find_part_blobs
        looks: list[str] = []

        async def look(name: str, answer: Awaitable[Any]) -> Any:
            if len(looks) == 1 and looks != [name]:
                await complete(store.of("fast"), bucket, upload)
            looks.append(name)
            return await answer

        monkeypatch.setattr(store.index, "bodies", lambda *given: look("versions", bodies(*given)))
        monkeypatch.setattr(store.index, "find_part_blobs", lambda *given: look("parts", find_part_blobs(*given)))
        await move(store, bucket, "slow")
        assert await lies_on(store, bucket) == {"slow"}
        assert await content(store, bucket, "parts") == LARGE


async def test_a_request_that_did_not_know_of_the_move(settings: Settings) -> None:
    """Another gateway learns a moment later that a bucket is elsewhere, and what it began until then may take long."""
    async with stores(settings) as store:
        bucket = await make(store, "fast")
        await decide(store)
        await store.index.begin_move(bucket.name, "slow")
        await decide(store)
        oldest = 2
        mover = BucketMigrator(store, lambda: oldest, lambda: 1, stale=2000)
        for _ in range(3):
            await mover.run_once()
        await put(store.of("fast"), bucket, "late", LARGE)
        await decide(store)
        oldest = 2002
        for _ in range(4):
            await mover.run_once()
        assert not await store.index.moving()
        assert await lies_on(store, bucket) == {"slow"}
        assert await content(store, bucket, "late") == LARGE


async def test_what_a_dead_mover_copied_is_held_by_whoever_copied_it_from_a_bucket_that_is_gone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store was out of service when the mover died, so that it is swept late."""
    async with stores(settings) as store:
        bucket = await make(store, "fast")
        upload = await of_one_part(store, bucket)
        await complete(store.of("fast"), bucket, upload)
        await store.ids.close()
        # what it copies is never settled, as when the process is killed behind the commit
        monkeypatch.setattr(BlobCopier, "discard_unused", lambda *_: asyncio.sleep(0))
        await move(store, bucket, "slow")
        mover = store.index.incarnation  # type: ignore[attr-defined]
        store.ids._current = None
        store.index._registers = False  # type: ignore[attr-defined]
    async with stores(settings) as store:
        other = await make(store, "slow")
        await copy_to(store, bucket, other, "parts")
        await objects.delete(store, bucket.id, "parts", None, None, {})
        await store.index.delete_bucket(bucket.id)
        await sweep(store, lambda writer: writer.incarnation == mover)
        assert await content(store, other, "parts") == LARGE


async def test_a_snapshot_that_begins_when_a_move_does(settings: Settings) -> None:
    """What the other store's journals tell counts until those of this one tell as much."""
    async with stores(settings) as store:
        bucket = await make(store, "fast")
        await put(store.of("fast"), bucket, "first", b"first")
        fast, slow = JournalWriter(store.of("fast")), JournalWriter(store.of("slow"))
        await fast.run_once()
        await slow.run_once()
        await copy(store.of("fast"), bucket, "first", "second")  # no claim tells of it
        await fast.run_once()
        write = slow._write_changes

        async def late() -> int:
            written = await write()
            await store.index.begin_move(bucket.name, "slow")
            return written

        slow._write_changes = late  # type: ignore[method-assign]
        await slow.run_once()
        slow._write_changes = write  # type: ignore[method-assign]
        before = await whole(store, bucket)
    _, lost = rebuilt(settings)
    assert not lost
    async with stores(settings) as store:
        assert await whole(store, bucket) == before


async def test_a_lock_waits_for_the_journals_of_the_store_that_its_bucket_goes_to(settings: Settings) -> None:
    lock = orjson.dumps({object_lock.LOCK: [COMPLIANCE, 4_102_444_800_000]}).decode()
    async with stores(settings) as store:
        bucket = await make(store, "fast")
        made = await put(store.of("fast"), bucket, "k", b"locked")
        fast, slow = JournalWriter(store.of("fast")), JournalWriter(store.of("slow"))
        await slow.run_once()
        await store.index.begin_move(bucket.name, "slow")
        made = made._replace(seq=await store.index.set_headers(bucket.id, "k", made.seq, lock))
        await fast.run_once()
        with pytest.raises(StoreUnavailable):
            await wait_until_journaled(store.of("fast"), bucket, "k", made, lock, 0.05)
        await slow.run_once()
        await wait_until_journaled(store.of("fast"), bucket, "k", made, lock, 0)
