"""The job of lifecycle rules: what it takes away, when it looks again, and where it goes on after it was killed."""

from __future__ import annotations

import asyncio
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
from sluice_s3.app.index.schema.tables import ENABLED
from sluice_s3.app.jobs import lifecycle as job
from sluice_s3.app.jobs.journals.writer import JournalWriter
from sluice_s3.app.jobs.lifecycle import Lifecycle, note_of
from sluice_s3.app.settings import Settings
from sluice_s3.app.store.lifecycle.calendar import LifecycleCalendar
from sluice_s3.app.store.lifecycle.evaluator import BASE, FILTER, SETTING, Rule, Rules, to_setting
from sluice_s3.app.store.store import Store
from tests.support.settings import make_settings
from tests.unit.jobs.test_rebuild import lose_index, rebuilt
from tests.unit.store.site import opened, prepare, put

pytestmark = pytest.mark.slow

DAY_MS = 86_400_000
MANY = 1_000_000


class Clock:
    """So many days ahead of the wall clock."""

    def __init__(self) -> None:
        self.days = 0

    def __call__(self) -> int:
        return time.time_ns() // 1_000_000 + self.days * DAY_MS


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made = make_settings(tmp_path)
    prepare(made)
    return made


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[Store]:
    async with opened(settings) as made:
        yield made


async def bucket_with(store: Store, *rules: Rule, name: str = "b", versioning: int = 0) -> Bucket:
    made = await store.index.create_bucket(name, "owner", "r", 10, versioning=versioning)
    await store.index.configure_bucket(made.id, SETTING, to_setting(Rules(rules, "m")))
    found = await store.index.bucket(name)
    assert found is not None
    return found


def running(store: Store, clock: Clock, day: LifecycleCalendar | None = None) -> tuple[Lifecycle, Counter[str]]:
    counted: Counter[str] = Counter()
    made = Lifecycle(
        store, day or LifecycleCalendar(), MANY, lambda kind, number: counted.update({kind: number}), clock
    )
    return made, counted


async def keys(store: Store, bucket: Bucket) -> list[str]:
    return [entry.key for entry in (await store.index.list_current(bucket.id, "", "", "", 1000)).entries]


async def test_objects_go_when_they_are_due(store: Store) -> None:
    bucket = await bucket_with(store, Rule("r", True, BASE, prefix="old/", days=2))
    clock = Clock()
    for key in ("new/a", "old/a", "old/b"):
        await put(store, bucket, key, b"x")
    made, counted = running(store, clock)
    for days, left in ((0, 3), (1, 3), (3, 1), (4, 1)):
        clock.days = days
        await made.run_once()
        assert len(await keys(store, bucket)) == left
    assert counted == {"object": 2}


