"""Commits on the event loop: what runs there, and what goes to the thread."""

from __future__ import annotations

import asyncio
import fcntl
import threading
import time
from collections.abc import AsyncIterator
from operator import attrgetter
from pathlib import Path

import apsw
import pytest

from sluice_s3.app.errors import StoreUnavailable
from sluice_s3.app.index.interface import Index
from sluice_s3.app.index.objects.transactions import MAX_BRIEF_ENTRIES
from sluice_s3.app.index.sqlite import commit_thread
from sluice_s3.app.index.sqlite.gathering import MAX_TICKS, JobGathering
from sluice_s3.app.index.versioning.rows import Deletion
from tests.unit.index.test_writer import commits_held_up, keys_of, make_bucket, put_many
from tests.unit.index.tools import FaultyIndex, broken, new, open_at


class Commits:
    """The threads of the commits so far."""

    def __init__(self, index: FaultyIndex) -> None:
        self.threads: list[int] = []
        index.faults.hook = self._note

    def _note(self, sql: str) -> None:
        if sql == "COMMIT":
            self.threads.append(threading.get_ident())

    def take(self) -> list[bool]:
        """Return for each commit since the last call whether it ran on the event loop."""
        found, self.threads = self.threads, []
        return [thread == threading.get_ident() for thread in found]


@pytest.fixture
async def bucket_id(faulty: FaultyIndex) -> int:
    return await make_bucket(faulty)


async def test_brief_commits_run_on_the_event_loop(faulty: FaultyIndex, bucket_id: int) -> None:
    commits = Commits(faulty)
    await faulty.put_version(bucket_id, "k", new())
    await faulty.delete_version(bucket_id, "k")
    await faulty.delete_versions(bucket_id, [Deletion("k", None, None)] * MAX_BRIEF_ENTRIES)
    assert commits.take() == [True, True, True]
    await faulty.delete_versions(bucket_id, [Deletion("k", None, None)] * (MAX_BRIEF_ENTRIES + 1))
    await faulty.create_bucket("another", "owner", "r", 10)
    assert commits.take() == [False, False]


@pytest.fixture
async def durable(directory: Path) -> AsyncIterator[FaultyIndex]:
    opened: FaultyIndex = open_at(directory, FaultyIndex, durability="full")
    await opened.start()
    yield opened
    await opened.close()


async def test_a_durable_index_syncs_in_its_thread(durable: FaultyIndex, faulty: FaultyIndex) -> None:
    bucket_id = await make_bucket(durable)
    commits = Commits(durable)
    await durable.put_version(bucket_id, "k", new())
    assert commits.take() == [False]


async def test_a_taken_lock_is_waited_for_in_the_thread(faulty: FaultyIndex, bucket_id: int, directory: Path) -> None:
    commits = Commits(faulty)
    with commits_held_up(directory):
        put = asyncio.create_task(faulty.put_version(bucket_id, "k", new()))
        await asyncio.sleep(0.05)
        assert not put.done()
    await put
    assert commits.take() == [False]


async def test_another_program_at_the_index_is_waited_for_in_the_thread(
    faulty: FaultyIndex, bucket_id: int, directory: Path
) -> None:
    commits = Commits(faulty)
    shell = apsw.Connection(str(directory / "sluice.db"))
    shell.execute("BEGIN IMMEDIATE")
    put = asyncio.create_task(faulty.put_version(bucket_id, "k", new()))
    started = time.monotonic()
    for _ in range(10):
        await asyncio.sleep(0)
    assert time.monotonic() - started < commit_thread.SLOW_SECONDS * 10
    assert not put.done()
    shell.execute("ROLLBACK")
    shell.close()
    await put
    assert commits.take() == [False]


async def test_after_a_slow_commit_the_thread_commits(
    faulty: FaultyIndex, bucket_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit_thread, "SLOW_PAUSE_SECONDS", 0.2)
    commits = Commits(faulty)
    note = faulty.faults.hook
    assert note is not None

    def wait(sql: str) -> None:
        note(sql)
        if sql == "COMMIT":
            time.sleep(commit_thread.SLOW_SECONDS * 1.2)

    faulty.faults.hook = wait
    await faulty.put_version(bucket_id, "a", new())
    faulty.faults.hook = note
    await faulty.put_version(bucket_id, "b", new())
    await asyncio.sleep(0.25)
    await faulty.put_version(bucket_id, "c", new())
    assert commits.take() == [True, False, True]


