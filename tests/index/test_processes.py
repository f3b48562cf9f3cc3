"""More than one process on one index, and processes that die."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.index.sqlite import SqliteIndex
from tests.environment import sized
from tests.index.tools import OWNER, open_at

ROOT = Path(__file__).parent.parent.parent
Child = asyncio.subprocess.Process


@contextlib.asynccontextmanager
async def child(*arguments: str, crash_at: str = "") -> AsyncIterator[Child]:
    """A process of `tests.index.child`, ended with the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.index.child", *arguments),
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
    bucket_id = (await index.create_bucket("bucket", OWNER, "r", 10)).id
    arguments = (str(directory), str(bucket_id))
    async with child("put", *arguments, "one") as one, child("put", *arguments, "two") as two:
        assert [await line(one), await line(two)] == ["ready", "ready"]
        acknowledged = Counter[str]()
        # each line of one side waits for one of the other, so that both are surely running all the time
        for _ in range(400):
            for name, process in (("one", one), ("two", two)):
                assert (await line(process)).startswith(name)
                acknowledged[name] += 1
        for process in (one, two):
            assert process.stdin is not None
            process.stdin.close()
        for name, process in (("one", one), ("two", two)):
            acknowledged[name] += len(await rest(process))
            assert await process.wait() == 0
    made = Counter(key.partition("-")[0] for key in await all_keys(index, bucket_id))
    assert all(made[name] >= acknowledged[name] for name in ("one", "two"))
    sequences = [entry.seq for entry in (await index.list_current(bucket_id, "", "", "", 100_000)).entries]
    turns = [row[0] for row in rows(directory, "SELECT substr(key, 1, 3) FROM versions ORDER BY seq")]
    assert len(set(sequences)) == len(sequences)
    # while both run, neither is passed over for long: no side commits 30 groups of its 8 callers in a row
    shared = turns[turns.index("two") if turns[0] == "one" else turns.index("one") :]
    last = min(len(shared) - 1 - shared[::-1].index(name) for name in ("one", "two"))
    assert longest_run(shared[:last]) < 30 * 8


def rows(directory: Path, sql: str) -> list[tuple[str]]:
    connection = sqlite3.connect(directory / "sluice.db")
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def longest_run(turns: list[str]) -> int:
    longest = run = 0
    for number, name in enumerate(turns):
        run = run + 1 if number and turns[number - 1] == name else 1
        longest = max(longest, run)
    return longest


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
    async with child("put", str(directory), str(bucket_id), "dies") as process:
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
    async with child("put", str(directory), str(bucket_id), "dies", crash_at=point) as process:
        assert await line(process) == "ready"
        acknowledged = await rest(process)
        assert await process.wait() == 137
    await check_after_death(index, directory, bucket_id, acknowledged)


async def check_after_death(index: SqliteIndex, directory: Path, bucket_id: int, acknowledged: list[str]) -> None:
    """Everything acknowledged is there, nothing is half there, and a survivor goes on at once."""
    gone = [writer for writer in await index.writers() if index.writer_is_gone(writer)]
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
