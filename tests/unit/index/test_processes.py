"""More than one process on one index, and processes that die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sluice_s3.app.index.sqlite.connection import open_connection
from sluice_s3.app.index.sqlite.index import SqliteIndex
from tests.support.environment import ROOT, sized
from tests.support.waiting import eventually_async
from tests.unit.index.tools import OWNER, open_at

pytestmark = pytest.mark.slow

Child = asyncio.subprocess.Process


@contextlib.asynccontextmanager
async def child(*arguments: str, crash_at: str = "") -> AsyncIterator[Child]:
    """A process of `tests.unit.index.child`, ended with the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.unit.index.child", *arguments),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "SLUICE_CRASH_AT": crash_at},
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def line(process: Child) -> str:
    assert process.stdout is not None
    return (await process.stdout.readline()).decode().strip()


async def rest(process: Child) -> list[str]:
    """The whole lines that are left."""
    assert process.stdout is not None
    text = (await process.stdout.read()).decode()
    return text[: text.rfind("\n") + 1].split()


async def all_keys(index: SqliteIndex, bucket_id: int) -> list[str]:
    keys: list[str] = []
    after, more = "", True
    while more:
        page = await index.list_current(bucket_id, "", "", after, 1000)
        keys += [entry.key for entry in page.entries]
        after, more = page.last, page.truncated
    return keys


async def test_two_processes_take_turns(index: SqliteIndex, directory: Path) -> None:
    smallest = 0.0
    for attempt in range(3):  # a busy machine may give two processes unequal shares of its cores
        smallest = max(smallest, await smaller_share(index, directory, f"bucket{attempt}"))
        if smallest > 0.1:
            break
    assert smallest > 0.1


async def smaller_share(index: SqliteIndex, directory: Path, bucket: str) -> float:
    """Let two processes commit, and return the smaller one's share of the turns while both run."""
    bucket_id = (await index.create_bucket(bucket, OWNER, "r", 10)).id
    put = ("put", str(directory), str(bucket_id))
    async with child(*put, "one", "full") as one, child(*put, "two", "full") as two:
        assert [await line(one), await line(two)] == ["ready", "ready"]
        stopped = stop_at(300, directory, bucket_id, one, two)
        acknowledged = await asyncio.gather(until_stopped(one), until_stopped(two), stopped)
    turns = names_in(directory, bucket_id)
    assert set(acknowledged[0] + acknowledged[1]) <= set(await all_keys(index, bucket_id))
    first = max(turns.index(name) for name in ("one", "two"))
    last = min(len(turns) - turns[::-1].index(name) for name in ("one", "two"))
    shares = Counter(turns[first:last])
    return min(shares["one"], shares["two"]) / sum(shares.values())


def names_in(directory: Path, bucket_id: int) -> list[str]:
    """The processes that made the objects of a bucket, in the order of their commits."""
    return [
        name
        for (name,) in rows(
            directory, f"SELECT substr(key, 1, 3) FROM versions WHERE bucket_id = {bucket_id} ORDER BY seq"
        )
    ]


async def until_stopped(process: Child) -> list[str]:
    """Every key it acknowledged."""
    acknowledged = await rest(process)
    assert await process.wait() == 0
    return acknowledged


async def stop_at(commits: int, directory: Path, bucket_id: int, one: Child, two: Child) -> None:
    """Stop both once each has made so many commits."""

    def has_made_them() -> bool:
        made = Counter(names_in(directory, bucket_id))
        return min(made["one"], made["two"]) >= commits

    await eventually_async(has_made_them)
    for process in (one, two):
        assert process.stdin is not None
        process.stdin.close()


def rows(directory: Path, sql: str) -> list[tuple[str]]:
    connection = open_connection(directory / "sluice.db")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


async def test_a_change_by_another_process_is_seen_at_once(index: SqliteIndex, directory: Path) -> None:
    before = index.generation
    async with child("account", str(directory)) as process:
        assert await process.wait() == 0
    assert index.generation > before
    found = await index.access_key("CHILD")
    assert found is not None
    assert found.secret == "secret"


@pytest.mark.parametrize("seed", range(sized(4, 200)))
async def test_what_was_acknowledged_survives_a_killed_process(index: SqliteIndex, directory: Path, seed: int) -> None:
    bucket_id = (await index.create_bucket("bucket", OWNER, "r", 10)).id
    wanted = random.Random(seed).randrange(1, 400)
    async with child("put", str(directory), str(bucket_id), "dies", "relaxed") as process:
        assert await line(process) == "ready"
        acknowledged = [await line(process) for _ in range(wanted)]
        process.send_signal(signal.SIGKILL)
        acknowledged += await rest(process)
    await check_after_death(index, directory, bucket_id, acknowledged)


@pytest.mark.parametrize("point", ["index.commit:3", "index.commit:9", "index.committed:3", "index.committed:9"])
async def test_what_was_acknowledged_survives_death_around_a_commit(
    index: SqliteIndex, directory: Path, point: str
) -> None:
    bucket_id = (await index.create_bucket("bucket", OWNER, "r", 10)).id
    async with child("put", str(directory), str(bucket_id), "dies", "relaxed", crash_at=point) as process:
        assert await line(process) == "ready"
        acknowledged = await rest(process)
        assert await process.wait() == 137
    await check_after_death(index, directory, bucket_id, acknowledged)


async def check_after_death(index: SqliteIndex, directory: Path, bucket_id: int, acknowledged: list[str]) -> None:
    """Everything acknowledged is there, nothing is half there, and a survivor goes on at once."""
    gone = [writer for writer in await index.writers() if index.is_writer_dead(writer)]
    assert len(gone) == 1
    reopened = open_at(directory)
    await reopened.start()
    for survivor in (index, reopened):
        assert set(acknowledged) <= set(await all_keys(survivor, bucket_id))
    assert await reopened.miscounted() == []
    assert rows(directory, "PRAGMA integrity_check") == [("ok",)]
    (sequence,) = rows(directory, "SELECT value FROM sequence")[0]
    (newest,) = rows(directory, "SELECT coalesce(max(seq), 0) FROM versions")[0]
    assert sequence > newest
    await reopened.declare_dead(gone[0].incarnation)
    await reopened.forget_writer(gone[0].incarnation)
    await reopened.close()
