"""Commits on the event loop: what runs there, and what goes to the thread."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

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
