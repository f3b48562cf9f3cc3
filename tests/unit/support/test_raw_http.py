"""The tests' HTTP client against a server that answers what a test tells it to, byte by byte."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.raw_http import Answer, AsyncConnection, Client, ConnectionEnded, Request, make_request

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
ERROR = b'<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>'
GET = Request("GET", "/k")


@contextmanager
def answering(*connections: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that sends each connection its bytes once a head came, and ends it; and the heads."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for data in connections:
                connection, _ = listener.accept()
                with connection:
                    seen.append(connection.recv(1 << 16))
                    connection.sendall(data)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
        thread.join(60)


def test_bodies_of_known_length_and_in_chunks() -> None:
    with answering(OK + CHUNKED + OK) as (url, seen), Client(url) as client:
        assert [client.ask(GET).body for _ in range(3)] == [b"hello", b"abcde", b"hello"]
        assert seen[0].startswith(b"GET /k HTTP/1.1\r\nhost: " + client.host.encode() + b"\r\n\r\n")


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_answers_without_a_body(method: str, status: int) -> None:
    head = b"HTTP/1.1 %d x\r\ncontent-length: 5\r\n\r\n" % status
    with answering(head + OK) as (url, _), Client(url) as client:
        assert client.ask(Request(method, "/k")).status == status
        assert client.ask(GET).body == b"hello"


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\na: 1\r\nA: 2", b"HTTP/1.0 200 OK\r\na: 1", b"HTTP/1.1 200 OK\r\na"]
)
def test_a_head_that_is_no_good_fails(head: bytes) -> None:
    with answering(head + b"\r\n\r\n") as (url, _), Client(url) as client, pytest.raises(AssertionError):
        client.ask(GET)


def test_an_answer_that_ends_early_fails_and_shows_what_came() -> None:
    with answering(OK[:-2]) as (url, _), Client(url) as client, pytest.raises(ConnectionEnded) as ended:
        client.ask(GET)
    assert ended.value.partial == b"hel"


def test_a_connection_is_opened_again_only_after_an_answer_that_closes_it() -> None:
    closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
    with answering(closing, OK) as (url, seen), Client(url) as client:
        assert client.ask(GET).closes
        assert not client.is_open
        assert client.ask(GET).body == b"hello"
        assert len(seen) == 2
        with pytest.raises((ConnectionEnded, ConnectionResetError)):  # it came before the end, or after it
            client.ask(GET)


async def test_the_same_from_the_tests_own_loop() -> None:
    with answering(OK + CHUNKED + b"rest") as (url, _):
        host, _, port = url.removeprefix("http://").partition(":")
        client = AsyncConnection(*await asyncio.open_connection(host, int(port)))
        assert (await client.ask(GET.wire("h"))).body == b"hello"
        assert (await client.answer()).body == b"abcde"
        assert await client.rest() == b"rest"
        client.close()


def test_errors_are_read() -> None:
    assert Answer(503, {}, ERROR).code == "SlowDown"
    assert Answer(200, {}, b"no document").code == ""
    assert Answer(200, {"etag": '"a"'}).etag == "a"


def test_a_request_of_a_url() -> None:
    made = make_request("PUT", "http://host:1/b/k%20?x=1&y=", ("a", "b"), body=b"12", length=4)
    assert made.wire("other") == b"PUT /b/k%20?x=1&y= HTTP/1.1\r\nhost: host:1\r\na: b\r\ncontent-length: 4\r\n\r\n12"
