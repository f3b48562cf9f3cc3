"""Bounds: time, connections, requests, memory. Past them the answer is S3's, and others are not delayed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sluice_s3.app.errors import Overloaded
from sluice_s3.app.server.http import connection as protocol
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from tests.support.waiting import eventually_async
from tests.unit.server.apps import answer, read_body
from tests.unit.server.test_zerocopy import slow_client
from tests.unit.server.tools import Recorder, serving

GET = b"GET /b/k HTTP/1.1\r\nHost: h\r\n\r\n"
PUT = b"PUT /b/k HTTP/1.1\r\nHost: h\r\n"


# time
@pytest.mark.parametrize("begun", [b"GET /b", b"GET /b/k HTTP/1.1\r\nHost: h\r\nX: ", b"\r\n"])
async def test_a_head_that_does_not_end(begun: bytes) -> None:
    app = Recorder()
    async with serving(app, header_timeout=0.2) as site:
        client = await site.connect()
        got = await client.ask(begun)
        assert (got.status, got.code, got.headers["connection"]) == (400, "RequestTimeout", "close")
        assert await client.rest() == b""
        assert app.scopes == []


async def test_a_head_by_drops_is_measured_from_its_first_byte() -> None:
    async with serving(Recorder(), header_timeout=0.3) as site:
        client = await site.connect()
        dropping = asyncio.create_task(_drops(client))
        assert (await client.answer()).code == "RequestTimeout"
        dropping.cancel()


async def _drops(client: Any) -> None:
    await client.send(b"GET /b HTTP/1.1\r\n")
    while True:
        await client.send(b"X: a\r\n")
        await asyncio.sleep(0.03)


async def test_a_connection_that_says_nothing_is_closed() -> None:
    async with serving(Recorder(), header_timeout=0.2) as site:
        assert await (await site.connect()).rest() == b""


async def test_an_idle_connection_is_closed_after_its_time() -> None:
    async with serving(Recorder(), keep_alive_timeout=0.3) as site:
        client = await site.connect()
        assert (await client.ask(GET)).status == 200
        assert await client.rest() == b""


async def test_an_idle_connection_outlives_the_limit_of_heads() -> None:
    async with serving(Recorder(), sweeps=False) as site:
        client = await site.connect()
        assert (await client.ask(GET)).status == 200
        site.later(site.state.settings.header_timeout + 1)
        assert (await client.ask(GET)).status == 200
        site.later(site.state.settings.keep_alive_timeout + 1)
        assert await client.rest() == b""


async def test_a_body_that_stops() -> None:
    app = Recorder()
    async with serving(app, body_timeout=0.2) as site:
        client = await site.connect()
        got = await client.ask(PUT + b"Content-Length: 100\r\n\r\nabc")
        assert (got.status, got.code, got.headers["connection"]) == (400, "RequestTimeout", "close")
        assert await client.rest() == b""
        await eventually_async(lambda: app.bodies)
        assert app.bodies == [None]


async def test_a_body_that_goes_on_is_not_cut_off() -> None:
    app = Recorder()
    async with serving(app, sweeps=False, body_min_rate=0) as site:
        client = await site.connect()
        await client.send(PUT + b"Content-Length: 20\r\n\r\n")
        await eventually_async(lambda: app.scopes)
        (connection,) = site.state.connections
        for number in range(1, 21):
            site.later(site.state.settings.body_timeout - 1)
            await client.send(b"x")
            await eventually_async(lambda received=number: connection.parsed and connection.parsed.received == received)
        assert (await client.answer()).status == 200


async def test_an_application_that_thinks_is_not_cut_off() -> None:
    thinks, go = asyncio.Event(), asyncio.Event()

    async def thinking(scope: Any, receive: Any, send: Any) -> None:
        thinks.set()
        await go.wait()
        await answer(send, await read_body(receive) or b"")

    async with serving(thinking, sweeps=False) as site:
        client = await site.connect()
        await client.send(PUT + b"Content-Length: 3\r\n\r\nabc")
        await thinks.wait()
        for _ in range(10):
            site.later(50)
        go.set()
        assert (await client.answer()).body == b"abc"


async def test_a_reader_that_stops() -> None:
    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": bytes(1_000_000), "more_body": True})

    async with serving(streaming, body_timeout=0.2) as site:
        client = await site.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(GET)
        await eventually_async(lambda: site.state.running)
        await eventually_async(lambda: not site.state.connections and not site.state.running)


async def test_a_reader_that_stops_after_the_answer() -> None:
    async def large(scope: Any, receive: Any, send: Any) -> None:
        await answer(send, bytes(30_000_000))

    async with serving(large, body_timeout=0.2) as site:
        client = await site.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(GET)
        await eventually_async(lambda: site.state.connections)
        await eventually_async(lambda: not site.state.connections)


async def test_an_answer_is_read_within_the_greatest_age_of_a_request() -> None:
    """However slowly its reader goes on: the whole answer is in memory."""

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await answer(send, bytes(30_000_000))

    async with serving(large, sweeps=False, request_max_age=300) as site:
        client = await slow_client(site)
        await client.send(GET)
        await client.head()
        (connection,) = site.state.connections
        await eventually_async(lambda: connection.active is None)
        for _ in range(6):
            assert site.state.connections
            assert await client.reader.read(300_000)
            site.later(50)
        await client.reader.read(300_000)
        site.later(50)
        await eventually_async(lambda: not site.state.connections)


async def test_a_request_beyond_its_greatest_age_is_cut_off() -> None:
    ended: list[str] = []

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async with serving(endless, request_max_age=0.3) as site:
        client = await site.connect()
        await client.send(GET)
        await client.lost()
        await eventually_async(lambda: not site.state.running)
        assert ended == ["cancelled"]


async def test_200_stalled_writers_do_not_delay_the_next_request() -> None:
    app = Recorder()
    async with serving(app) as site:
        for _ in range(200):
            await (await site.connect()).send(PUT + b"Content-Length: 1000000\r\n\r\nabc")
        await eventually_async(lambda: len(site.state.running) == 200)
        assert (await site.ask(GET)).status == 200


# numbers
async def test_connections_past_the_limit_are_told_to_slow_down() -> None:
    app = Recorder()
    async with serving(app, max_connections=2) as site:
        first, second = await site.connect(), await site.connect()
        assert (await first.ask(GET)).status == 200
        assert (await second.ask(GET)).status == 200
        third = await site.connect()
        got = await third.ask(GET)
        assert (got.status, got.code, got.headers["connection"]) == (503, "SlowDown", "close")
        assert await third.rest() == b""
        third.close()
        first.close()
        await eventually_async(lambda: len(site.state.connections) == 1)
        assert (await site.ask(GET)).status == 200
        assert len(app.scopes) == 3


async def test_connections_far_past_the_limit_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "REFUSED_CONNECTIONS", 1)
    async with serving(Recorder(), max_connections=1) as site:
        await (await site.connect()).ask(GET)
        assert (await site.ask(GET)).code == "SlowDown"
        dropped = await site.connect()
        await dropped.lost()


async def test_requests_past_the_limit_are_told_to_slow_down() -> None:
    go = asyncio.Event()

    async def waiting(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        await answer(send, b"ok")

    async with serving(waiting, max_requests=2) as site:
        running = [await site.connect() for _ in range(2)]
        for client in running:
            await client.send(GET)
        await eventually_async(lambda: len(site.state.running) == 2)
        got = await site.ask(PUT + b"Content-Length: 3\r\n\r\nabc")
        assert (got.status, got.code) == (503, "SlowDown")
        go.set()
        for client in running:
            assert (await client.answer()).status == 200
        assert (await site.ask(GET)).status == 200


# memory
async def test_body_memory_is_given_in_order() -> None:
    memory = BodyMemoryBudget(100)
    await memory.acquire(80)
    order: list[str] = []

    async def take(name: str, size: int) -> None:
        await memory.acquire(size)
        order.append(name)

    tasks = [asyncio.create_task(take("large", 60)), asyncio.create_task(take("small", 10))]
    await asyncio.sleep(0)
    assert order == [], "a small request must not pass a large one that waits"
    memory.release(80)
    await asyncio.gather(*tasks)
    assert order == ["large", "small"]
    memory.release(60)
    memory.release(10)
    assert memory.used_bytes == 0


async def test_body_memory_gives_up_and_lets_others_pass() -> None:
    memory = BodyMemoryBudget(100)
    await memory.acquire(80)
    waiting = asyncio.create_task(memory.acquire(50, timeout=0.05))
    await asyncio.sleep(0)
    small = asyncio.create_task(memory.acquire(10))
    with pytest.raises(Overloaded):
        await waiting
    await small
    assert memory.used_bytes == 90


async def test_body_memory_forgets_a_cancelled_waiter() -> None:
    memory = BodyMemoryBudget(100)
    await memory.acquire(100)
    waiting = asyncio.create_task(memory.acquire(50))
    await asyncio.sleep(0)
    waiting.cancel()
    memory.release(100)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert memory.used_bytes == 0
    await memory.acquire(1000)
    assert memory.used_bytes == 100, "more than the budget takes all of it"
    memory.release(1000)
    assert memory.used_bytes == 0