async def test_it_looks_once_a_day_and_when_rules_change(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await bucket_with(store, Rule("r", True, FILTER, days=9))
    clock = Clock()
    looks: list[int] = []
    page = store.index.lifecycle_page

    async def counting(bucket_id: int, *arguments: Any, **more: Any) -> Any:
        looks.append(bucket_id)
        return await page(bucket_id, *arguments, **more)

    monkeypatch.setattr(store.index, "lifecycle_page", counting)
    made, _ = running(store, clock)
    for _ in range(3):
        await made.run_once()
    other, _ = running(store, clock)
    await other.run_once()  # another process knows by the note
    assert len(looks) == 1
    clock.days = 1
    await made.run_once()
    await store.index.configure_bucket(bucket.id, SETTING, to_setting(Rules((Rule("r", True, FILTER, days=8),), "m")))
    for _ in range(3):
        await made.run_once()
    assert len(looks) == 3
    await store.index.configure_bucket(bucket.id, SETTING, None)
    clock.days = 2
    await made.run_once()
    assert len(looks) == 3


async def test_rules_that_are_taken_away_stop_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    bucket = await bucket_with(store, Rule("r", True, FILTER, date=1))
    monkeypatch.setattr(job, "ENTRIES_PER_BATCH", 1)
    for number in range(3):
        await put(store, bucket, f"k{number}", b"x")
    expire = store.index.expire

    async def taken_away(*arguments: Any) -> Any:
        done = await expire(*arguments)
        await store.index.configure_bucket(bucket.id, SETTING, None)
        return done

    monkeypatch.setattr(store.index, "expire", taken_away)
    made, counted = running(store, Clock())
    await made.run_once()
    await made.run_once()
    assert await keys(store, bucket) == ["k1", "k2"]
    assert counted == {"object": 1}


async def test_it_goes_on_where_it_was_killed(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.app.index.lifecycle.queries.ROWS_PER_BATCH", 10)
    monkeypatch.setattr(job, "NOTE_SECONDS", -1.0)
    bucket = await bucket_with(store, Rule("r", True, FILTER, days=1))
    for number in range(35):
        await put(store, bucket, f"k{number:02}", b"x")
    clock = Clock()
    clock.days = 3
    made, counted = running(store, clock)
    expire = store.index.expire
    calls = 0

    async def killed(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise asyncio.CancelledError
        return await expire(*arguments)

    monkeypatch.setattr(store.index, "expire", killed)
    with pytest.raises(asyncio.CancelledError):
        await made.run_once()
    assert orjson.loads(await store.index.note(note_of(bucket.id)))[2] == "k19"
    assert counted == {"object": 20}
    again, counted = running(store, clock)
    await again.run_once()
    assert counted == {"object": 15}
    assert await keys(store, bucket) == []
    assert orjson.loads(await store.index.note(note_of(bucket.id)))[2] is None


async def test_versions_markers_and_uploads(store: Store) -> None:
    bucket = await bucket_with(
        store,
        Rule("r", True, FILTER, days=3, noncurrent_days=1, newer=1, abort_days=2),
        versioning=ENABLED,
    )
    clock = Clock()
    made, counted = running(store, clock)
    versions = [await put(store, bucket, "key", b"%d" % number) for number in range(4)]
    lock = orjson.dumps({object_lock.LOCK: list(Lock(COMPLIANCE, 4_102_444_800_000))}).decode()
    await store.index.set_headers(bucket.id, "key", versions[0].seq, lock)
    await store.index.create_upload(bucket.id, "key", "{}", "STANDARD", "", "", "owner")
    clock.days = 2
    await made.run_once()
    assert counted == {"older": 1}  # one is kept, one is locked
    clock.days = 3
    await made.run_once()
    assert counted == {"older": 1, "upload": 1}
    clock.days = 4
    await made.run_once()
    assert counted == {"older": 1, "upload": 1, "object": 1}
    page = await store.index.list_versions(bucket.id, "", "", "", "", 10)
    assert [entry.version_id for entry in page.entries[1:]] == [versions[at].version_id for at in (3, 2, 0)]


async def test_a_lone_marker_goes(store: Store) -> None:
    bucket = await bucket_with(
        store, Rule("r", True, FILTER, markers=True), Rule("s", True, FILTER, noncurrent_days=1), versioning=ENABLED
    )
    clock = Clock()
    await put(store, bucket, "key", b"x")
    await store.index.delete_version(bucket.id, "key")
    made, counted = running(store, clock)
    for days in (0, 2, 3):
        clock.days = days
        await made.run_once()
    assert counted == {"older": 1, "marker": 1}
    await store.index.delete_bucket(bucket.id)


async def test_rules_come_back_with_a_rebuild(settings: Settings) -> None:
    async with opened(settings) as store:
        bucket = await bucket_with(store, Rule("r", True, BASE, prefix="a", days=1))
        for key in ("a1", "a2", "b"):
            await put(store, bucket, key, b"x" * 200_000)
        clock = Clock()
        clock.days = 3
        made, _ = running(store, clock)
        await made.run_once()
        await JournalWriter(store).run_once()
    lose_index(settings)
    report, lost = rebuilt(settings)
    assert (lost, report.damage) == ([], [])
    async with opened(settings) as store:
        assert await store.index.bucket("b") == bucket
        assert await keys(store, bucket) == ["b"]
        assert [found.id for found in await store.index.lifecycle_buckets()] == [bucket.id]


async def test_a_bucket_that_fails_holds_up_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    buckets = [await bucket_with(store, Rule("r", True, FILTER, date=1), name=name) for name in ("one", "two")]
    for bucket in buckets:
        await put(store, bucket, "k", b"x")
    page = store.index.lifecycle_page

    async def failing(bucket_id: int, *arguments: Any, **more: Any) -> Any:
        if bucket_id == buckets[0].id:
            raise StoreUnavailable
        return await page(bucket_id, *arguments, **more)

    monkeypatch.setattr(store.index, "lifecycle_page", failing)
    made, counted = running(store, Clock())
    with pytest.raises(StoreUnavailable):
        await made.run_once()
    assert [await keys(store, bucket) for bucket in buckets] == [["k"], []]
    monkeypatch.setattr(store.index, "lifecycle_page", page)
    await made.run_once()
    assert counted == {"object": 2}
