"""The end of a worker, as its clients see it."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from sluice_s3.app.server.http.timeouts import DRAIN_IDLE_SECONDS, FIRST_REQUEST_GRACE_SECONDS
from tests.support.raw_http import PATIENCE
from tests.support.waiting import eventually_async
from tests.unit.server.apps import answer
from tests.unit.server.tools import Recorder, serving

pytestmark = pytest.mark.slow

GET = b"GET /b/k HTTP/1.1\r\nHost: h\r\n\r\n"


async def test_a_stop_closes_idle_connections_at_once() -> None:
    async with serving(Recorder(), sweeps=False) as site:
        client = await site.connect()
        await client.ask(GET)
        site.sweeper.drain(patient=False)
        assert await client.rest() == b""


async def test_a_patient_stop_leaves_idle_connections_their_next_request() -> None:
    async with serving(Recorder(), sweeps=False) as site:
        user, sleeper = await site.connect(), await site.connect()
        for client in (user, sleeper):
            await client.ask(GET)
        site.sweeper.drain(patient=True)
        site.later(DRAIN_IDLE_SECONDS - 0.1)
        got = await user.ask(GET)
        assert (got.status, got.headers["connection"]) == (200, "close")
        assert await user.rest() == b""
        assert len(site.state.connections) == 1
        site.later(0.2)
        assert await sleeper.rest() == b""


async def test_a_patient_stop_waits_for_who_still_reads() -> None:
    """All is written by then, but it is in buffers of the kernel: no client asks for more before it has read it."""
    body = b"x" * (1 << 20)

    async def large(scope: Any, receive: Any, send: Any) -> None:
        await answer(send, body)

    async with serving(large, sweeps=False) as site:
        loop = asyncio.get_running_loop()
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await loop.sock_connect(client, ("127.0.0.1", site.port))
            await loop.sock_sendall(client, GET)
            await eventually_async(lambda: any(one.active is None and not one.fresh for one in site.state.connections))
            site.sweeper.drain(patient=True)
            site.later(DRAIN_IDLE_SECONDS + 0.1)
            got = b""
            async with asyncio.timeout(PATIENCE):
                while not got.endswith(body):
                    piece = await loop.sock_recv(client, 1 << 16)
                    assert piece
                    got += piece
                await loop.sock_sendall(client, GET)
                head = await loop.sock_recv(client, 1 << 16)
            assert head.startswith(b"HTTP/1.1 200")
            assert b"\r\nconnection: close\r\n" in head


async def test_a_connection_just_made_may_ask_once() -> None:
    async with serving(Recorder(), sweeps=False) as site:
        asking, silent = await site.connect(), await site.connect()
        await eventually_async(lambda: len(site.state.connections) == 2)
        site.sweeper.drain(patient=False)
        got = await asking.ask(GET)
        assert (got.status, got.headers["connection"]) == (200, "close")
        site.later(FIRST_REQUEST_GRACE_SECONDS + 0.1)
        assert await silent.rest() == b""


async def test_a_running_request_is_answered_with_close() -> None:
    go = asyncio.Event()

    async def waiting(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        await answer(send, b"ok")

    async with serving(waiting, sweeps=False) as site:
        client = await site.connect()
        await client.send(GET)
        await eventually_async(lambda: site.state.running)
        site.sweeper.drain(patient=False)
        go.set()
        got = await client.answer()
        assert (got.status, got.headers["connection"]) == (200, "close")
        assert await client.rest() == b""


async def test_a_request_in_the_socket_is_not_cut_off() -> None:
    """The request has arrived, the loop has not seen it yet: closing now would reset it."""
    async with serving(Recorder(), sweeps=False) as site:
        client = await site.connect()
        await client.ask(GET)
        client.writer.write(GET)  # uvloop writes at once, and nothing is awaited before the drain
        site.sweeper.drain(patient=False)
        got = await client.answer()
        assert (got.status, got.headers["connection"]) == (200, "close")


class Events:
    """A stream of events without end."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert "sluice.live" in scope["extensions"], "app/admin/live.py knows it by this name"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "sluice.live"})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            self.ended.set()


async def test_nothing_waits_for_a_stream_of_events() -> None:
    """No discard, no job and no stop."""
    events = Events()
    async with serving(events, sweeps=False) as site:
        client = await site.connect()
        client.writer.write(GET)
        await eventually_async(lambda: len(site.state.live) == 1)
        assert not site.state.running
        site.sweeper.drain(patient=True)
        await asyncio.wait_for(events.ended.wait(), PATIENCE)
        await eventually_async(lambda: not site.state.live and not site.state.connections)


async def test_a_stream_that_its_reader_leaves_is_forgotten() -> None:
    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "sluice.live"})
        while True:
            await send({"type": "http.response.body", "body": b": \n", "more_body": True})
            await asyncio.sleep(0.01)

    async with serving(endless, sweeps=False) as site:
        client = await site.connect()
        client.writer.write(GET)
        await eventually_async(lambda: len(site.state.live) == 1)
        client.writer.transport.abort()
        await eventually_async(lambda: not site.state.live)
