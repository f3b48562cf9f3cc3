"""Answers that are odd but right, and some that are wrong: the load generator says what was."""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.clients.http import Connection, ConnectionFailed
from sluice_s3.loadtests.clients.s3 import S3Client
from sluice_s3.loadtests.common.tls import Certificate, create_certificate
from tests.tools.loadtests.answering import OK, answering, saying

KEYS = ("access", "secret-key")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LARGE = 50_000_000
"""Bytes of a body that no socket buffer holds."""


@contextmanager
def connected(url: str, timeout: float = 5) -> Iterator[Connection]:
    connection = Connection(Endpoint(url, *KEYS, timeout=timeout))
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def unread(answer: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """A server that reads the head of one request, and of its body only what came with it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        plain, _ = listener.accept()
        with plain if tls is None else tls.wrap_socket(plain, server_side=True) as wire:
            wire.recv(1000)
            answer(wire)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()
        thread.join(10)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return create_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["plain", "tls"])
def tls(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext | None:
    """The server's side of TLS, with a certificate that clients trust; None for plain HTTP."""
    if request.param == "plain":
        return None
    certificate: Certificate = request.getfixturevalue("certificate")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.chain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    return context


@pytest.mark.parametrize("cut", range(1, len(b"5\r\nabcde\r\n3;a=b\r\nfgh\r\n0\r\nx-sum: AAAA\r\n\r\n")))
def test_chunks_may_be_cut_anywhere(cut: int) -> None:
    body = b"5\r\nabcde\r\n3;a=b\r\nfgh\r\n0\r\nx-sum: AAAA\r\n\r\n"

    def answer(wire: socket.socket, _: bytes) -> None:
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.sendall(CHUNKED + body[:cut])
        time.sleep(0.002)
        wire.sendall(body[cut:])

    with answering(answer, OK) as (url, seen), connected(url) as connection:
        found = connection.ask("GET", "/b/x", keep=True)
        assert (found.body, found.received) == (b"abcdefgh", 8)
        assert connection.ask("GET", "/b/y").status == 200
        assert len(seen) == 2


def test_chunks_and_a_length_are_an_error() -> None:
    """RFC 9112, 6.3: who forwards it may take the one for the other."""
    said = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n0\r\n\r\n")
    with answering(said) as (url, _), connected(url) as connection, pytest.raises(ConnectionFailed, match="not HTTP"):
        connection.ask("GET", "/b/x", keep=True)


@pytest.mark.parametrize("interim", [b"100 Continue", b"102 Processing", b"103 Early Hints\r\nLink: </x>"])
def test_the_answer_is_what_follows_an_interim_one(interim: bytes) -> None:
    def answer(wire: socket.socket, _: bytes) -> None:
        wire.sendall(b"HTTP/1.1 %s\r\n\r\nHTTP/1.1 %s\r\n\r\n" % (interim, interim))
        time.sleep(0.2)
        wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")

    with answering(answer, OK) as (url, _), connected(url) as connection:
        found = connection.ask("GET", "/b/x", keep=True)
        assert (found.status, found.body) == (200, b"abc")
        assert found.ttfb >= 0.2
        assert connection.ask("GET", "/b/x").status == 200


def test_a_body_may_end_with_the_connection() -> None:
    said = saying(b"HTTP/1.1 200 OK\r\nContent-Type: x\r\n\r\n" + b"a" * 100_000, close=True)
    old = saying(b"HTTP/1.0 200 OK\r\n\r\nabc", close=True)
    with answering(said, old, OK) as (url, seen), connected(url) as connection:
        assert connection.ask("GET", "/b/x").received == 100_000
        found = connection.ask("GET", "/b/x", keep=True)
        assert (found.body, found.retries) == (b"abc", 0)
        assert connection.ask("GET", "/b/x").retries == 0
        assert len(seen) == 3


def test_http_1_0_keeps_a_connection_only_where_it_says_so() -> None:
    kept = saying(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n")
    closed = saying(b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", close=True)
    with answering(kept, closed, OK) as (url, _), connected(url) as connection:
        assert [connection.ask("GET", "/b/x").retries for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("status", [b"200 OK", b"404 Not Found"])
def test_head_has_a_length_but_no_body(status: bytes) -> None:
    said = saying(b"HTTP/1.1 %s\r\nContent-Length: 1000\r\n\r\n" % status)
    with answering(said, OK) as (url, seen), connected(url, timeout=2) as connection:
        assert connection.ask("HEAD", "/b/x").status == int(status[:3])
        assert connection.ask("GET", "/b/x").status == 200
        assert len(seen) == 2


def test_no_status_304_has_a_body() -> None:
    said = saying(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n")
    with answering(said, OK) as (url, _), connected(url, timeout=2) as connection:
        assert [connection.ask("GET", "/b/x").status for _ in range(2)] == [304, 200]


def test_more_than_was_announced_is_not_the_next_answer() -> None:
    said = saying(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
    with answering(said, OK) as (url, _), connected(url) as connection:
        assert [connection.ask("GET", "/b/x").status for _ in range(2)] == [200, 200]


def test_a_refusal_is_read_though_nobody_reads_the_body(tls: ssl.SSLContext | None) -> None:
    """The endpoint answers, keeps the connection open and takes no more: a sender that only sends would wait."""
    over = threading.Event()
    body = b"<Error><Code>EntityTooLarge</Code><Message>No.</Message></Error>"

    def answer(wire: socket.socket) -> None:
        wire.sendall(b"HTTP/1.1 400 Bad\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        over.wait(20)

    with unread(answer, tls) as url:
        client = S3Client(Endpoint(url, *KEYS, timeout=20), "bucket")
        done = client.put("x", LARGE)
        over.set()
        client.close()
    assert (done.status, done.error, done.bytes) == (400, "EntityTooLarge: No.", 0)
    assert done.total < 10


def test_an_interim_answer_ends_no_body(tls: ssl.SSLContext | None) -> None:
    """100 comes without being wanted, then the endpoint is busy for longer than a sender looks for an early answer."""

    def answer(wire: socket.socket) -> None:
        wire.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.7)
        left = LARGE
        wire.settimeout(0.5)
        while left > 0:
            try:
                left -= len(wire.recv(1 << 20))
            except TimeoutError:
                break
        wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with unread(answer, tls) as url:
        client = S3Client(Endpoint(url, *KEYS, timeout=20), "bucket")
        done = client.put("x", LARGE)
        client.close()
    assert (done.status, done.error, done.bytes) == (200, "", LARGE)


def test_success_before_the_body_was_sent_is_none(tls: ssl.SSLContext | None) -> None:
    over = threading.Event()

    def answer(wire: socket.socket) -> None:
        wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        over.wait(20)

    with unread(answer, tls) as url:
        client = S3Client(Endpoint(url, *KEYS, timeout=20), "bucket")
        done = client.put("x", LARGE)
        over.set()
        client.close()
    assert re.search("came before the body was sent", done.error)


def test_a_body_that_nobody_takes_is_an_error_after_the_patience(tls: ssl.SSLContext | None) -> None:
    over = threading.Event()
    with unread(lambda _: bool(over.wait(20)), tls) as url:  # type: ignore[arg-type, return-value]
        client = S3Client(Endpoint(url, *KEYS, timeout=0.5), "bucket")
        done = client.put("x", LARGE)
        over.set()
        client.close()
    assert (done.status, done.retries) == (0, 0)
    assert "timed out" in done.error


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"a" * 500,
        CHUNKED + b"400\r\n" + b"a" * 500,
        CHUNKED + b"3\r\nabc\r\n",
        CHUNKED + b"3\r\nabc\r\n0\r\nx-sum: AA",
    ],
)
def test_a_connection_closed_in_a_body_is_an_error_and_asks_no_second_time(said: bytes) -> None:
    with answering(OK, saying(said, close=True), OK) as (url, seen), connected(url) as connection:
        connection.ask("GET", "/b/x")
        with pytest.raises(ConnectionFailed, match="cut short") as found:
            connection.ask("GET", "/b/x")
        assert (found.value.answer.retries, found.value.answer.status) == (0, 200)
        assert connection.ask("GET", "/b/x").status == 200
        assert len(seen) == 3


def test_an_error_that_is_long_is_kept_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.loadtests.clients.http.MOST_KEPT_BYTES", 1000)
    with (
        answering(saying(b"HTTP/1.1 500 No\r\nContent-Length: 5000000\r\n\r\n" + b"a" * 5_000_000), OK) as (url, _),
        connected(url) as connection,
    ):
        found = connection.ask("GET", "/b/x")
        assert (found.received, len(found.body)) == (5_000_000, 1000)
        assert connection.ask("GET", "/b/x").status == 200
