"""Group commit: many callers and one sync, and what each is told when something breaks."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from sluice_s3.app.errors import CommitUnknown, Overloaded, PreconditionFailed, StoreFull, StoreUnavailable, WriterDead
from sluice_s3.app.index.cluster import writers
from sluice_s3.app.index.engine.declared import Write
from sluice_s3.app.index.engine.lock_keys import global_lock
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import Appended
from sluice_s3.app.index.sql.transaction import Transaction
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.unit.index.tools import OWNER, FaultyIndex, broken, new, open_at

COMMIT = "COMMIT"


@pytest.fixture(params=["relaxed", "full"])
async def faulty(directory: Path, request: pytest.FixtureRequest) -> AsyncIterator[FaultyIndex]:
    """Commits on the event loop, and in the thread."""
    opened: FaultyIndex = open_at(directory, FaultyIndex, durability=request.param)
    await opened.start()
    yield opened
    await opened.close()


@contextmanager
def commits_held_up(directory: Path) -> Iterator[None]:
    """Another process is at its commit."""
    lock = os.open(directory / "run" / "index.lock", os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(lock)


async def put_many(index: SqliteIndex, bucket_id: int, keys: list[str]) -> list[Any]:
    """All at once; the answer of each."""
    puts = [index.put_version(bucket_id, key, new(f"blob-{key}")) for key in keys]
    return await asyncio.gather(*puts, return_exceptions=True)


async def queued(index: SqliteIndex, count: int, bucket_id: int) -> list[asyncio.Task[Any]]:
    """Puts that wait in the queue."""
    tasks = [asyncio.create_task(index.put_version(bucket_id, f"k{number}", new())) for number in range(count)]
    await asyncio.sleep(0)
    return tasks


async def make_bucket(index: SqliteIndex) -> int:
    return (await index.create_bucket("bucket", OWNER, "r", 10)).id


async def keys_of(index: SqliteIndex, bucket_id: int) -> list[str]:
    return [entry.key for entry in (await index.list_current(bucket_id, "", "", "", 1000)).entries]


async def test_concurrent_callers_share_commits(faulty: FaultyIndex) -> None:
    bucket_id = await make_bucket(faulty)
    faulty.faults.statements.clear()
    committed = await put_many(faulty, bucket_id, [f"k{number}" for number in range(500)])
    assert len({answer.seq for answer in committed}) == 500
    assert 2 <= faulty.faults.statements.count(COMMIT) < 250  # no group is larger than 256


async def test_the_order_of_the_queue_is_the_order_of_the_sequence(index: SqliteIndex) -> None:
    bucket_id = await make_bucket(index)
    committed = [answer.seq for answer in await put_many(index, bucket_id, ["k"] * 50)]
    assert committed == sorted(committed)
    found = await index.version(bucket_id, "k")
    assert found is not None
    assert found.seq == committed[-1]


async def test_one_of_many_creators_wins(index: SqliteIndex) -> None:
    bucket_id = await make_bucket(index)
    create = Conditions(if_none_match=True)
    puts = [index.put_version(bucket_id, "k", new(f"b{number}"), create) for number in range(32)]
    answers = await asyncio.gather(*puts, return_exceptions=True)
    assert [type(answer) for answer in answers[1:]] == [PreconditionFailed] * 31
    found = await index.version(bucket_id, "k")
    assert found is not None
    assert found.body == "b0"


def _raise_after_write(error: Exception) -> Transaction[None]:
    yield from writers.register("never.lock")
    raise error


RAISE_AFTER_WRITE = Write(_raise_after_write, locks=global_lock)


async def test_an_operation_that_breaks_its_group_hurts_no_other(faulty: FaultyIndex, directory: Path) -> None:
    bucket_id = await make_bucket(faulty)
    live = await faulty.writers()
    with commits_held_up(directory):
        before = await queued(faulty, 3, bucket_id)
        bug = faulty._writer.submit(RAISE_AFTER_WRITE, (KeyError("bug"),))
        late_refusal = faulty._writer.submit(RAISE_AFTER_WRITE, (PreconditionFailed(condition="late"),))
        after = asyncio.create_task(faulty.put_version(bucket_id, "last", new()))
        await asyncio.sleep(0)
    answers = await asyncio.gather(*before, bug, late_refusal, after, return_exceptions=True)
    assert [type(answer).__name__ for answer in answers] == [
        "CommitResult",
        "CommitResult",
        "CommitResult",
        "StoreUnavailable",
        "PreconditionFailed",
        "CommitResult",
    ]
    assert await keys_of(faulty, bucket_id) == ["k0", "k1", "k2", "last"]
    assert await faulty.writers() == live  # nothing of the broken ones


async def test_a_cancelled_caller_does_not_break_its_group(index: SqliteIndex, directory: Path) -> None:
    bucket_id = await make_bucket(index)
    with commits_held_up(directory):
        tasks = await queued(index, 5, bucket_id)
        tasks[2].cancel()
        await asyncio.sleep(0)
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers[2], asyncio.CancelledError)
    assert all(answer.seq for number, answer in enumerate(answers) if number != 2)


async def test_a_full_queue_refuses_at_once(directory: Path) -> None:
    index = open_at(directory, commit_queue=4)
    await index.start()
    bucket_id = await make_bucket(index)
    with commits_held_up(directory):
        tasks = await queued(index, 12, bucket_id)
        refused = [task for task in tasks if task.done() and isinstance(task.exception(), Overloaded)]
        assert 7 <= len(refused) <= 8  # one may have left the queue to wait for the lock
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(isinstance(answer, Overloaded) for answer in answers) == len(refused)
    await index.close()


async def test_what_waits_too_long_is_answered_and_never_run(directory: Path) -> None:
    index = open_at(directory, commit_timeout=0.05)
    await index.start()
    bucket_id = await make_bucket(index)
    with commits_held_up(directory):
        for task in await queued(index, 3, bucket_id):
            with pytest.raises(Overloaded):
                await task
    await index.put_version(bucket_id, "after", new())
    assert await keys_of(index, bucket_id) == ["after"]
    await index.close()


async def test_a_dead_writer_commits_nothing(index: SqliteIndex) -> None:
    bucket_id = await make_bucket(index)
    await index.declare_dead(index.incarnation)
    for answer in await put_many(index, bucket_id, ["a", "b"]):
        assert isinstance(answer, WriterDead)
    with pytest.raises(WriterDead):
        await index.reserve_ids(10)
    assert await keys_of(index, bucket_id) == []


async def test_death_is_seen_in_the_next_transaction(index: SqliteIndex, directory: Path) -> None:
    bucket_id = await make_bucket(index)
    other = open_at(directory)
    await other.start()
    with commits_held_up(directory):
        tasks = await queued(index, 2, bucket_id)
    await asyncio.gather(*tasks)
    await other.declare_dead(index.incarnation)
    with pytest.raises(WriterDead):
        await index.put_version(bucket_id, "late", new())
    await other.put_version(bucket_id, "k9", new())
    assert await keys_of(other, bucket_id) == ["k0", "k1", "k9"]
    await other.close()


# COMMIT that errors


async def test_a_commit_that_failed_is_refused_as_a_whole(faulty: FaultyIndex, directory: Path) -> None:
    bucket_id = await make_bucket(faulty)
    with commits_held_up(directory):
        tasks = await queued(faulty, 2, bucket_id)
        # refused because of what the group did, which now never was
        refused = asyncio.create_task(faulty.put_version(bucket_id, "k0", new(), Conditions(if_none_match=True)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)  # those of one tick of the loop are queued in the next
        faulty.faults.before[COMMIT] = [broken()]
    answers = await asyncio.gather(*tasks, refused, return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreUnavailable] * 3
    assert await keys_of(faulty, bucket_id) == []
    await faulty.put_version(bucket_id, "next", new())
    assert await keys_of(faulty, bucket_id) == ["next"]


async def test_a_commit_that_errs_after_it_took_effect_is_a_success(faulty: FaultyIndex) -> None:
    bucket_id = await make_bucket(faulty)
    faulty.faults.after[COMMIT] = [broken()]
    committed = await faulty.put_version(bucket_id, "k", new())
    found = await faulty.version(bucket_id, "k")
    assert found is not None
    assert found.seq == committed.seq


async def test_no_is_only_said_after_another_commit_went_over_it(faulty: FaultyIndex) -> None:
    bucket_id = await make_bucket(faulty)
    faulty.faults.statements.clear()
    faulty.faults.before[COMMIT] = [broken()]
    with pytest.raises(StoreUnavailable):
        await faulty.put_version(bucket_id, "k", new())
    assert faulty.faults.statements.count(COMMIT) == 2


def fail_after_commit(faulty: FaultyIndex, statement: str) -> None:
    """Let a statement fail that comes after the next COMMIT."""

    def arm(sql: str) -> None:
        if sql == COMMIT:
            faulty.faults.before[statement] = [broken()]
            faulty.faults.hook = None

    faulty.faults.hook = arm


@pytest.mark.parametrize("took_effect", [False, True])
@pytest.mark.parametrize("then", ["connect", "read", "commit"])
async def test_an_outcome_that_cannot_be_learned_is_unknown(faulty: FaultyIndex, took_effect: bool, then: str) -> None:
    bucket_id = await make_bucket(faulty)
    faults = faulty.faults
    errors = [broken(), broken()] if then == "commit" else [broken()]
    (faults.after if took_effect else faults.before)[COMMIT] = errors
    if then == "connect":
        faults.connect = [broken("unable to open database file", apsw.SQLITE_CANTOPEN)]
    if then == "read":
        fail_after_commit(faulty, "SELECT sequence.value")
    with pytest.raises(CommitUnknown):
        await faulty.put_version(bucket_id, "k", new())
    assert await faulty.put_version(bucket_id, "next", new())
    assert await keys_of(faulty, bucket_id) == (["k", "next"] if took_effect else ["next"])


# what SQLite itself says


async def test_a_full_disk_is_said_and_passes(faulty: FaultyIndex) -> None:
    bucket_id = await make_bucket(faulty)
    await faulty.put_version(bucket_id, "k", new("old"))
    writer = faulty._writer
    assert writer._connection is not None
    ((pages,),) = writer._connection.execute("PRAGMA page_count").fetchall()
    writer._connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreFull):
        await faulty.put_version(bucket_id, "large", new(headers="x" * 100_000))
    assert await faulty.version(bucket_id, "large") is None
    await faulty.delete_version(bucket_id, "k")
    writer._connection.execute("PRAGMA max_page_count=1000000")
    await faulty.put_version(bucket_id, "large", new(headers="x" * 100_000))


async def test_what_adds_objects_or_bytes_is_refused_where_only_what_is_kept_for_deletes_is_left(
    faulty: FaultyIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket_id = await make_bucket(faulty)
    await faulty.put_version(bucket_id, "k", new("old"))
    found = await faulty.version(bucket_id, "k")
    assert found is not None
    monkeypatch.setattr(faulty._writer._reserve, "is_short", lambda: True)
    with pytest.raises(StoreFull):
        await faulty.put_version(bucket_id, "other", new())
    with pytest.raises(StoreFull):
        await faulty.append(bucket_id, "k", found, new(size=20), Appended("more", 10, "", 2), None)
    assert await faulty.delete_version(bucket_id, "k")


async def test_a_full_disk_at_commit_is_no_unknown(faulty: FaultyIndex) -> None:
    bucket_id = await make_bucket(faulty)
    faulty.faults.before[COMMIT] = [broken("database or disk is full", apsw.SQLITE_FULL) for _ in range(2)]
    for _ in range(2):
        with pytest.raises(StoreFull):
            await faulty.put_version(bucket_id, "k", new())
    assert await keys_of(faulty, bucket_id) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (apsw.SQLITE_FULL, StoreFull),
        (apsw.SQLITE_IOERR, StoreUnavailable),
        (apsw.SQLITE_IOERR_READ, StoreUnavailable),
        (apsw.SQLITE_CORRUPT, StoreUnavailable),
        (apsw.SQLITE_READONLY, StoreUnavailable),
        (apsw.SQLITE_BUSY, Overloaded),
        (apsw.SQLITE_BUSY_SNAPSHOT, Overloaded),
    ],
)
@pytest.mark.parametrize("statement", ["BEGIN", "INSERT INTO versions"])
async def test_errors_of_sqlite_are_translated(
    faulty: FaultyIndex, code: int, expected: type[Exception], statement: str
) -> None:
    bucket_id = await make_bucket(faulty)
    faulty.faults.before[statement] = [broken(code=code), broken(code=code)]  # the thread tries a busy one again
    with pytest.raises(expected) as caught:
        await faulty.put_version(bucket_id, "k", new())
    assert type(caught.value) is expected
    assert "I/O" not in str(caught.value)
    faulty.faults.before.clear()
    await faulty.put_version(bucket_id, "k", new())


async def test_a_busy_index_is_asked_again_by_the_caller(index: SqliteIndex, directory: Path) -> None:
    """Someone holds SQLite's own lock without our file lock, as a backup tool may."""
    bucket_id = await make_bucket(index)
    assert index._writer._connection is not None
    index._writer._connection.execute("PRAGMA busy_timeout=20")
    intruder = apsw.Connection(str(directory / "sluice.db"))
    intruder.execute("BEGIN IMMEDIATE")
    with pytest.raises(Overloaded):
        await index.put_version(bucket_id, "k", new())
    intruder.execute("ROLLBACK")
    intruder.close()
    await index.put_version(bucket_id, "k", new())