@pytest.mark.parametrize("check", ["_files.require", "_writer._reserve.is_short"])
async def test_a_failed_check_leaves_no_transaction(
    faulty: FaultyIndex, bucket_id: int, directory: Path, monkeypatch: pytest.MonkeyPatch, check: str
) -> None:
    await faulty.put_version(bucket_id, "a", new())

    def refuse(*_: object) -> None:
        raise PermissionError(13, "no")

    with monkeypatch.context() as broken_check:
        owner, _, method = check.rpartition(".")
        broken_check.setattr(attrgetter(owner)(faulty), method, refuse)
        (answer,) = await put_many(faulty, bucket_id, ["b"])
    assert isinstance(answer, StoreUnavailable)
    shell = apsw.Connection(str(directory / "sluice.db"))
    shell.execute("BEGIN IMMEDIATE")
    shell.close()
    await faulty.put_version(bucket_id, "c", new())
    assert await keys_of(faulty, bucket_id) == ["a", "c"]


async def test_a_broken_group_is_run_again_in_the_thread(faulty: FaultyIndex, bucket_id: int, directory: Path) -> None:
    """Another program takes the lock in between: the event loop never waits for it."""
    shell = apsw.Connection(str(directory / "sluice.db"))
    begins: list[int] = []

    def intrude(sql: str) -> None:
        if sql.startswith("BEGIN"):
            begins.append(threading.get_ident())
            if len(begins) == 2:
                shell.execute("BEGIN IMMEDIATE")

    faulty.faults.before["INSERT"] = [broken()]
    faulty.faults.hook = intrude
    puts = asyncio.create_task(put_many(faulty, bucket_id, ["a", "b"]))
    longest, last = 0.0, time.monotonic()
    while len(begins) < 2:
        await asyncio.sleep(0.01)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    await asyncio.sleep(0.1)
    shell.execute("ROLLBACK")
    shell.close()
    await puts
    assert longest < 1
    assert [thread == threading.get_ident() for thread in begins] == [True, False]
    assert await keys_of(faulty, bucket_id) == ["a", "b"]


async def test_a_broken_file_lock_is_the_threads_affair(
    faulty: FaultyIndex, bucket_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await faulty.put_version(bucket_id, "a", new())
    commits = Commits(faulty)
    real, errors = fcntl.flock, [OSError(37, "no locks")]

    def flock(descriptor: int, how: int) -> None:
        if errors and how != fcntl.LOCK_UN:
            raise errors.pop()
        real(descriptor, how)

    monkeypatch.setattr(commit_thread.fcntl, "flock", flock)
    assert Exception not in [type(answer) for answer in await put_many(faulty, bucket_id, ["b", "c"])]
    assert commits.take() == [False]
    assert await keys_of(faulty, bucket_id) == ["a", "b", "c"]


async def test_a_late_commit_touches_no_closed_lock(faulty: FaultyIndex, bucket_id: int) -> None:
    await faulty.put_version(bucket_id, "a", new())
    deferred = faulty._writer.begin(Index.put_version, lambda locator: (bucket_id, "z", new(locator)))
    errors: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: errors.append(context))
    await faulty._writer.close()
    deferred.proceed("f:00000000000000a1")
    await asyncio.sleep(0.05)
    assert errors == []


async def test_a_failed_begin_leaves_no_transaction(faulty: FaultyIndex, bucket_id: int) -> None:
    faulty.faults.before["BEGIN"] = [broken()]
    answers = await put_many(faulty, bucket_id, ["a", "b"])
    assert [type(answer).__name__ for answer in answers] == ["StoreUnavailable"] * 2
    await faulty.put_version(bucket_id, "c", new())
    assert await keys_of(faulty, bucket_id) == ["c"]


async def test_what_arrives_in_successive_ticks_is_one_commit(faulty: FaultyIndex, bucket_id: int) -> None:
    commits = Commits(faulty)
    puts = []
    for number in range(5):
        puts.append(asyncio.create_task(faulty.put_version(bucket_id, f"k{number}", new())))
        await asyncio.sleep(0)
    await asyncio.gather(*puts)
    assert commits.take() == [True]


async def test_a_group_does_not_wait_for_ever() -> None:
    groups: list[list[object]] = []
    gathering = JobGathering(grow=True, commit=groups.append)  # type: ignore[arg-type]
    for number in range(3 * MAX_TICKS):
        gathering.add(number)  # type: ignore[arg-type]
        await asyncio.sleep(0)
    assert len(groups) >= 2
    await asyncio.sleep(0.01)
    assert [number for group in groups for number in group] == list(range(3 * MAX_TICKS))
    assert len(gathering) == 0


async def test_a_group_is_passed_on_where_memory_for_its_next_turn_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[list[object]] = []
    gathering = JobGathering(grow=True, commit=groups.append)  # type: ignore[arg-type]
    gathering.add(1)  # type: ignore[arg-type]
    with monkeypatch.context() as patch:

        def fail(*_: object, **__: object) -> None:
            raise MemoryError

        patch.setattr(gathering._loop, "call_soon", fail)
        gathering._tick()
    assert groups == [[1]]
