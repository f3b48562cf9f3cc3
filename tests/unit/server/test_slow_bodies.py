"""Bodies that hardly move: how long they may take, and whose places they hold."""

from __future__ import annotations

import asyncio
from typing import Any

from sluice_s3.app.s3.wire.request import REQUEST
from sluice_s3.app.server.http.cycle import HIGH_WATER_BYTES
from sluice_s3.app.server.http.unauthenticated import CROWDED_GRACE_SECONDS
from tests.support.raw_http import AsyncConnection
from tests.support.waiting import eventually_async
from tests.unit.server.apps import answer, read_body
from tests.unit.server.tools import Recorder, Site, serving

GET = b"GET /b/k HTTP/1.1\r\nHost: h\r\n\r\n"
PUT = b"PUT /b/k HTTP/1.1\r\nHost: h\r\n"
BEGUN = PUT + b"Content-Length: 1000000\r\n\r\nabc"


class Believing:
    """An application that knows who sends what under /known, and reads a document under /document."""

    def __init__(self) -> None:
        self.bodies: list[bytes | None] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request, path = scope[REQUEST], scope["path"]
        request.account_id = "somebody" if path.startswith("/known") else None
        request.is_document = path.startswith("/document")
        if path == "/later":
            await receive()
            request.account_id = "somebody"
        self.bodies.append(await read_body(receive))
        await answer(send, b"ok")


async def begin(site: Site, data: bytes = BEGUN) -> AsyncConnection:
    """A client whose request has come as far as `data`."""
    client, known = await site.connect(), set(site.state.running)
    await client.send(data)
    await eventually_async(lambda: any(cycle.waiter is not None for cycle in site.state.running.keys() - known))
    return client


async def drip(site: Site, client: AsyncConnection, data: bytes) -> None:
    """Send some of a body, and wait until the application has it and waits for more."""
    cycle = next(iter(site.state.running))
    before = cycle.received
    await client.send(data)
    await eventually_async(lambda: cycle.received > before and (cycle.wants_body or cycle.complete))


# the least average rate
async def test_a_body_by_drops_is_cut_off() -> None:
    async with serving(Recorder(), sweeps=False) as site:
        client = await begin(site)
        for _ in range(3):
            site.later(10)
            await drip(site, client, b"x")
        site.later(1)
        got = await client.answer()
        assert (got.status, got.code, got.headers["connection"]) == (400, "RequestTimeout", "close")


