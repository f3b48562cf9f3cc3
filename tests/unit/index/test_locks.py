"""Object lock inside the transactions: which versions cannot be removed or replaced, and what of a lock can change."""

from __future__ import annotations

import logging
from typing import Any

import orjson
import pytest

from sluice_s3.app.errors import BucketNotEmpty, InvalidBucketState, NoSuchBucket, ObjectLocked
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.object_lock import protection as object_lock
from sluice_s3.app.index.object_lock import retention_clock
from sluice_s3.app.index.object_lock.protection import COMPLIANCE, GOVERNANCE, LOCK, NONE, SETTING, Lock
from sluice_s3.app.index.object_lock.retention_clock import TOLERANCE_MS, RetentionClock
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import NULL_VERSION, CommitResult
from sluice_s3.app.index.schema.tables import ENABLED, SUSPENDED
from sluice_s3.app.index.sql.transaction import now_ms
from sluice_s3.app.index.sqlite.index import SqliteIndex
from sluice_s3.app.index.versioning.rows import DeleteResult, Deletion
from tests.unit.index.tools import OWNER, new

HOUR = 3_600_000


def later(hours: float = 1) -> int:
    return now_ms() + int(hours * HOUR)


def kept(lock: Lock | None, **more: Any) -> str:
    row: dict[str, Any] = {"content-type": "text/plain", **more}
    return orjson.dumps(row if lock is None else {**row, LOCK: list(lock)}).decode()


async def put(index: SqliteIndex, bucket: Bucket, lock: Lock | None, key: str = "key") -> CommitResult:
    return await index.put_version(bucket.id, key, new("", headers=kept(lock)))


@pytest.fixture
async def locked(index: SqliteIndex) -> Bucket:
    """A bucket that has object lock."""
    return await index.create_bucket("locked", OWNER, "r", 10, settings=f'{{"{SETTING}":[]}}', versioning=ENABLED)


async def test_a_bucket_is_made_with_object_lock(index: SqliteIndex, locked: Bucket) -> None:
    found = await index.bucket("locked")
    assert found == locked
    assert found.versioning == ENABLED
    assert orjson.loads(found.settings) == {SETTING: []}


async def test_object_lock_needs_versions_for_good(index: SqliteIndex, bucket: Bucket) -> None:
    with pytest.raises(InvalidBucketState):
        await index.set_object_lock(bucket.id, ())
    await index.set_versioning(bucket.id, SUSPENDED)
    with pytest.raises(InvalidBucketState):
        await index.set_object_lock(bucket.id, ())
    await index.set_versioning(bucket.id, ENABLED)
    await index.configure_bucket(bucket.id, "tags", {"a": "b"})
    before = index.generation
    await index.set_object_lock(bucket.id, (GOVERNANCE, 1, 0))
    assert index.generation != before
    with pytest.raises(InvalidBucketState):
        await index.set_versioning(bucket.id, SUSPENDED)
    await index.set_versioning(bucket.id, ENABLED)
    found = await index.bucket("bucket")
    assert found is not None
    assert found.versioning == ENABLED
    assert orjson.loads(found.settings) == {"tags": {"a": "b"}, SETTING: [GOVERNANCE, 1, 0]}
    with pytest.raises(NoSuchBucket):
        await index.set_object_lock(bucket.id + 1000, ())


@pytest.mark.parametrize(
    ("lock", "plainly", "with_bypass"),
    [
        (None, True, True),
        (Lock(GOVERNANCE, -HOUR), True, True),
        (Lock(COMPLIANCE, -HOUR), True, True),
        (Lock(GOVERNANCE, HOUR), False, True),
        (Lock(COMPLIANCE, HOUR), False, False),
        (Lock(hold=False), True, True),
        (Lock(hold=True), False, False),
        (Lock(GOVERNANCE, -HOUR, True), False, False),
        (Lock(GOVERNANCE, HOUR, True), False, False),
        (Lock(COMPLIANCE, HOUR, False), False, False),
    ],
)
async def test_what_a_lock_keeps(
    index: SqliteIndex, locked: Bucket, lock: Lock | None, plainly: bool, with_bypass: bool
) -> None:
    """Each way to remove a version by its id; `until` counts from now."""
    lock = lock and lock._replace(until=lock.until and now_ms() + lock.until)
    for bypass, allowed in ((False, plainly), (True, with_bypass)):
        for many in (False, True):
            made = await put(index, locked, lock)
            if many:
                entries = [Deletion("key", made.version_id, Conditions(), bypass), Deletion("key", None, Conditions())]
                done, marker = await index.delete_versions(locked.id, entries)
                assert isinstance(marker, DeleteResult)
                assert isinstance(done, DeleteResult) if allowed else isinstance(done, ObjectLocked)
            elif allowed:
                assert await index.delete_version(locked.id, "key", made.version_id, bypass=bypass)
            else:
                with pytest.raises(ObjectLocked):
                    await index.delete_version(locked.id, "key", made.version_id, bypass=bypass)
            assert (await index.version(locked.id, "key", made.version_id) is None) == allowed


async def test_a_delete_without_an_id_only_adds_a_marker(index: SqliteIndex, locked: Bucket) -> None:
    made = await put(index, locked, Lock(COMPLIANCE, later(), True))
    done = await index.delete_version(locked.id, "key")
    assert isinstance(done, DeleteResult)
    assert done.marker
    assert await index.version(locked.id, "key") is None
    assert await index.version(locked.id, "key", made.version_id) is not None
    assert await index.delete_version(locked.id, "key", done.version_id)
    found = await index.version(locked.id, "key")
    assert found is not None
    assert found.version_id == made.version_id


