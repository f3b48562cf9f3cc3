"""The client against a server that answers what a test tells it to, byte by byte."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sluice_s3.loadtests.common.tls import create_certificate
from sluice_s3.loadtests.cpu.client import Client, Request

HEAD = b"GET / HTTP/1.1\r\n\r\n"
LONG = 30.0


@contextmanager
def server(
    *answers: list[bytes], body: int = 0, close: bool = False, tls: ssl.SSLContext | None = None
) -> Iterator[tuple[str, int]]:
    """Answers request after request with the pieces of an answer each; a request has a body of `body` bytes."""
    listener = socket.create_server(("127.0.0.1", 0))
    left = list(answers)

    def serve() -> None:
        while left:
            plain, _ = listener.accept()
            with plain if tls is None else tls.wrap_socket(plain, server_side=True) as connection:
                while left and _read(connection, len(HEAD) + body):
                    for piece in left.pop(0):
                        connection.sendall(piece)
                        threading.Event().wait(0.01)
                    if close:
                        break

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        thread.join(LONG)
        listener.close()
        assert not thread.is_alive()


def _read(connection: socket.socket, count: int) -> bool:
    while count:
        data = connection.recv(count)
        if not data:
            return False
        count -= len(data)
    return True


@contextmanager
def client(address: tuple[str, int], connections: int = 1, tls: ssl.SSLContext | None = None) -> Iterator[Client]:
    made = Client(address, connections, tls=tls)
    try:
        yield made
    finally:
        made.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        [OK + b"hello"],
        [OK, b"hel", b"lo"],
        [OK[:20], OK[20:37], OK[37:] + b"h", b"ello"],
        [b"HTTP/1.1 200 OK\r\ncontent-length:5\r\nX: y\r\n\r\nhello"],
    ],
)
def test_a_body_of_known_length(answer: list[bytes]) -> None:
    with server(answer, answer, answer) as address, client(address) as made:
        outcome = made.run([Request(HEAD, size=5)] * 3, LONG)
    assert (len(outcome.latencies), outcome.moved, dict(outcome.errors)) == (3, 15, {})


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "answer",
    [
        [CHUNKED + b"3\r\nabc\r\n0\r\n\r\n"],
        [CHUNKED, b"3\r\nabc\r\n", b"0\r\n\r\n"],
        [CHUNKED + b"3\r\nabc\r", b"\n", b"0\r", b"\n\r\n"],
        [CHUNKED + b"0\r\n\r\n"],
    ],
)
def test_a_chunked_body(answer: list[bytes]) -> None:
    with server(answer, [OK + b"hello"]) as address, client(address) as made:
        outcome = made.run([Request(HEAD), Request(HEAD, size=5)], LONG)
    assert (len(outcome.latencies), dict(outcome.errors)) == (2, {})


def test_head_and_204_have_no_body() -> None:
    with server([OK], [b"HTTP/1.1 204 No Content\r\n\r\n"], [OK + b"hello"]) as address, client(address) as made:
        outcome = made.run([Request(HEAD, size=0, bodiless=True), Request(HEAD), Request(HEAD, size=5)], LONG)
    assert len(outcome.latencies) == 3


def test_errors_are_counted_apart() -> None:
    refused = b"HTTP/1.1 503 Slow\r\nContent-Length: 2\r\n\r\nno"
    with server([refused], [OK + b"hello"], [OK + b"hello"]) as address, client(address) as made:
        outcome = made.run([Request(HEAD, size=5), Request(HEAD, size=6), Request(HEAD, size=5)], LONG)
    assert len(outcome.latencies) == 1
    assert outcome.errors == {"503": 1, "wrong length": 1}


def test_a_large_body_goes_up_and_down() -> None:
    size = 8 << 20
    with (
        server([b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size, bytes(size)], body=size) as address,
        client(address) as made,
    ):
        outcome = made.run([Request(HEAD, memoryview(bytes(size)), size=size)], LONG)
    assert outcome.moved == 2 * size
    assert not outcome.errors


def test_a_lost_connection_is_an_error_and_replaced() -> None:
    with server([b"HTTP/1.1 200 OK\r\nContent-Le"], [OK + b"hello"], close=True) as address, client(address) as made:
        outcome = made.run([Request(HEAD, size=5)] * 2, LONG)
    assert outcome.errors == {"connection lost": 1}
    assert len(outcome.latencies) == 1


def test_a_server_that_closes_politely_loses_nothing() -> None:
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
    with server([closing], [closing], [closing], close=True) as address, client(address) as made:
        outcome = made.run([Request(HEAD, size=5)] * 3, LONG)
    assert (len(outcome.latencies), dict(outcome.errors)) == (3, {})


def test_time_over_takes_no_more() -> None:
    requests = iter([Request(HEAD, size=5)] * 3)
    with server([OK + b"hello"], [OK + b"hello"]) as address, client(address) as made:
        assert made.run(requests, 0.0).requests == 0
        outcome = made.run(list(requests)[:2], LONG)
    assert outcome.requests == 2


def test_heads_are_kept_by_number() -> None:
    tagged = b'HTTP/1.1 200 OK\r\nETag: "AbC"\r\nContent-Length: 0\r\n\r\n'
    with server([tagged], [tagged]) as address, client(address) as made:
        outcome = made.run([Request(HEAD, number=4), Request(HEAD, number=9)], LONG, keep_heads=True)
    assert sorted(outcome.heads) == [4, 9]
    assert b'ETag: "AbC"' in outcome.heads[4]


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


@contextmanager
def waiting_server(*steps: tuple[int, bytes]) -> Iterator[tuple[str, int]]:
    """Takes a number of bytes and answers, step after step, on one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                for count, answer in steps:
                    assert _read(connection, count)
                    connection.sendall(answer)
                left.append(connection.recv(100))

        left: list[bytes] = []
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()
        thread.join(LONG)
        assert not thread.is_alive()
        assert left == [b""]