async def test_chunks_by_drops_are_cut_off() -> None:
    async with serving(Recorder(), sweeps=False) as site:
        client = await begin(site, PUT + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
        for _ in range(3):
            site.later(10)
            await drip(site, client, b"1\r\na\r\n")
        site.later(1)
        assert (await client.answer()).code == "RequestTimeout"


async def test_a_slow_body_is_not_cut_off() -> None:
    async with serving(Recorder(), sweeps=False) as site:
        client = await begin(site, PUT + b"Content-Length: 40000\r\n\r\n")
        for _ in range(20):
            site.later(1.9)
            await drip(site, client, bytes(2000))
        assert (await client.answer()).status == 200


async def test_a_body_may_pause_after_much_of_it() -> None:
    async with serving(Recorder(), sweeps=False) as site:
        client = await begin(site, PUT + b"Content-Length: 200000\r\n\r\n" + bytes(150_000))
        for _ in range(3):
            site.later(50)
            await drip(site, client, b"x")
        await client.send(bytes(50_000 - 3))
        assert (await client.answer()).status == 200


async def test_the_rate_can_be_turned_off() -> None:
    async with serving(Recorder(), sweeps=False, body_min_rate=0) as site:
        client = await begin(site, PUT + b"Content-Length: 10\r\n\r\n")
        for _ in range(10):
            site.later(59)
            await drip(site, client, b"x")
        assert (await client.answer()).status == 200


async def test_what_the_gateway_takes_time_for_does_not_count() -> None:
    """A disk that is slow, or memory that is short: the client has sent as much as is read of it."""
    go = asyncio.Event()

    async def busy(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await go.wait()
        await answer(send, b"%d" % len(await read_body(receive) or b""))

    async with serving(busy, sweeps=False) as site:
        client = await site.connect()
        size = 4 * HIGH_WATER_BYTES
        sending = asyncio.create_task(client.send(PUT + b"Content-Length: %d\r\n\r\n" % size + bytes(size)))
        await eventually_async(lambda: site.state.connections and next(iter(site.state.connections)).read_paused)
        for _ in range(1000):
            site.later(10)
        go.set()
        assert int((await client.answer()).body) > size // 2
        await sending


async def test_time_before_100_continue_does_not_count() -> None:
    go = asyncio.Event()

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        await answer(send, await read_body(receive) or b"")

    async with serving(late, sweeps=False) as site:
        client = await site.connect()
        await client.send(PUT + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        await eventually_async(lambda: site.state.running)
        site.later(1000)
        go.set()
        assert (await client.answer()).status == 100
        assert (await client.ask(b"abc")).body == b"abc"


# documents
async def test_a_document_has_a_total_time() -> None:
    """However fast it comes."""
    async with serving(Believing(), sweeps=False) as site:
        client = await begin(site, b"POST /document HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n")
        for _ in range(3):
            site.later(10)
            await drip(site, client, bytes(50_000))
        site.later(1)
        assert (await client.answer()).code == "RequestTimeout"


# places
async def test_unauthenticated_bodies_have_places_of_their_own() -> None:
    async with serving(Believing(), sweeps=False, max_requests=1, max_unauthenticated_bodies=2) as site:
        for _ in range(2):
            await begin(site)
        third = await site.connect()
        got = await third.ask(BEGUN)
        assert (got.status, got.code, got.headers["connection"]) == (503, "SlowDown", "close")
        assert (await site.ask(GET)).status == 200, "those who send no body are none the worse for it"
        assert (await site.ask(PUT + b"Content-Length: 3\r\n\r\nabc")).status == 200, "nor whoever sends it whole"
        assert (await site.ask(BEGUN.replace(b"/b/k", b"/known", 1) + bytes(999_997))).status == 200
        await begin(site, BEGUN.replace(b"/b/k", b"/known", 1))
        assert (await site.ask(GET)).code == "SlowDown", "requests have their own bound"


async def test_no_100_continue_without_a_place() -> None:
    async with serving(Believing(), sweeps=False, max_unauthenticated_bodies=1) as site:
        await begin(site)
        got = await site.ask(PUT + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert (got.status, got.code) == (503, "SlowDown")


async def test_places_are_given_back() -> None:
    async with serving(Believing(), sweeps=False, max_unauthenticated_bodies=1) as site:
        client = await begin(site)
        client.close()
        await eventually_async(lambda: not site.state.unauthenticated)
        client = await begin(site)
        await client.send(bytes(999_997))
        assert (await client.answer()).status == 200
        assert not site.state.unauthenticated
        client = await begin(site, BEGUN.replace(b"/b/k", b"/later", 1))
        await eventually_async(lambda: not site.state.unauthenticated)
        assert len(site.state.running) == 1
        await client.send(bytes(999_997))
        assert (await client.answer()).status == 200


async def test_slow_ones_make_room() -> None:
    async with serving(Believing(), sweeps=False, max_unauthenticated_bodies=2) as site:
        slow = await begin(site)
        site.later(CROWDED_GRACE_SECONDS - 2)
        fast = await begin(site, BEGUN + bytes(100_000))
        assert (await site.ask(BEGUN)).code == "SlowDown"
        site.later(3)
        await begin(site)
        assert (await slow.answer()).code == "SlowDown"
        assert len(site.state.unauthenticated) == 2
        await fast.send(bytes(899_997))
        assert (await fast.answer()).status == 200


async def test_places_of_one_client() -> None:
    options = {"max_unauthenticated_bodies_per_client": 1, "trusted_proxies": "127.0.0.1"}
    async with serving(Believing(), sweeps=False, **options) as site:

        def of(address: bytes) -> bytes:
            return BEGUN.replace(b"Host", b"X-Forwarded-For: 10.0.0.9, " + address + b"\r\nHost", 1)

        first = await begin(site, of(b"192.0.2.1"))
        assert (await site.ask(of(b"192.0.2.1"))).code == "SlowDown"
        await begin(site, of(b"192.0.2.2"))
        first.close()
        await eventually_async(lambda: len(site.state.unauthenticated) == 1)
        await begin(site, of(b"192.0.2.1"))


async def test_one_client_has_all_places_by_default() -> None:
    async with serving(Believing(), sweeps=False) as site:
        for _ in range(20):
            await begin(site)
        assert len(site.state.unauthenticated) == 20
