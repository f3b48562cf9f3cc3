"""A lost connection is no answer: what became of a group is looked up, and cannot change afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from sluice_s3.app.errors import StoreUnavailable, WriterDead
from sluice_s3.app.index.buckets.rows import Bucket
from sluice_s3.app.index.objects.conditions import Conditions
from sluice_s3.app.index.objects.rows import CommitResult
from sluice_s3.app.index.postgres import group_commit
from sluice_s3.app.index.postgres.index import WRITING, PostgresIndex
from tests.unit.index.postgres.conftest import Opens
from tests.unit.index.tools import new

PLAIN = None
CONDITIONAL = Conditions(if_none_match=True)
"""Committed by COMMIT, after its answer is here; a plain put commits by itself."""


Silent = Callable[[], Awaitable[None]]


class Broken:
    """A connection that breaks before or after it ran what starts so, once."""

    def __init__(self, connection: Any, start: str, after: bool, silent: Silent) -> None:
        self._connection = connection
        self._start = start
        self._after = after
        self._silent = silent

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def execute(self, sql: str, *arguments: Any, **options: Any) -> Any:
        return await self._run(self._connection.execute, sql, *arguments, **options)

    async def fetch(self, sql: str, *arguments: Any, **options: Any) -> Any:
        return await self._run(self._connection.fetch, sql, *arguments, **options)

    async def _run(self, call: Any, sql: str, *arguments: Any, **options: Any) -> Any:
        if not sql.startswith(self._start):
            return await call(sql, *arguments, **options)
        if self._after:
            await call(sql, *arguments, **options)
        await self._silent()
        raise ConnectionResetError("cut off")


async def at_once() -> None:
    """It breaks at once."""


def breaks(index: PostgresIndex, start: str, *, after: bool, times: int = 1, silent: Silent = at_once) -> None:
    """The next connections that commit break so, once `silent` is over."""
    acquire = index._writes.acquire
    left = [None] * times

    async def broken() -> Any:
        connection = await acquire()
        return Broken(connection, start, left.pop() is not None or after, silent) if left else connection

    index._writes.acquire = broken  # type: ignore[method-assign]


@pytest.mark.parametrize(("conditions", "start"), [(PLAIN, "SELECT made"), (CONDITIONAL, "COMMIT")])
async def test_what_was_committed_is_answered(
    one: PostgresIndex, bucket: Bucket, conditions: Conditions | None, start: str
) -> None:
    breaks(one, start, after=True)
    made = await one.put_version(bucket.id, "key", new("blob"), conditions)
    found = await one.version(bucket.id, "key")
    assert found is not None
    assert made == CommitResult(found.seq, found.version_id, found.modified)
    assert found.body == "blob"


async def test_a_plain_put_that_was_not_committed_is_committed_again(one: PostgresIndex, bucket: Bucket) -> None:
    breaks(one, "SELECT made", after=False)
    await one.put_version(bucket.id, "key", new("blob"))
    found = await one.version(bucket.id, "key")
    assert found is not None
    assert found.body == "blob"


async def test_what_cannot_be_committed_is_refused(one: PostgresIndex, bucket: Bucket) -> None:
    breaks(one, "SELECT made", after=False, times=2)
    with pytest.raises(StoreUnavailable):
        await one.put_version(bucket.id, "key", new("blob"))
    assert await one.version(bucket.id, "key") is None


async def test_what_was_not_committed_is_refused(one: PostgresIndex, bucket: Bucket) -> None:
    breaks(one, "COMMIT", after=False)
    with pytest.raises(StoreUnavailable):
        await one.put_version(bucket.id, "key", new("blob"), CONDITIONAL)
    assert await one.version(bucket.id, "key") is None


async def test_a_delete_that_was_committed_is_answered(one: PostgresIndex, bucket: Bucket) -> None:
    await one.put_version(bucket.id, "key", new("blob"))
    breaks(one, "SELECT gone", after=True)
    assert await one.delete_version(bucket.id, "key") is not None
    assert await one.version(bucket.id, "key") is None
    assert [entry.body for entry in await one.discards(0, 10)] == ["blob"]


@pytest.mark.parametrize(("conditions", "start"), [(PLAIN, "SELECT made"), (CONDITIONAL, "COMMIT")])
async def test_an_answer_that_comes_late_is_asked_for_all_the_same(
    one: PostgresIndex, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, conditions: Conditions | None, start: str
) -> None:
    """One connection goes silent behind its commit while many groups pass on the others."""
    monkeypatch.setattr(group_commit, "RETAINED_GROUPS", 2)
    went, gate = asyncio.Event(), asyncio.Event()

    async def silent() -> None:
        went.set()
        await gate.wait()

    breaks(one, start, after=True, silent=silent)
    asked = asyncio.create_task(one.put_version(bucket.id, "key", new("blob"), conditions))
    await went.wait()
    for number in range(8):
        await one.put_version(bucket.id, f"other {number}", new("other"))
    await one._committer.tidy()
    gate.set()
    made = await asked
    found = await one.version(bucket.id, "key")
    assert found is not None
    assert made == CommitResult(found.seq, found.version_id, found.modified)


async def test_a_connection_whose_undoing_takes_too_long_makes_room_for_another(one: PostgresIndex) -> None:
    """Else three of them, and nothing is ever committed again."""
    went = asyncio.Event()

    async def silent() -> None:
        went.set()
        await asyncio.Event().wait()

    for _ in range(WRITING):
        connection = await one._writes.acquire()
        undoing = asyncio.create_task(one._committer._undo(Broken(connection, "ROLLBACK", False, silent), None))
        await went.wait()
        went.clear()
        undoing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await undoing
    one._writes.release(await asyncio.wait_for(one._writes.acquire(), 5))


async def test_operations_of_groups_that_are_answered_are_forgotten(
    one: PostgresIndex, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When no group is on its way, too."""
    monkeypatch.setattr(group_commit, "RETAINED_GROUPS", 2)
    for number in range(8):
        await one.put_version(bucket.id, f"key {number}", new("blob"))
    await one._committer.tidy()
    connection = await one.database.connect()
    last = one._committer._operation
    own = await connection.fetch("SELECT id FROM operations WHERE id >= $1::bigint ORDER BY id", one._committer._base)
    assert [row["id"] for row in own] == [last - 2, last - 1, last]
    await connection.close()


