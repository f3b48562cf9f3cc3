"""Malformed and ambiguous requests: refused in S3's words, and never shown to the application."""

from __future__ import annotations

import asyncio

import pytest

from tests.unit.server.tools import Recorder, serving

HOST = b"Host: h\r\n"
PUT = b"PUT /b/k HTTP/1.1\r\n" + HOST
GET = b"GET /b/k HTTP/1.1\r\n" + HOST
CHUNKED = PUT + b"Transfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"

REFUSED = {
    "length and chunked": (PUT + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "BadRequest"),
    "chunked and length": (PUT + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", "BadRequest"),
    "two lengths": (PUT + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\naaaaa", "BadRequest"),
    "same length twice": (PUT + b"Content-Length: 4\r\nContent-Length: 4\r\n\r\naaaa", "BadRequest"),
    "length +5": (PUT + b"Content-Length: +5\r\n\r\naaaaa", "BadRequest"),
    "length -1": (PUT + b"Content-Length: -1\r\n\r\n", "BadRequest"),
    "length 5,5": (PUT + b"Content-Length: 5,5\r\n\r\naaaaa", "BadRequest"),
    "length 0x5": (PUT + b"Content-Length: 0x5\r\n\r\naaaaa", "BadRequest"),
    "length 5 5": (PUT + b"Content-Length: 5 5\r\n\r\naaaaa", "BadRequest"),
    "length 2**80": (PUT + b"Content-Length: 1208925819614629174706176\r\n\r\n", "BadRequest"),
    "length empty": (PUT + b"Content-Length: \r\n\r\n", "BadRequest"),
    "xchunked": (PUT + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", "BadRequest"),
    "chunked, identity": (PUT + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", "BadRequest"),
    "identity": (PUT + b"Transfer-Encoding: identity\r\n\r\n", "BadRequest"),
    "gzip, chunked": (PUT + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "BadRequest"),
    "chunked twice": (PUT + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "BadRequest"),
    "chunked in 1.0": (b"PUT /b HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "BadRequest"),
    "folded line": (GET + b"X: a\r\n b\r\n\r\n", "BadRequest"),
    "folded with tab": (GET + b"X: a\r\n\tb\r\n\r\n", "BadRequest"),
    "bare LF": (b"GET /b HTTP/1.1\nHost: h\n\n", "BadRequest"),
    "bare LF after a field": (b"GET /b HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", "BadRequest"),
    "bare CR": (GET + b"X: a\rY: b\r\n\r\n", "BadRequest"),
    "NUL in a value": (GET + b"X: a\0b\r\n\r\n", "BadRequest"),
    "NUL in a name": (GET + b"X\0: ab\r\n\r\n", "BadRequest"),
    "control in a value": (GET + b"X: a\x01b\r\n\r\n", "BadRequest"),
    "space before the colon": (GET + b"X : ab\r\n\r\n", "BadRequest"),
    "space before the first name": (b"GET /b HTTP/1.1\r\n Host: h\r\n\r\n", "BadRequest"),
    "empty name": (GET + b": ab\r\n\r\n", "BadRequest"),
    "no host": (b"GET /b HTTP/1.1\r\n\r\n", "BadRequest"),
    "two hosts": (GET + b"Host: other\r\n\r\n", "BadRequest"),
    "two hosts in 1.0": (b"GET /b HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", "BadRequest"),
    "absolute target": (b"GET http://evil/b HTTP/1.1\r\n" + HOST + b"\r\n", "InvalidURI"),
    "@ target": (b"GET @evil HTTP/1.1\r\n" + HOST + b"\r\n", "InvalidURI"),
    "* target": (b"OPTIONS * HTTP/1.1\r\n" + HOST + b"\r\n", "InvalidURI"),
    "target with fragment": (b"GET /b#x HTTP/1.1\r\n" + HOST + b"\r\n", "InvalidURI"),
    "target not ASCII": (b"GET /b/\xc3\xa9 HTTP/1.1\r\n" + HOST + b"\r\n", "InvalidURI"),
    "target with NUL": (b"GET /b\0 HTTP/1.1\r\n" + HOST + b"\r\n", "InvalidURI"),
    "target with tab": (b"GET /b\tx HTTP/1.1\r\n" + HOST + b"\r\n", "InvalidURI"),
    "target with space": (b"GET /b x HTTP/1.1\r\n" + HOST + b"\r\n", "BadRequest"),
    "target of 100 KB": (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", "InvalidURI"),
    "connect": (b"CONNECT h:80 HTTP/1.1\r\n" + HOST + b"\r\n", "InvalidURI"),
    "method of RTSP": (b"DESCRIBE /b RTSP/1.0\r\n" + HOST + b"\r\n", "MethodNotAllowed"),
    "method of ICE": (b"SOURCE /b HTTP/1.1\r\n" + HOST + b"\r\n", "MethodNotAllowed"),
    "no method": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "BadRequest"),
    "HTTP/0.9": (b"GET /b\r\n\r\n", "BadRequest"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "BadRequest"),
    "HTTP/2.0 head": (b"GET /b HTTP/2.0\r\n" + HOST + b"\r\n", "BadRequest"),
    "64 KiB of header": (GET + b"X: " + b"a" * 66_000 + b"\r\n\r\n", "RequestHeaderSectionTooLarge"),
    "64 KiB in many fields": (
        GET + b"".join(b"X-%d: %b\r\n" % (n, b"a" * 1000) for n in range(70)) + b"\r\n",
        "RequestHeaderSectionTooLarge",
    ),
    "10,000 fields": (GET + b"X: a\r\n" * 10_000 + b"\r\n", "RequestHeaderSectionTooLarge"),
}

BROKEN_BODIES = {
    "size with LF": b"5\naaaaa\r\n0\r\n\r\n",
    "size 0x5": b"0x5\r\naaaaa\r\n0\r\n\r\n",
    "size with space": b"5 \r\naaaaa\r\n0\r\n\r\n",
    "size -5": b"-5\r\naaaaa\r\n0\r\n\r\n",
    "size 2**68": b"fffffffffffffffff\r\naaaaa\r\n0\r\n\r\n",
    "no CRLF after data": b"5\r\naaaaaXX0\r\n\r\n",
    "LF after data": b"5\r\naaaaa\n0\r\n\r\n",
    "LF in an extension": b"5;a\nb\r\naaaaa\r\n0\r\n\r\n",
    "trailer without colon": b"5\r\naaaaa\r\n0\r\nX-T 1\r\n\r\n",
    "length in the trailer": b"5\r\naaaaa\r\n0\r\nContent-Length: 9\r\n\r\n",
}


WAYS = [
    (name, pieces)
    for name, (raw, _) in REFUSED.items()
    for pieces in ("whole", "halves", "bytes")
    if pieces != "bytes" or len(raw) < 1000
]


@pytest.mark.parametrize(("name", "pieces"), WAYS)
async def test_refused_head(name: str, pieces: str) -> None:
    raw, code = REFUSED[name]
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        if pieces == "bytes":
            for at in range(len(raw)):
                client.writer.write(raw[at : at + 1])
                await asyncio.sleep(0)
        else:
            half = len(raw) if pieces == "whole" else len(raw) // 2
            await client.send(raw[:half])
            await asyncio.sleep(0.01)
            await client.send(raw[half:])
        answer = await client.answer()
        assert (answer.code, answer.status) == (code, 405 if code == "MethodNotAllowed" else 400)
        assert answer.headers["content-type"] == "application/xml"
        assert answer.headers["connection"] == "close"
        assert answer.headers["x-amz-request-id"]
        assert await client.rest() == b""
        assert app.scopes == []


@pytest.mark.parametrize("name", BROKEN_BODIES)
async def test_broken_chunks_end_the_request_and_the_connection(name: str) -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        answer = await client.ask(CHUNKED + BROKEN_BODIES[name] + NEXT)
        assert (answer.status, answer.code) == (400, "BadRequest")
        assert await client.rest() == b""
        await asyncio.sleep(0)
        assert [body for body in app.bodies if body is not None] == [], "the application must not get a whole body"
        assert all(scope["raw_path"] == b"/b/k" for scope in app.scopes)


async def test_trailers_are_dropped() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        answer = await client.ask(
            CHUNKED + b"5;ext=1\r\naaaaa\r\n0\r\nAuthorization: evil\r\nX-Amz-Acl: private\r\n\r\n"
        )
        assert answer.status == 200
        assert app.bodies == [b"aaaaa"]
        assert {name for name, _ in app.scopes[0]["headers"]} == {b"host", b"transfer-encoding"}


async def test_a_chunk_extension_without_end_is_refused() -> None:
    async with serving(Recorder()) as site:
        client = await site.connect()
        client.writer.write(CHUNKED + b"5;" + b"x" * 1_000_000 + b"\r\naaaaa\r\n0\r\n\r\n")
        assert (await client.answer()).code == "BadRequest"


async def test_trailers_without_end_are_refused() -> None:
    async with serving(Recorder()) as site:
        client = await site.connect()
        client.writer.write(CHUNKED + b"0\r\n" + b"X-T: 1\r\n" * 200_000)
        assert (await client.answer()).code == "BadRequest"


@pytest.mark.parametrize(
    "target",
    [
        b"/",
        b"//x//..//.?a?b=%2F&&c",
        b"/b/%2e%2e/%00%zz",
        b"/@evil",
        b"/b/k+*'()!~;:=,$&",
        b"/b/k?",
        b'/b/"<>\\^`{|}',
        b"/http://evil/",
    ],
)
async def test_the_target_arrives_byte_for_byte(target: bytes) -> None:
    app = Recorder()
    async with serving(app) as site:
        assert (await site.ask(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")).status == 200
        path, _, query = target.partition(b"?")
        assert app.scopes[0]["raw_path"] == path
        assert app.scopes[0]["query_string"] == query


async def test_values_lose_outer_space_only() -> None:
    app = Recorder()
    async with serving(app) as site:
        await site.ask(GET + b"X-A:  a  b \t \r\nX-B: \xff\xe9\r\nX-C:\r\n\r\n")
        assert app.scopes[0]["headers"][1:] == [(b"x-a", b"a  b"), (b"x-b", b"\xff\xe9"), (b"x-c", b"")]


async def test_http_1_0_is_answered_and_closed() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        answer = await client.ask(b"GET /b HTTP/1.0\r\n\r\n")
        assert (answer.status, answer.body, answer.headers["connection"]) == (200, b"ok", "close")
        assert await client.rest() == b""
        assert app.scopes[0]["http_version"] == "1.0"


async def test_an_upgrade_is_not_taken_and_the_connection_goes_on() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        first = await client.ask(GET + b"Connection: upgrade\r\nUpgrade: h2c\r\n\r\n" + GET + b"\r\n")
        assert (first.status, (await client.answer()).status) == (200, 200)
        assert (await client.ask(GET + b"\r\n")).status == 200
        assert len(app.scopes) == 3


@pytest.mark.parametrize("size", [3, 300_000, 3_000_000])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("piece", [1, 7, 100_000])
async def test_a_body_is_taken_and_its_upgrade_is_not(size: int, chunked: bool, piece: int) -> None:
    """Java's HttpClient asks for h2c with every first request to a server without TLS, uploads too."""
    if size > 3 and piece < 100_000:
        pytest.skip("as good as the short body")
    body = bytes(range(256)) * (size // 256) + b"end"
    head = PUT + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n"
    if chunked:
        raw = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        raw = head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    raw += GET + b"\r\n"
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        for at in range(0, len(raw), piece):
            client.writer.write(raw[at : at + piece])
            await asyncio.sleep(0)
        assert [(await client.answer()).status for _ in range(2)] == [200, 200]
        assert (await client.ask(GET + b"\r\n")).status == 200
        assert (app.bodies[0], len(app.scopes)) == (body, 3)


async def test_pipelined_requests_are_answered_in_order() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        requests = [b"PUT /%d HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc" % number for number in range(20)]
        await client.send(b"".join(requests))
        for _ in requests:
            assert (await client.answer()).status == 200
        assert [scope["raw_path"] for scope in app.scopes] == [b"/%d" % number for number in range(20)]
        assert app.bodies == [b"abc"] * 20
        assert (await client.ask(GET + b"\r\n")).status == 200, "reading goes on behind the pipeline"


async def test_a_bad_request_behind_good_ones_is_answered_in_its_turn() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        await client.send(GET + b"\r\n" + GET + b"\r\n" + b"GET /b HTTP/1.1\r\n\r\n" + NEXT)
        answers = [await client.answer() for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 400]
        assert await client.rest() == b""
        assert len(app.scopes) == 2


async def test_nothing_is_taken_behind_connection_close() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        answer = await client.ask(GET + b"Connection: close\r\n\r\n" + NEXT)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert await client.rest() == b""
        assert len(app.scopes) == 1


async def test_a_flood_of_pipelined_requests_is_refused() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        await client.send((GET + b"\r\n") * 1000)
        statuses = []
        while not statuses or statuses[-1] == 200:
            statuses.append((await client.answer()).status)
        assert statuses[-1] == 503
        assert len(statuses) < 100
        assert await client.rest() == b""


async def test_a_body_shorter_than_its_length_is_no_body() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        await client.send(PUT + b"Content-Length: 10\r\n\r\nabc")
        client.writer.write_eof()
        await client.lost()
        await asyncio.sleep(0.01)
        assert app.bodies == [None]


async def test_bytes_behind_the_length_are_another_request() -> None:
    app = Recorder()
    async with serving(app) as site:
        client = await site.connect()
        assert (await client.ask(PUT + b"Content-Length: 3\r\n\r\nabcdef\r\n\r\n")).status == 200
        assert (await client.answer()).status == 400
        assert app.bodies == [b"abc"]
