"""Request bodies: whole, in order, bounded in memory, and answers that come before them."""

from __future__ import annotations

import asyncio
import hashlib
import os
from typing import Any

import pytest

from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.s3.wire.response import Response
from sluice_s3.app.server.http.cycle import HIGH_WATER_BYTES, RequestCycle
from tests.support.waiting import eventually_async
from tests.unit.server.apps import answer, read_body
from tests.unit.server.tools import Recorder, serving

HEAD = b"PUT /b/k HTTP/1.1\r\nHost: h\r\n"
GET = b"GET /b/k HTTP/1.1\r\nHost: h\r\n\r\n"
MIB = 1024 * 1024


async def digesting(scope: Any, receive: Any, send: Any) -> None:
    hasher = hashlib.md5(usedforsecurity=False)
    while True:
        message = await receive()
        hasher.update(message["body"])
        if not message["more_body"]:
            break
    await answer(send, hasher.hexdigest().encode())


async def refusing(scope: Any, receive: Any, send: Any) -> None:
    """Answers without a look at the body."""
    await answer(send, b"denied", 403)


@pytest.mark.parametrize("size", [0, 1, 4096, 65_537, 262_144, 262_145, 300_000, 5_000_000])
@pytest.mark.parametrize("kind", ["length", "chunked"])
async def test_a_body_arrives_whole(size: int, kind: str) -> None:
    body = os.urandom(size)
    if kind == "length":
        raw = HEAD + b"Content-Length: %d\r\n\r\n" % size + body
    else:
        pieces = [body[at : at + 70_000] for at in range(0, size, 70_000)]
        framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        raw = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n"
    async with serving(digesting) as site:
        client = await site.connect()
        for _ in range(3):  # the same connection goes on after it
            got = await client.ask(raw)
            assert got.body == hashlib.md5(body, usedforsecurity=False).hexdigest().encode()
        assert (await client.ask(GET)).status == 200
    assert site.state.memory.buffered == 0