async def test_who_asks_waits_for_a_commit_that_is_under_way(one: PostgresIndex) -> None:
    """And what it then says holds: the other is the second to enter the id."""
    slow = await one.database.connect()
    operation = one._committer._next_operation()
    await slow.execute("BEGIN")
    await slow.execute("INSERT INTO operations VALUES ($1::bigint, 0, 77)", operation)
    asked = asyncio.create_task(one._committer._resolve_number(operation))
    await asyncio.sleep(0.1)
    assert not asked.done()
    await slow.execute("COMMIT")
    assert await asked == 77
    await slow.close()


async def test_what_was_found_undone_cannot_be_done_later(one: PostgresIndex) -> None:
    operation = one._committer._next_operation()
    assert await one._committer._resolve_number(operation) == -1
    assert await one._committer._resolve_number(operation) == -1
    late = await one.database.connect()
    with pytest.raises(Exception, match="operations_pkey"):
        await late.fetch(group_commit.BEGIN_GROUP, operation, 0, 1, False, one.incarnation, [])
    await late.close()


async def test_a_dead_writer_commits_nothing(one: PostgresIndex, opens: Opens) -> None:
    bucket = await one.create_bucket("mine", "a" * 64, "us-east-1", 10)
    lost: list[int] = []
    dead = opens(lost=lambda: lost.append(1))
    await dead.start()
    await dead.put_version(bucket.id, "before", new("before"))
    await one.declare_dead(dead.incarnation)
    for conditions in (PLAIN, CONDITIONAL):
        with pytest.raises(WriterDead):
            await dead.put_version(bucket.id, "after", new("after"), conditions)
    assert lost == [1]
    assert await one.version(bucket.id, "after") is None
    await dead.close()


async def test_death_waits_for_what_is_under_way(one: PostgresIndex, other: PostgresIndex) -> None:
    """A group that saw its writer live is committed before the writer is dead, or never."""
    under_way = await one.database.connect()
    await under_way.execute(one.database.begin)
    begun = group_commit.BEGIN_GROUP
    await under_way.fetch(begun, one._committer._next_operation(), 0, 1, False, one.incarnation, [])
    declared = asyncio.create_task(other.declare_dead(one.incarnation))
    await asyncio.sleep(0.1)
    assert not declared.done()
    await under_way.execute("COMMIT")
    await declared
    await under_way.close()


async def test_a_writer_waits_for_what_it_has_under_way_before_it_goes(one: PostgresIndex) -> None:
    under_way = await one.database.connect()
    await under_way.execute(one.database.begin)
    begun = group_commit.BEGIN_GROUP
    await under_way.fetch(begun, one._committer._next_operation(), 0, 1, False, one.incarnation, [])
    first = 1 << 40
    await under_way.execute(f"INSERT INTO id_ranges VALUES ({first}, {first + 9}, {one.incarnation})")
    retired = asyncio.create_task(one._retire_writer())
    await asyncio.sleep(0.1)
    assert not retired.done()
    await under_way.execute("COMMIT")
    assert not await retired
    assert [ids.first for ids in await one.ranges(one.incarnation)] == [first]
    await under_way.close()
