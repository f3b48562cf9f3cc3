"""The job that brings archived versions back and away again: what it finds changed, and what comes back of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.errors import ConditionalRequestConflict, StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.rows import NewVersion
from sluice_s3.app.index.restore import state as restore_state
from sluice_s3.app.index.restore.state import RestoreState
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.jobs.relocation import versions
from sluice_s3.app.jobs.relocation.restores import RestoreRunner
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects, reading
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store
from tests.unit.jobs.mixed import tables
from tests.unit.jobs.packed import content
from tests.unit.jobs.test_bucket_migration import Died, lies_on, move, whole
from tests.unit.jobs.test_transitions import MANY, clean, decide, found, mixed, ruled, running
from tests.unit.jobs.test_transitions import TO_SLOW as TO_ARCHIVE
from tests.unit.jobs.two import LARGE, rebuilt, settings_of, stores
from tests.unit.store.site import Bytes, prepare, put

pytestmark = pytest.mark.slow

DAY_MS = 86_400_000
FAST = 1 << 40
RULE = TO_ARCHIVE._replace(transitions=(TO_ARCHIVE.transitions[0]._replace(storage_class="GLACIER"),))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = settings_of(tmp_path).model_copy(update={"storage_classes": "GLACIER=slow"})
    prepare(made)
    return made


def at(days: float) -> int:
    return int(time.time() * 1000 + days * DAY_MS)


def job(store: Store, days: float = 0) -> RestoreRunner:
    return RestoreRunner(store, LifecycleCalendar(), FAST, lambda: at(days))


async def ask(store: Store, bucket: Bucket, key: str, days: int = 3) -> int:
    version = await found(store, bucket, key)
    wanted = RestoreState(days, "Standard", at(0), 0)
    return await store.index.ask_restore(bucket.id, key, version.version_id, version.seq, version.headers, wanted)


async def archived(store: Store, versioning: int = 0) -> Bucket:
    """A bucket all of which is in the archive."""
    bucket = await ruled(store, RULE, versioning=versioning)
    await mixed(store, bucket)
    made, counted = running(store, 40)
    await made.run_once()
    assert counted == {"transition": 6}
    return bucket


async def state(store: Store, bucket: Bucket, key: str) -> tuple[str, bool, bool]:
    """Class, whether it is said to be back, and whether it is read on the first store."""
    version = await found(store, bucket, key)
    restore = restore_state.restore_state(version.headers)
    on = {store_of_locator(extent.locator) async for extent in reading.extents(store, version, 0, version.size)}
    return version.storage_class, restore is not None and restore.until > 0, on == {"fast"}


def files(settings: Settings, name: str) -> dict[str, bytes]:
    """What lies on a store."""
    place = settings.named_stores[name].directory
    assert place is not None
    return {path.name: path.read_bytes() for path in place.glob("data/*/*")}


async def test_back_and_away(settings: Settings) -> None:
    async with stores(settings) as store:
        bucket = await archived(store)
        before = await whole(store, bucket)
        old = await found(store, bucket, "large")
        for key in ("large", "parts", "small"):
            await ask(store, bucket, key)
        wanted = RestoreState(1, "Bulk", at(0), 0)
        with pytest.raises(ConditionalRequestConflict):
            await store.index.ask_restore(bucket.id, "large", old.version_id, old.seq, old.headers, wanted)
        await job(store).run_once()
        assert await state(store, bucket, "large") == ("GLACIER", True, True)
        assert await lies_on(store, bucket) == {"fast", "slow"}
        again, counted = running(store, 50)
        await again.run_once()
        assert not counted
        assert await whole(store, bucket) == before
        await clean(store)
        await job(store, 2).run_once()
        assert await state(store, bucket, "large") == ("GLACIER", True, True)
        await job(store, 4).run_once()
        assert (await found(store, bucket, "large"))._replace(seq=0) == old._replace(seq=0)
        assert await lies_on(store, bucket) == {"slow"}
        assert await whole(store, bucket) == before
        assert not await store.index.restores_due(at(MANY), 10)
        await clean(store)


@pytest.mark.parametrize("what", ["nothing", "deleted", "replaced", "moved"])
async def test_what_is_archived_stays_there(settings: Settings, what: str) -> None:
    """Beside the copy, whatever else is done, and goes with the version; at the end nothing is written."""
    async with stores(settings) as store:
        bucket = await archived(store)
        await clean(store)
        for key in ("z-copy/large", "z-copy/parts"):  # the others hold the same blobs
            await objects.delete(store, bucket.id, key, None, None, {})
        await decide(store)
        before, parts = await whole(store, bucket), await store.index.object_parts((await parted(store, bucket)), 0, 9)
        cold = files(settings, "slow")
        for key in ("large", "parts", "small"):
            await ask(store, bucket, key)
        await job(store).run_once()
        await clean(store)
        assert files(settings, "slow") == cold
        assert await store.index.object_parts(await parted(store, bucket), 0, 9) == parts
        for key in ("large", "parts") if what in ("deleted", "replaced") else ():
            await objects.delete(store, bucket.id, key, None, None, {})
            del before[key]
            if what == "replaced":
                await put(store.of("fast"), bucket, key, b"new")
                before[key] = b"new"
        if what == "moved":
            await move(store, bucket, "slow")
            assert await lies_on(store, bucket) == {"slow"}
        await clean(store)
        await job(store, 5).run_once()
        await clean(store)
        assert await whole(store, bucket) == before
        left = files(settings, "slow")
        if what == "moved":  # the copies came there, too: small ones to packs, and journals tell of it
            left, cold = ({n: body for n, body in each.items() if "." not in n} for each in (left, cold))
        if what in ("nothing", "moved"):
            assert left == cold
            assert await store.index.object_parts(await parted(store, bucket), 0, 9) == parts
        else:
            assert len(left) == len(cold) - 3  # "large" was a file, and "parts" two


async def parted(store: Store, bucket: Bucket) -> str:
    return (await found(store, bucket, "parts")).body


async def test_an_archive_that_lost_what_is_back_gets_it_again(settings: Settings) -> None:
    async with stores(settings) as store:
        bucket = await archived(store)
        for key in ("large", "parts"):
            await ask(store, bucket, key)
        await job(store).run_once()
        await objects.delete(store, bucket.id, "z-copy/large", None, None, {})
        await objects.delete(store, bucket.id, "z-copy/parts", None, None, {})
        await clean(store)
        before = await whole(store, bucket)
        await decide(store)
    place = settings.named_stores["slow"].directory
    assert place is not None
    gone = [path for path in place.glob("data/*/*") if not path.suffix and path.stat().st_size > len(LARGE) // 2]
    for path in gone:
        path.unlink()
    assert len(gone) == 3
    report, lost = rebuilt(settings)
    assert (report.damage, lost) == ([], [])
    async with stores(settings) as store:
        assert await whole(store, bucket) == before
        await clean(store)
        await job(store, 5).run_once()
        assert await lies_on(store, bucket) == {"slow"}
        assert await whole(store, bucket) == before
        await clean(store)


async def test_what_changed_meanwhile(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted, overwritten or described anew before it is back: nothing of that is undone, and nothing is forgotten."""
    async with stores(settings) as store:
        bucket = await archived(store)
        for key in ("large", "parts", "small"):
            await ask(store, bucket, key)
        reclass = store.index.reclass
        once = [True]

        async def late(as_found: Bucket, told: Any, entries: Any) -> Any:
            if once and entries[0].key == "small":
                once.clear()
                version = await found(store, bucket, "small")
                more = version.headers.replace("{", '{"x-amz-meta-a":"b",', 1)
                await store.index.set_headers(bucket.id, "small", version.seq, more)
            return await reclass(as_found, told, entries)

        monkeypatch.setattr(store.index, "reclass", late)
        await objects.delete(store, bucket.id, "parts", None, None, {})
        await put(store.of("fast"), bucket, "large", b"new")
        await job(store).run_once()
        assert not once
        await clean(store)
        await job(store, 0.001).run_once()
        assert await state(store, bucket, "small") == ("GLACIER", True, True)
        assert '"x-amz-meta-a"' in (await found(store, bucket, "small")).headers
        assert await content(store, bucket, "large") == b"new"
        assert [pending.key for pending in await store.index.restores_due(at(9), 10)] == ["small"]
        await clean(store)