async def test_a_part_of_a_body_without_memory_for_it_is_slow_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by the lab: the error of the parser hid its cause, and clients got 500."""

    def fail(_: RequestCycle, data: bytes) -> None:
        raise MemoryError

    monkeypatch.setattr(RequestCycle, "feed", fail)
    async with serving(digesting) as site:
        client = await site.connect()
        got = await client.ask(HEAD + b"Content-Length: 4\r\n\r\nbody")
    assert (got.status, b"<Code>SlowDown</Code>" in got.body) == (503, True)


async def test_bodies_and_heads_in_one_stream() -> None:
    """Long bodies leave the parser: the next request must be found exactly behind them."""
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        sizes = [300_000, 10, 600_000, 0, 262_145]
        bodies = [os.urandom(size) for size in sizes]
        raw = b"".join(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies)
        sending = asyncio.create_task(client.send(raw))
        for _ in bodies:
            assert (await client.answer()).status == 200
        await sending
        assert app.bodies == bodies


async def test_a_long_body_and_part_of_the_next_request_in_one_read() -> None:
    """As a loop may give them that reads more at once than uvloop does."""
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        await eventually_async(lambda: site.state.connections)
        (connection,) = site.state.connections
        long, short = os.urandom(300_000), b"0123456789"
        connection.data_received(HEAD + b"Content-Length: 300000\r\n\r\n" + long)
        connection.data_received(
            HEAD + b"Content-Length: 300000\r\n\r\n" + long + HEAD + b"Content-Length: 10\r\n\r\n01"
        )
        connection.data_received(short[2:] + GET)
        for _ in range(4):
            assert (await client.answer()).status == 200
        assert app.bodies == [long, long, short, b""]


async def test_very_small_pieces_are_kept_together() -> None:
    """While nobody asks for them: an object for each would take many times their bytes."""
    go = asyncio.Event()

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        await answer(send, await read_body(receive) or b"")

    body = bytes(range(250)) * 40 + bytes(5000) + bytes(range(250)) * 8
    cuts = [*range(0, 10_000, 2), 10_000, *range(15_000, len(body), 2)]
    framed = b"".join(
        b"%x\r\n%b\r\n" % (end - start, body[start:end])
        for start, end in zip(cuts, [*cuts[1:], len(body)], strict=True)
    )
    async with serving(late) as site:
        client = await site.connect()
        await client.send(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n")
        await eventually_async(lambda: any(cycle.complete for cycle in site.state.running))
        (cycle,) = site.state.running
        assert cycle.buffered == len(body)
        assert len(cycle.chunks or ()) <= 4
        go.set()
        assert (await client.answer()).body == body
    assert site.state.memory.buffered == 0


async def test_reading_ahead_is_bounded() -> None:
    go = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        await answer(send, b"%d" % len(await read_body(receive) or b""))

    async with serving(slow) as site:
        client = await site.connect()
        size = 16 * MIB
        sending = asyncio.create_task(client.send(HEAD + b"Content-Length: %d\r\n\r\n" % size + bytes(size)))
        await eventually_async(lambda: any(connection.read_paused for connection in site.state.connections))
        assert HIGH_WATER_BYTES < site.state.memory.buffered <= HIGH_WATER_BYTES + 256 * 1024
        go.set()
        assert (await client.answer()).body == b"%d" % size
        await sending


async def test_connections_stop_reading_ahead_when_memory_is_tight() -> None:
    go = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        await answer(send, b"%d" % len(await read_body(receive) or b""))

    async with serving(slow, max_body_memory=4 * MIB) as site:
        clients = [await site.connect() for _ in range(8)]
        size = 2 * MIB
        raw = HEAD + b"Content-Length: %d\r\n\r\n" % size + bytes(size)
        sending = [asyncio.create_task(client.send(raw)) for client in clients]
        await eventually_async(lambda: sum(connection.read_paused for connection in site.state.connections) == 8)
        assert site.state.memory.buffered < 4 * MIB
        go.set()
        for client in clients:
            assert (await client.answer()).body == b"%d" % size
        await asyncio.gather(*sending)
        assert site.state.memory.buffered == 0


async def test_no_new_body_past_the_memory() -> None:
    app = Recorder()
    async with serving(app, max_body_memory=4 * MIB) as site:
        site.state.memory.buffered += 5 * MIB
        assert (await site.ask(HEAD + b"Content-Length: 3\r\n\r\nabc")).code == "SlowDown"
        assert (await site.ask(GET)).status == 200


async def test_a_client_that_leaves_ends_the_body() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        await client.send(HEAD + b"Content-Length: 1000000\r\n\r\n" + bytes(1000))
        await eventually_async(lambda: app.scopes)
        client.writer.transport.abort()
        await eventually_async(lambda: app.bodies)
        assert app.bodies == [None]
        await eventually_async(lambda: not site.state.running)
        assert site.state.memory.buffered == 0


# Expect: 100-continue
async def test_continue_comes_when_the_body_is_wanted() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        await client.send(HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert (await client.answer()).status == 100
        await client.send(b"abc")
        assert (await client.answer()).status == 200
        assert (await client.ask(GET)).status == 200
        assert app.bodies == [b"abc", b""]


async def test_no_continue_before_a_refusal_and_the_connection_ends() -> None:
    async with serving(refusing) as site:
        client = await site.connect()
        got = await client.ask(HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        assert (got.status, got.headers["connection"]) == (403, "close")
        assert await client.rest() == b""


async def test_no_continue_for_a_body_that_came_anyway() -> None:
    async with serving(Recorder()) as site:
        client = await site.connect()
        got = await client.ask(HEAD + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc")
        assert got.status == 200


async def test_no_continue_for_http_1_0() -> None:
    async with serving(Recorder()) as site:
        client = await site.connect()
        await client.send(b"PUT /b HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        await client.send(b"abc")
        assert (await client.answer()).status == 200


# answers before the body
async def test_a_short_unread_body_is_drained_and_the_connection_goes_on() -> None:
    async with serving(refusing) as site:
        client = await site.connect()
        for _ in range(3):
            await client.send(HEAD + b"Content-Length: 60000\r\n\r\n")
            got = await client.answer()
            assert got.status == 403
            assert "connection" not in got.headers
            await client.send(bytes(60000))
        assert (await client.ask(GET)).status == 403


async def test_a_long_unread_body_ends_the_connection_and_the_answer_is_read() -> None:
    """Without lingering the client's next write would meet a reset, which destroys the answer before it is read."""
    async with serving(refusing) as site:
        client = await site.connect()
        client.writer.write(HEAD + b"Content-Length: 3000000\r\n\r\n")
        for _ in range(30):
            client.writer.write(bytes(100_000))
            await asyncio.sleep(0.001)
        await client.writer.drain()
        got = await client.answer()
        assert (got.status, got.body, got.headers["connection"]) == (403, b"denied", "close")
        assert await client.rest() == b""


async def test_lingering_is_bounded() -> None:
    async with serving(refusing) as site:
        client = await site.connect()
        got = await client.ask(HEAD + b"Content-Length: 1000000000000\r\n\r\n")
        assert got.status == 403
        client.writer.write(bytes(64_000_000))
        await client.lost()
        await eventually_async(lambda: not site.state.connections)


