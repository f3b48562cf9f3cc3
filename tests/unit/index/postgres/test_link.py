"""Connections are few: who waits for one gets it in turn, and a sign of life goes first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable

import pytest

from sluice_s3.app.index.postgres.database import Connection, Pool, query_with_retry
from sluice_s3.app.index.postgres.index import LONG, WRITING, PostgresIndex
from tests.unit.index.postgres.conftest import Opens
from tests.unit.index.tools import OWNER, new

SMALLEST = WRITING + LONG + 2
"""Connections of an index that has one for all that is read."""


@pytest.fixture
async def narrow(opens: Opens) -> AsyncIterator[PostgresIndex]:
    index = opens(connections=SMALLEST)
    await index.start()
    yield index
    await index.close()


FATAL = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"


async def end_idle(pool: Pool) -> None:
    """Have a pool hold a connection that the server has said it ends, as it does when it stops, but not ended yet."""
    connection = await pool.acquire()
    connection._protocol.data_received(b"E" + (len(FATAL) + 4).to_bytes(4, "big") + FATAL)
    assert not connection.is_closed()
    pool.release(connection)


async def test_a_connection_that_ends_while_it_is_idle_costs_no_request(narrow: PostgresIndex) -> None:
    await end_idle(narrow.reads)
    assert await narrow.bucket("bucket") is None
    await end_idle(narrow._writes)
    bucket = await narrow.create_bucket("bucket", OWNER, "us-east-1", 10)
    await end_idle(narrow._writes)
    await narrow.put_version(bucket.id, "key", new("blob"))
    await end_idle(narrow.reads)
    assert await narrow.version(bucket.id, "key") is not None


async def in_order(index: PostgresIndex, count: int) -> tuple[list[str], list[asyncio.Task[None]]]:
    """So many requests that wait for the one connection, and the order in which they are answered."""
    order: list[str] = []

    async def ask(connection: Connection) -> None:
        await connection.execute("SELECT 1")

    async def noted(name: str, call: Awaitable[object]) -> None:
        await call
        order.append(name)

    tasks = []
    for number in range(count):
        call = query_with_retry(index.database, index.reads, ask)
        tasks.append(asyncio.create_task(noted(f"request {number}", call)))
        await asyncio.sleep(0)
    tasks.append(asyncio.create_task(noted("sign", index._beat(1 << 40, 0))))
    await asyncio.sleep(0)
    return order, tasks


async def test_a_sign_of_life_waits_for_no_request(narrow: PostgresIndex) -> None:
    """Else a gateway with more to do than it can is declared dead by the others."""
    held = await narrow.reads.acquire()
    order, tasks = await in_order(narrow, 5)
    narrow.reads.release(held)
    await asyncio.gather(*tasks)
    assert order == ["sign", *(f"request {number}" for number in range(5))]


async def test_nobody_goes_before_those_who_wait(narrow: PostgresIndex) -> None:
    held = await narrow.reads.acquire()
    waiting = asyncio.create_task(narrow.reads.acquire())
    await asyncio.sleep(0)
    narrow.reads.release(held)
    late = asyncio.create_task(narrow.reads.acquire())
    await asyncio.sleep(0)
    assert await waiting is held
    assert not late.done()
    narrow.reads.release(held)
    assert await late is held
    narrow.reads.release(held)


async def test_who_gives_up_at_the_moment_of_his_turn_hands_it_on(narrow: PostgresIndex) -> None:
    held = await narrow.reads.acquire()
    first, second = (asyncio.create_task(narrow.reads.acquire()) for _ in range(2))
    await asyncio.sleep(0)
    narrow.reads.release(held)
    first.cancel()
    assert await second is held
    assert first.cancelled()
    narrow.reads.release(held)