async def test_a_store_that_is_down_is_tried_again(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    async with stores(settings) as store:
        bucket = await archived(store)
        await ask(store, bucket, "large")
        await ask(store, bucket, "small")
        keep = store.of("fast").write_blob

        async def down(source: Any, claim: Any) -> Any:
            if source.size is None or source.size > 1000:
                raise StoreUnavailable(reason="test")
            return await keep(source, claim)

        with monkeypatch.context() as patch:
            patch.setattr(store.of("fast"), "write_blob", down)
            with pytest.raises(StoreUnavailable):
                await job(store).run_once()
        assert await state(store, bucket, "small") == ("GLACIER", True, True)
        await job(store).run_once()  # it waits
        assert await state(store, bucket, "large") == ("GLACIER", False, False)
        await job(store, 0.001).run_once()
        assert await state(store, bucket, "large") == ("GLACIER", True, True)
        await clean(store)


async def test_a_move_takes_what_is_back_along(settings: Settings) -> None:
    async with stores(settings) as store:
        bucket = await archived(store)
        await ask(store, bucket, "large")
        await job(store).run_once()
        before = await whole(store, bucket)
        await decide(store)
        await move(store, bucket, "slow")
        assert await lies_on(store, bucket) == {"slow"}
        await job(store, 5).run_once()
        assert await whole(store, bucket) == before
        await clean(store)


async def test_an_index_that_is_lost(settings: Settings) -> None:
    """What is back ends, what was asked for comes, and what was archived when it was written stays so."""
    async with stores(settings) as store:
        bucket = await archived(store, ENABLED)
        for key in ("large", "parts"):
            await ask(store, bucket, key)
        await job(store).run_once()
        await ask(store, bucket, "small")
        await decide(store)
        await clean(store)
        before = await whole(store, bucket)
        source = Bytes(LARGE)

        def describe(locator: str) -> NewVersion:
            return source.describe(locator)._replace(storage_class="GLACIER")

        await objects.put(store.of("slow"), bucket.id, "claimed", source, describe, None, {})
    rows = tables(settings.index_path)
    report, lost = rebuilt(settings)
    assert (report.damage, lost, report.restored_claims) == ([], [], 1)
    after = tables(settings.index_path)
    assert [r for r in after["versions"] if r[2] != "claimed"] == [r for r in rows["versions"] if r[2] != "claimed"]
    async with stores(settings) as store:
        assert await state(store, bucket, "claimed") == ("GLACIER", False, False)
        await job(store).run_once()
        assert await state(store, bucket, "small") == ("GLACIER", True, True)
        await job(store, 5).run_once()
        assert await lies_on(store, bucket) == {"slow"}
        assert await whole(store, bucket) == {**before, "claimed": LARGE}
        await clean(store)


@pytest.mark.parametrize("point", ["transition.copied", "transition.moved"])
async def test_a_process_that_dies(settings: Settings, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    async with stores(settings) as store:
        bucket = await archived(store)
        before = await whole(store, bucket)
        for key in ("large", "parts"):
            await ask(store, bucket, key)
    for days in (0, 0, 5, 5, 5):
        async with stores(settings) as store:
            own = store.index.incarnation  # type: ignore[attr-defined]
            await sweep(store, lambda writer, own=own: writer.incarnation != own)
            with monkeypatch.context() as patch:
                count = 0

                def die(name: str) -> None:
                    nonlocal count
                    count += name == point
                    if count == 2 and name == point:
                        raise Died

                patch.setattr(versions, "crash_point", die)
                try:
                    await job(store, days).run_once()
                except Died:
                    store.ids._current = None  # as a process that is gone: nothing of its is settled
                    store.index._registers = False  # type: ignore[attr-defined]
            assert await whole(store, bucket) == before
    async with stores(settings) as store:
        own = store.index.incarnation  # type: ignore[attr-defined]
        await sweep(store, lambda writer: writer.incarnation != own)
        await job(store, 9).run_once()
        assert await whole(store, bucket) == before
        assert await lies_on(store, bucket) == {"slow"}
        await clean(store)