# answers
async def test_an_answer_of_unknown_length_is_chunked() -> None:
    async def streaming(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for piece in (b"a" * 10, b"", b"b" * 100_000):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async with serving(streaming) as site:
        client = await site.connect()
        for _ in range(2):
            got = await client.ask(GET)
            assert got.headers["transfer-encoding"] == "chunked"
            assert got.body == b"a" * 10 + b"b" * 100_000
        old = await site.connect()
        await old.send(b"GET / HTTP/1.0\r\n\r\n")
        assert "transfer-encoding" not in (await old.head()).headers
        assert await old.rest() == b"a" * 10 + b"b" * 100_000


async def test_answers_without_a_body() -> None:
    async def empty(scope: Any, receive: Any, send: Any) -> None:
        status = int(scope["query_string"])
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-length", b"5")]})
        await send({"type": "http.response.body", "body": b"hello"})

    async with serving(empty) as site:
        client = await site.connect()
        for raw in (b"HEAD /?200", b"GET /?304", b"GET /?204"):
            await client.send(raw + b" HTTP/1.1\r\nHost: h\r\n\r\n")
            assert (await client.answer("HEAD")).status == int(raw[-3:])
        assert (await client.ask(b"GET /?200 HTTP/1.1\r\nHost: h\r\n\r\n")).body == b"hello"


async def test_default_headers() -> None:
    async with serving(Recorder()) as site:
        got = await site.ask(GET)
        assert got.headers["server"] == "Sluice"
        assert got.headers["date"].endswith(" GMT")


@pytest.mark.parametrize(
    "field", [(b"x-a", b"1\r\nset-cookie: evil"), (b"x-a\r\nb", b"1"), (b"x", b"a\0b"), (b"x", b"\n")]
)
async def test_no_header_can_hold_a_line_end(field: tuple[bytes, bytes]) -> None:
    async def splitting(scope: Any, receive: Any, send: Any) -> None:
        await answer(send, b"ok", headers=[field])

    async with serving(splitting) as site:
        got = await site.ask(GET)
        assert (got.status, got.code) == (500, "InternalError")
        assert "set-cookie" not in got.headers


# applications that fail
async def test_an_exception_before_the_answer() -> None:
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("secret detail")

    async with serving(failing) as site:
        client = await site.connect()
        got = await client.ask(GET)
        assert (got.status, got.code) == (500, "InternalError")
        assert b"secret" not in got.body
        assert await client.rest() == b""


@pytest.mark.parametrize("kind", ["raises", "returns", "short", "long"])
async def test_a_broken_answer_is_cut_off(kind: str) -> None:
    async def failing(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"10")]})
        await send({"type": "http.response.body", "body": b"abc", "more_body": True})
        if kind == "raises":
            raise RuntimeError
        if kind == "short":
            await send({"type": "http.response.body", "body": b"d"})
        if kind == "long":
            await send({"type": "http.response.body", "body": b"d" * 10})

    async with serving(failing) as site:
        client = await site.connect()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.ask(GET)


async def test_sending_to_a_client_that_left_raises() -> None:
    left: list[BaseException] = []

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        try:
            while True:
                await send({"type": "http.response.body", "body": bytes(100_000), "more_body": True})
                await asyncio.sleep(0)
        except OSError as error:
            left.append(error)
            raise

    async with serving(endless) as site:
        client = await site.connect()
        await client.send(GET)
        await client.reader.read(1000)
        client.writer.transport.abort()
        await eventually_async(lambda: left)


async def test_a_client_that_has_sent_all_may_close_its_side() -> None:
    async def late(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.05)
        await answer(send, b"late")

    async with serving(late) as site:
        client = await site.connect()
        await client.send(GET)
        client.writer.write_eof()
        assert (await client.answer()).body == b"late"
        assert await client.rest() == b""


async def limited(scope: Any, receive: Any, send: Any) -> None:
    """Needs a task, as applications of ASGI may."""
    async with asyncio.timeout(10):
        body = await read_body(receive)
    await answer(send, body or b"")


async def test_an_application_runs_in_a_task() -> None:
    async with serving(limited) as site:
        got = await site.ask(HEAD + b"Content-Length: 4\r\n\r\nbody")
    assert (got.status, got.body) == (200, b"body")


class Holding:
    """A responder that notes the bodies that it is given, and what the server holds of them."""

    def __init__(self) -> None:
        self.seen: list[tuple[bytes | None, list[bytes | bytearray]]] = []

    async def respond(self, request: S3Request) -> Response:
        receive: Any = request.receive
        self.seen.append((request.whole_body, list(receive.__self__.chunks)))
        return Response(204)

    def record(self, request: S3Request, response: Response | None, sent: int) -> None:
        pass


async def test_a_whole_body_is_held_once() -> None:
    pieces = [b"%d" % number * 2000 for number in range(8)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    app = Holding()
    async with serving(app) as site:
        got = await site.ask(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n")
        assert got.status == 204
        ((whole, held),) = app.seen
        assert whole == b"".join(pieces)
        assert len(held) == 1
        assert held[0] is whole
        await eventually_async(lambda: not site.state.memory.buffered)


async def test_an_idle_connection_holds_no_body() -> None:
    async with serving(Holding()) as site:
        client = await site.connect()
        assert (await client.ask(HEAD + b"Content-Length: 1000\r\n\r\n" + b"x" * 1000)).status == 204
        (connection,) = site.state.connections
        last = connection.parsed
        assert last is not None
        await eventually_async(lambda: not site.state.running)
        assert last.request.whole_body is None
