"""Lifecycle rules move versions to the stores of storage classes, and nothing is lost, doubled or left behind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.object_lock.protection import COMPLIANCE, Lock
from sluice_s3.app.index.objects.rows import NewVersion, Version
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.jobs import lifecycle as job
from sluice_s3.app.jobs.integrity.fsck import fsck
from sluice_s3.app.jobs.journals.writer import JournalWriter, other_stores_watermark
from sluice_s3.app.jobs.lifecycle import Lifecycle
from sluice_s3.app.jobs.reclaim.garbage_collector import GarbageCollector
from sluice_s3.app.jobs.reclaim.orphan_sweeper import sweep
from sluice_s3.app.jobs.relocation import versions as transitions
from sluice_s3.app.settings import Settings
from sluice_s3.app.store import objects
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.lifecycle.evaluator import FILTER, SETTING, Rule, Rules, to_setting
from sluice_s3.app.store.lifecycle.storage_classes import MIN_SIZE_BYTES, Transition
from sluice_s3.app.store.named_driver import store_of_locator
from sluice_s3.app.store.store import Store
from tests.unit.jobs.packed import complete, copy, put_part, start_upload
from tests.unit.jobs.test_bucket_migration import Died, lies_on, move, whole
from tests.unit.jobs.two import LARGE, settings_of, stores
from tests.unit.jobs.versioned import contents
from tests.unit.store.site import Bytes, prepare, put

pytestmark = pytest.mark.slow

DAY_MS = 86_400_000
MANY = 1_000_000
ALL = 0
"""More than so many bytes: a rule of its own size goes over the least one."""
TO_SLOW = Rule("to", True, FILTER, larger=ALL, transitions=(Transition("STANDARD_IA", 30),))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = settings_of(tmp_path).model_copy(update={"storage_classes": "STANDARD_IA=slow,GLACIER_IR=slow"})
    prepare(made)
    return made


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with stores(settings) as made:
        yield made


async def ruled(store: Store, *rules: Rule, name: str = "b", versioning: int = 0) -> Bucket:
    made = await store.index.create_bucket(name, "owner", "r", 10, "fast", versioning=versioning)
    await store.index.configure_bucket(made.id, SETTING, to_setting(Rules(rules, "m")))
    found = await store.index.bucket(name)
    assert found is not None
    return found


def running(store: Store, days: int) -> tuple[Lifecycle, Counter[str]]:
    counted: Counter[str] = Counter()

    def now() -> int:
        return time.time_ns() // 1_000_000 + days * DAY_MS

    return Lifecycle(
        store, LifecycleCalendar(), MANY, lambda kind, number: counted.update({kind: number}), now
    ), counted


async def decide(store: Store) -> None:
    for one in store.all.values():
        await JournalWriter(one).run_once()


async def clean(store: Store) -> None:
    for _ in range(3):
        for one in store.all.values():
            await GarbageCollector(one, lambda: 2, lambda: 1, 0).run_once()
    for one in store.all.values():
        report = await fsck(one, repair=False)
        assert report.clean, report


async def found(store: Store, bucket: Bucket, key: str) -> Version:
    return await objects.find(store, bucket.id, key)


async def mixed(store: Store, bucket: Bucket) -> None:
    """Small and large objects, one empty, one of parts, and copies."""
    fast = store.of("fast")
    for key, body in (("small", b"small"), ("large", LARGE), ("empty", b"")):
        await put(fast, bucket, key, body)
    upload = await start_upload(fast, bucket, "parts")
    for number in (1, 2):
        await put_part(fast, upload, number, b"%d" % number * 6_000_000)
    await complete(fast, bucket, upload)
    for key in ("small", "large", "parts"):
        await copy(fast, bucket, key, f"z-copy/{key}")


async def test_what_is_due_moves_and_stays_what_it_is(store: Store) -> None:
    bucket = await ruled(store, TO_SLOW)
    await mixed(store, bucket)
    before = {row.key: await found(store, bucket, row.key) for row in await store.index.bodies(bucket.id, 0)}
    bytes_before = await whole(store, bucket)
    made, counted = running(store, 29)
    await made.run_once()
    assert await lies_on(store, bucket) == {"fast"}
    made, counted = running(store, 31)
    await made.run_once()
    assert await lies_on(store, bucket) == {"slow"}
    assert counted == {"transition": len(before)}
    for key, old in before.items():
        new = await found(store, bucket, key)
        assert new.storage_class == "STANDARD_IA"
        changed = {"seq", "storage_class", "body"}
        assert {n: v for n, v in new._asdict().items() if n not in changed} == {
            n: v for n, v in old._asdict().items() if n not in changed
        }
        assert new.seq > old.seq
    assert (await found(store, bucket, "empty")).storage_class == "STANDARD"  # of no bytes, as the rule says
    assert await whole(store, bucket) == bytes_before
    again, counted = running(store, 32)
    await again.run_once()
    assert not counted
    await clean(store)
    for key in bytes_before:
        await objects.delete(store, bucket.id, key, None, None, {})
    await clean(store)


async def test_large_ones_are_placed_one_by_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transitions, "STEP_BYTES", 10_000)
    bucket = await ruled(store, TO_SLOW)
    await mixed(store, bucket)
    before = await whole(store, bucket)
    steps = []
    reclass = store.index.reclass

    async def counting(found: Bucket, settings: Any, entries: Any) -> Any:
        steps.append(len(entries))
        return await reclass(found, settings, entries)

    monkeypatch.setattr(store.index, "reclass", counting)
    made, _ = running(store, 40)
    await made.run_once()
    assert sum(steps) == 6
    assert len(steps) >= 4
    assert await whole(store, bucket) == before
    assert await lies_on(store, bucket) == {"slow"}
    await clean(store)


async def test_who_shares_a_blob_keeps_it(store: Store) -> None:
    bucket = await ruled(store, TO_SLOW._replace(prefix="z-copy/"))
    await mixed(store, bucket)
    before = await whole(store, bucket)
    for _ in range(2):
        made, _ = running(store, 40)
        await made.run_once()
        assert await whole(store, bucket) == before
        await clean(store)
    for key in ("small", "large"):
        assert store_of_locator((await found(store, bucket, key)).body) == "fast"
        assert store_of_locator((await found(store, bucket, f"z-copy/{key}")).body) == "slow"
    for key in ("small", "large", "parts"):
        await objects.delete(store, bucket.id, key, None, None, {})
    await clean(store)
    assert await lies_on(store, bucket) == {"slow"}
    assert await whole(store, bucket) == {key: body for key, body in before.items() if key.startswith("z") or not body}


async def test_small_objects_stay_by_default(store: Store) -> None:
    bucket = await ruled(store, TO_SLOW._replace(larger=None))
    await put(store.of("fast"), bucket, "small", b"x" * (MIN_SIZE_BYTES - 1))
    await put(store.of("fast"), bucket, "enough", b"x" * MIN_SIZE_BYTES)
    made, counted = running(store, 40)
    await made.run_once()
    assert counted == {"transition": 1}
    assert (await found(store, bucket, "enough")).storage_class == "STANDARD_IA"


async def test_older_versions_and_locks(store: Store) -> None:
    rule = Rule("r", True, FILTER, larger=ALL, older_transitions=(Transition("GLACIER_IR", 3, None, 1),))
    bucket = await ruled(store, rule, versioning=ENABLED)
    locked = orjson.dumps({object_lock.LOCK: list(Lock(COMPLIANCE, time.time_ns() // 1_000_000 + 9 * DAY_MS))}).decode()
    for number in range(4):
        source = Bytes(b"%d" % number)
        await objects.put(
            store.of("fast"),
            bucket.id,
            "k",
            source,
            lambda at, s=source: s.describe(at)._replace(headers=locked),
            None,
            {},
        )
    before = await contents(store, bucket)
    made, counted = running(store, 5)
    await made.run_once()
    assert counted == {"transition": 2}
    assert await contents(store, bucket) == before
    rows = [await store.index.version(bucket.id, "k", version_id) for _, version_id, _ in before]
    assert [row.storage_class for row in rows if row] == ["STANDARD", "STANDARD", "GLACIER_IR", "GLACIER_IR"]
    assert {row.headers for row in rows if row} == {locked}
    await clean(store)


async def test_expiration_goes_before_and_a_delete_marker_behind(store: Store) -> None:
    both = TO_SLOW._replace(days=31)
    plain, kept = await ruled(store, both), await ruled(store, both, name="kept", versioning=ENABLED)
    for bucket in (plain, kept):
        await put(store.of("fast"), bucket, "k", b"x")
    made, counted = running(store, 40)
    await made.run_once()
    assert counted == {"transition": 1, "object": 2}
    assert not await whole(store, plain)
    assert len(await contents(store, kept)) == 2  # with the marker
    assert await lies_on(store, kept) == {"slow"}
    await clean(store)


async def test_what_is_overwritten_meanwhile_wins(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await ruled(store, TO_SLOW)
    for key in ("a", "b", "c"):
        await put(store.of("fast"), bucket, key, key.encode())
    reclass = store.index.reclass

    async def late(*arguments: Any) -> Any:
        await put(store.of("fast"), bucket, "a", b"new")
        await objects.delete(store, bucket.id, "b", None, None, {})
        return await reclass(*arguments)

    monkeypatch.setattr(store.index, "reclass", late)
    made, counted = running(store, 40)
    await made.run_once()
    assert counted == {"transition": 1}
    assert await whole(store, bucket) == {"a": b"new", "c": b"c"}
    assert (await found(store, bucket, "a")).storage_class == "STANDARD"
    await clean(store)


async def test_rules_that_are_changed_meanwhile_stop(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await ruled(store, TO_SLOW)
    await put(store.of("fast"), bucket, "k", b"x")
    reclass = store.index.reclass

    async def late(*arguments: Any) -> Any:
        await store.index.configure_bucket(bucket.id, SETTING, None)
        return await reclass(*arguments)

    monkeypatch.setattr(store.index, "reclass", late)
    made, counted = running(store, 40)
    await made.run_once()
    assert not counted
    assert await lies_on(store, bucket) == {"fast"}
    await clean(store)


async def test_a_store_that_is_down_holds_up_nothing_else(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await ruled(store, TO_SLOW._replace(prefix="a"), Rule("x", True, FILTER, prefix="b", days=1))
    for key in ("a", "b"):
        await put(store.of("fast"), bucket, key, b"x")
    slow = store.of("slow")

    async def down(*_: Any) -> Any:
        raise StoreUnavailable(reason="test")

    monkeypatch.setattr(job, "RETRY_SECONDS", 0.0)
    made, counted = running(store, 40)
    with monkeypatch.context() as patch:
        patch.setattr(slow, "write_blob", down)
        with pytest.raises(StoreUnavailable):
            await made.run_once()
    assert counted == {"object": 1}
    await made.run_once()
    assert counted == {"object": 1, "transition": 1}
    await clean(store)


async def test_a_move_of_the_bucket_leaves_them_where_they_are(store: Store) -> None:
    bucket = await ruled(store, TO_SLOW._replace(prefix="z-copy/"))
    await mixed(store, bucket)
    made, _ = running(store, 40)
    await made.run_once()
    before = await whole(store, bucket)
    await decide(store)
    await move(store, bucket, "fast")
    assert await lies_on(store, bucket) == {"fast", "slow"}
    store.classes.clear()  # an operator who wants them back
    await move(store, bucket, "fast")
    assert await lies_on(store, bucket) == {"fast"}
    assert await whole(store, bucket) == before
    await clean(store)


async def put_slow(store: Store, bucket: Bucket, key: str, body: bytes) -> None:
    """PutObject of the class."""
    source = Bytes(body)

    def describe(locator: str) -> NewVersion:
        return source.describe(locator)._replace(storage_class="STANDARD_IA")

    await objects.put(store.of("slow"), bucket.id, key, source, describe, None, {})


async def test_discards_wait_for_the_journals_of_the_bucket(store: Store) -> None:
    bucket = await ruled(store, TO_SLOW)
    await put_slow(store, bucket, "k", LARGE)
    await decide(store)
    await objects.delete(store, bucket.id, "k", None, None, {})
    slow = store.of("slow")
    own = JournalWriter(slow)
    await own.run_once()

    async def elsewhere() -> int:
        return await other_stores_watermark(slow)

    garbage = GarbageCollector(slow, lambda: 2, lambda: 1, 0, own.bound, pieces=False, elsewhere=elsewhere)
    assert await garbage.run_once() == 0
    await JournalWriter(store.of("fast")).run_once()
    await own.run_once()
    assert await garbage.run_once() == 1


@pytest.mark.parametrize("point", ["transition.copied", "transition.moved"])
async def test_a_process_that_dies(settings: Settings, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    monkeypatch.setattr(transitions, "RECORDS_PER_BATCH", 2)
    async with stores(settings) as store:
        bucket = await ruled(store, TO_SLOW)
        await mixed(store, bucket)
        before = await whole(store, bucket)
    died = 0
    for turn in range(12):
        async with stores(settings) as store:
            own = store.index.incarnation  # type: ignore[attr-defined]
            await sweep(store, lambda writer, own=own: writer.incarnation != own)
            with monkeypatch.context() as patch:
                count = 0

                def die(name: str, last: int = turn % 2 + 1) -> None:
                    nonlocal count
                    count += name == point
                    if count == last and name == point:
                        raise Died

                patch.setattr(transitions, "crash_point", die)
                made, _ = running(store, 40)
                try:
                    await made.run_once()
                except Died:
                    died += 1
                    store.ids._current = None  # as a process that is gone: nothing of its is settled
                    store.index._registers = False  # type: ignore[attr-defined]
            assert await whole(store, bucket) == before
            if await lies_on(store, bucket) == {"slow"}:
                break
    assert died
    async with stores(settings) as store:
        own = store.index.incarnation  # type: ignore[attr-defined]
        await sweep(store, lambda writer: writer.incarnation != own)
        if died < 12:
            made, _ = running(store, 41)
            await made.run_once()
        assert await whole(store, bucket) == before
        await clean(store)


async def test_what_lies_in_a_class_counts_on_its_store(store: Store) -> None:
    bucket = await ruled(store, TO_SLOW)
    await put(store.of("fast"), bucket, "a", b"x" * 100)
    await put_slow(store, bucket, "b", b"y" * 10)
    await store.index.create_upload(bucket.id, "c", "{}", "GLACIER_IR", "", "", "owner")
    counted = [await store.index.stored_bytes(name, store.classes) for name in ("fast", "slow")]
    assert counted == [100, 10]
    assert await store.index.stored_bytes("fast") == 110
    assert await store.index.stored_bytes("slow", store.classes, ["fast"]) == 0