async def test_errors_of_reads_are_translated(faulty: FaultyIndex) -> None:
    faulty.faults.before["SELECT"] = [broken() for _ in range(3)]
    with pytest.raises(StoreUnavailable):
        await faulty.bucket("b")
    with pytest.raises(StoreUnavailable):
        await faulty.list_current(1, "", "/", "", 10)
    with pytest.raises(StoreUnavailable):
        await faulty.version(1, "k")


async def test_a_failed_page_leaves_no_snapshot_open(faulty: FaultyIndex) -> None:
    faulty.faults.before["SELECT"] = [broken()]
    with pytest.raises(StoreUnavailable):
        await faulty.list_current(1, "", "/", "", 10)
    assert not faulty._cursor._cursor.connection.in_transaction
    await faulty.list_current(1, "", "/", "", 10)


async def test_a_closed_index_refuses(index: SqliteIndex) -> None:
    await index.close()
    with pytest.raises(StoreUnavailable):
        await index.declare_dead(1)
    with pytest.raises(StoreUnavailable):
        await index.bucket("b")
    await index.close()


async def test_close_finishes_what_is_queued(index: SqliteIndex, directory: Path) -> None:
    bucket_id = await make_bucket(index)
    with commits_held_up(directory):
        tasks = await queued(index, 300, bucket_id)
        closing = asyncio.create_task(index.close())
        await asyncio.sleep(0.01)
    await closing
    assert len({answer.seq for answer in await asyncio.gather(*tasks)}) == 300


@pytest.mark.skipif(not hasattr(os, "sched_getscheduler"), reason="Linux")
async def test_the_thread_lets_the_loop_finish_when_it_is_woken(index: SqliteIndex) -> None:
    await make_bucket(index)
    assert os.sched_getscheduler(index._writer._thread.native_id or 0) == os.SCHED_BATCH
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


async def test_a_thread_that_finds_no_memory_answers_later(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index: FaultyIndex = open_at(directory, FaultyIndex, durability="full")
    await index.start()
    bucket = await index.create_bucket("bucket", OWNER, "us-east-1", 10)
    loop = asyncio.get_running_loop()
    call_soon_threadsafe, failures = loop.call_soon_threadsafe, [1, 2]

    def call(callback: Any, *given: Any, **options: Any) -> Any:
        if failures and callback == index._writer._deliver:
            failures.pop()
            raise MemoryError
        return call_soon_threadsafe(callback, *given, **options)

    monkeypatch.setattr(loop, "call_soon_threadsafe", call)
    async with asyncio.timeout(20):
        await index.put_version(bucket.id, "key", new())
        assert not failures
        await index.put_version(bucket.id, "key", new())
    await index.close()