@pytest.mark.parametrize("answers", [(CONTINUE, OK + b"hello"), (CONTINUE, CONTINUE + OK + b"hello")])
def test_a_body_waits_for_100_continue(answers: tuple[bytes, bytes]) -> None:
    request = Request(HEAD, memoryview(b"x" * 1000), size=5, waits=True)
    steps = [(len(HEAD), answers[0]), (1000, answers[1])]
    with waiting_server(*steps, *steps) as address, client(address) as made:
        outcome = made.run([request] * 2, LONG)
    assert (len(outcome.latencies), dict(outcome.errors), outcome.moved) == (2, {}, 2010)


def test_a_body_that_is_refused_is_not_sent() -> None:
    refused = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    request = Request(HEAD, memoryview(b"x" * 1000), waits=True)
    with waiting_server((len(HEAD), refused)) as address, client(address) as made:
        outcome = made.run([request], LONG)
    assert outcome.errors == {"403": 1}


def test_100_continue_for_a_body_that_did_not_wait() -> None:
    request = Request(HEAD, memoryview(b"x" * 1000), size=5)
    with waiting_server((len(HEAD) + 1000, CONTINUE + OK + b"hello")) as address, client(address) as made:
        outcome = made.run([request], LONG)
    assert (len(outcome.latencies), dict(outcome.errors)) == (1, {})


def test_over_tls(tmp_path: Path) -> None:
    certificate = create_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    size = 3 << 20
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    answers = [[head + bytes(size)], [head, bytes(size - 5), b"hello"]]
    with (
        server(*answers, body=size, tls=context) as address,
        client(address, tls=certificate.client()) as made,
    ):
        outcome = made.run([Request(HEAD, memoryview(bytes(size)), size=size)] * 2, LONG)
    assert (len(outcome.latencies), outcome.moved, dict(outcome.errors)) == (2, 4 * size, {})