async def test_a_locked_null_version_is_not_replaced(index: SqliteIndex, bucket: Bucket) -> None:
    """Suspended and with locks: nothing can bring a bucket there, but each write looks nevertheless."""
    await index.set_versioning(bucket.id, SUSPENDED)
    source = await put(index, bucket, None, "source")
    await put(index, bucket, Lock(GOVERNANCE, later()))
    with pytest.raises(ObjectLocked):
        await put(index, bucket, None)
    with pytest.raises(ObjectLocked):
        await index.delete_version(bucket.id, "key")
    with pytest.raises(ObjectLocked):
        await index.copy_version(source.seq, bucket.id, "key", new(""))
    upload = await index.create_upload(bucket.id, "key", "{}", "STANDARD", "", "", OWNER)
    with pytest.raises(ObjectLocked):
        await index.complete_upload(upload, [], new(""))
    found = await index.version(bucket.id, "key")
    assert found is not None
    assert object_lock.lock_of(found.headers).mode == GOVERNANCE
    assert found.version_id == NULL_VERSION


async def test_what_may_change_of_a_lock(index: SqliteIndex, locked: Bucket) -> None:
    near, far = later(1), later(2)
    governed, strict = Lock(GOVERNANCE, near), Lock(COMPLIANCE, near)
    cases = [
        (None, strict, "yes"),
        (governed, Lock(GOVERNANCE, far), "yes"),
        (governed, governed._replace(hold=True), "yes"),
        (governed, Lock(GOVERNANCE, near - 1), "bypass"),
        (governed, Lock(COMPLIANCE, far), "bypass"),
        (governed, None, "bypass"),
        (strict, Lock(COMPLIANCE, far), "yes"),
        (strict, strict._replace(hold=True), "yes"),
        (strict._replace(hold=True), strict._replace(hold=False), "yes"),
        (strict, Lock(COMPLIANCE, near - 1), "no"),
        (strict, Lock(GOVERNANCE, far), "no"),
        (strict, None, "no"),
        (Lock(COMPLIANCE, later(-1)), None, "yes"),
        (Lock(COMPLIANCE, later(-1)), Lock(GOVERNANCE, near), "yes"),
    ]
    for before, after, answer in cases:
        made = await put(index, locked, before)
        seq = made.seq
        for bypass in (False, True):
            if answer == "yes" or (bypass and answer == "bypass"):
                seq = await index.set_headers(locked.id, "key", seq, kept(after), bypass)
                break
            with pytest.raises(ObjectLocked):
                await index.set_headers(locked.id, "key", seq, kept(after), bypass)
        found = await index.version(locked.id, "key", made.version_id)
        assert found is not None
        assert found.seq == seq
        assert found.modified == made.modified
        assert object_lock.lock_of(found.headers) == ((before if answer == "no" else after) or NONE)


async def test_a_bucket_with_a_locked_version_stays(index: SqliteIndex, locked: Bucket) -> None:
    await put(index, locked, Lock(GOVERNANCE, later()))
    await index.delete_version(locked.id, "key")
    with pytest.raises(BucketNotEmpty):
        await index.delete_bucket(locked.id)


@pytest.mark.parametrize(
    "found", ['{"lock":null}', '{"lock":["X",1,null]}', '{"lock":["COMPLIANCE","1",null]}', '{"lock":']
)
def test_a_lock_that_cannot_be_read_keeps(found: str) -> None:
    with pytest.raises(ObjectLocked):
        object_lock.require_removable(found, bypass=True)
    with pytest.raises(ObjectLocked):
        object_lock.require_changeable(found, kept(None), bypass=True)


def test_metadata_cannot_look_like_a_lock() -> None:
    headers = kept(None, **{"x-amz-meta-lock": '"lock":["COMPLIANCE",1,true]', "x-amz-meta-a": '","lock":['})
    assert object_lock.lock_of(headers) is NONE


def test_the_wall_clock_alone_ends_no_retention(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wall, steady = 10 * HOUR, 5 * HOUR
    clock = RetentionClock(lambda: wall, lambda: steady)
    monkeypatch.setattr(object_lock, "clock", clock)
    lock = Lock(COMPLIANCE, wall + HOUR)
    wall += HOUR + TOLERANCE_MS + 1
    with caplog.at_level(logging.ERROR):
        assert object_lock.is_retained(lock)
        assert object_lock.is_retained(lock)
    assert len(caplog.records) == 1
    steady += HOUR + 1
    assert not object_lock.is_retained(lock)


def test_a_clock_that_is_kept_right_is_believed() -> None:
    wall, steady = 10 * HOUR, 5 * HOUR
    clock = RetentionClock(lambda: wall, lambda: steady)
    wall += TOLERANCE_MS
    assert clock.now_ms() == wall
    wall -= HOUR  # backwards keeps longer
    assert clock.now_ms() == wall


def test_this_process_has_such_a_clock() -> None:
    assert abs(retention_clock.clock.now_ms() - now_ms()) < HOUR


async def test_tags_lock_nothing(index: SqliteIndex, bucket: Bucket) -> None:
    await index.set_versioning(bucket.id, ENABLED)
    headers = kept(None, tags={LOCK: "[1]", "b": f'"{LOCK}":[1]'})
    assert object_lock.lock_of(headers) == NONE
    version = await index.put_version(bucket.id, "key", new("", headers=headers))
    await index.delete_version(bucket.id, "key", version.version_id)
    assert object_lock.lock_of(kept(Lock(GOVERNANCE, later()), tags={LOCK: "[1]"})) != NONE
