"""The scenarios' own client: what it signs, what it measures, and what it says of answers that are no good."""

from __future__ import annotations

import socket
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from sluice_s3.loadtests.clients import arrival
from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.clients.http import Connection, ConnectionFailed
from sluice_s3.loadtests.clients.s3 import S3Client
from sluice_s3.loadtests.payload import parse_size, parse_sizes, pieces
from tests.tools.loadtests.answering import OK, answering, saying

KEYS = ("access", "secret-key")
Make = Callable[[str], S3Client]


@pytest.fixture
def objects() -> Iterator[Callable[[str], S3Client]]:
    made: list[S3Client] = []

    def make(url: str) -> S3Client:
        made.append(S3Client(Endpoint(url, *KEYS, timeout=5), "bucket"))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("put", ("plain", 10)),
        ("put", ("a b/ü~*(1).txt", 100_000)),
        ("get", ("x//y", 0)),
        ("stat", ("+", )),
        ("delete", ("%2F", )),
        ("list", ("pre fix/", "pre fix/ü", 7)),
    ],
)  # fmt: skip
def test_signatures_are_those_of_botocore(objects: Make, verb: str, arguments: tuple[object, ...]) -> None:
    with answering(OK) as (url, seen):
        assert getattr(objects(url), verb)(*arguments).error == ""
    head = seen[0].partition(b"\r\n\r\n")[0].decode()
    first, *lines = head.split("\r\n")
    method, target, _ = first.split(" ")
    headers = dict(line.split(": ", 1) for line in lines)
    parts = urlsplit(target)
    request = AWSRequest(
        method=method,
        url=f"{url}{parts.path}",
        params=dict(parse_qsl(parts.query, keep_blank_values=True)),
        headers={"x-amz-content-sha256": "UNSIGNED-PAYLOAD"},
    )
    request.context["timestamp"] = headers["x-amz-date"]
    request.headers["X-Amz-Date"] = headers["x-amz-date"]
    oracle = SigV4Auth(Credentials(*KEYS), "s3", "us-east-1")
    canonical = "\n".join(
        (
            method,
            parts.path,
            oracle._canonical_query_string_params(dict(parse_qsl(parts.query, keep_blank_values=True))),
            f"host:{headers['Host']}",
            "x-amz-content-sha256:UNSIGNED-PAYLOAD",
            f"x-amz-date:{headers['x-amz-date']}",
            "",
            "host;x-amz-content-sha256;x-amz-date",
            "UNSIGNED-PAYLOAD",
        )
    )
    signature = oracle.signature(oracle.string_to_sign(request, canonical), request)
    assert headers["Authorization"].endswith(f"Signature={signature}")
    if verb != "list":
        assert unquote(parts.path) == f"/bucket/{arguments[0]}"


def test_a_body_is_sent_whole(objects: Make) -> None:
    with answering(OK, OK) as (url, seen):
        client = objects(url)
        small, large = client.put("s", 10), client.put("l", 3_000_000)
    assert [small.bytes, large.bytes] == [10, 3_000_000]
    assert [len(one.partition(b"\r\n\r\n")[2]) for one in seen] == [10, 3_000_000]


def test_first_byte_and_last_are_timed_apart(objects: Make) -> None:
    def slow(wire: socket.socket, _: bytes) -> None:
        wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\nServer-Timing: auth;dur=0.1, read;dur=2\r\n\r\n")
        time.sleep(0.2)
        wire.sendall(bytes(2_000_000))

    with answering(slow) as (url, _):
        done = objects(url).get("x", 2_000_000)
    assert done.error == ""
    assert done.bytes == 2_000_000
    assert done.ttfb is not None
    assert done.total - done.ttfb >= 0.2
    assert done.phases == "auth=0.1;read=2"


BUSY = 1.0
"""Seconds that whoever asked does something else while the answer is there."""


def asked_by_a_busy_one(url: str) -> tuple[float, float]:
    """Times of a second PUT whose answer lies there: Linux tells times from a moment after it is first asked."""

    def body() -> Iterator[memoryview]:
        yield memoryview(bytes(100_000))
        time.sleep(BUSY)

    connection = Connection(Endpoint(url, *KEYS))
    for _ in range(2):
        answer = connection.ask("PUT", "/bucket/key", body=body, size=100_000)
    connection.close()
    assert answer.status == 200
    return answer.ttfb, answer.total


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when bytes arrived")
def test_an_answer_that_lies_there_is_not_slow() -> None:
    with answering(OK, OK) as (url, _):
        ttfb, total = asked_by_a_busy_one(url)
    assert 0 < ttfb <= total < BUSY


def test_where_the_kernel_does_not_tell_it_is_when_it_was_taken_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival, "SO_TIMESTAMPNS_NEW", -1)
    with answering(OK, OK) as (url, _):
        ttfb, total = asked_by_a_busy_one(url)
    assert BUSY <= ttfb <= total


def test_a_wall_clock_that_jumps_makes_no_time_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 2**62)
    with answering(OK, OK) as (url, _):
        ttfb, total = asked_by_a_busy_one(url)
    assert 0 <= ttfb <= total < BUSY


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux stamps received bytes")
def test_a_process_that_is_stopped_between_two_clocks_shortens_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request's first look at the wall clock comes 50 ms after that at the other clock."""
    looks = 0

    def look() -> int:
        nonlocal looks
        looks += 1
        if looks % 2:
            time.sleep(0.05)
        return wall()

    def slow(wire: socket.socket, _: bytes) -> None:
        time.sleep(0.02)
        wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    wall = time.time_ns
    with answering(OK, slow) as (url, _):
        connection = Connection(Endpoint(url, *KEYS))
        connection.ask("GET", "/bucket/key")
        monkeypatch.setattr(time, "time_ns", look)
        answer = connection.ask("GET", "/bucket/key")
        connection.close()
    assert answer.total >= 0.02
    assert looks == 2


def test_an_answer_in_pieces_and_one_in_chunks() -> None:
    def trickle(wire: socket.socket, _: bytes) -> None:
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc":
            wire.sendall(bytes((byte,)))

    chunked = saying(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n"
    )
    with answering(trickle, chunked) as (url, _):
        wire = Connection(Endpoint(url, *KEYS, timeout=5))
        assert wire.ask("GET", "/b/x", keep=True).body == b"abc"
        assert wire.ask("GET", "/b/x", keep=True).body == b"abc0123456789"
        wire.close()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
MARKS = b"0123456789\r\n0\r\n\r\nabcdef"
"""Data that holds what the last chunk looks like."""


def in_two(first: bytes, second: bytes) -> Callable[[socket.socket, bytes], None]:
    def answer(wire: socket.socket, _: bytes) -> None:
        wire.sendall(first)
        time.sleep(0.1)
        wire.sendall(second)

    return answer


def test_chunks_with_trailers_and_with_data_that_looks_like_their_end(objects: Make) -> None:
    chunk = b"%x\r\n" % len(MARKS) + MARKS
    cut = chunk.index(b"abcdef")
    trailers = CHUNKED + b"Trailer: x-amz-checksum-crc32\r\n\r\n3\r\nabc\r\n0\r\nx-amz-checksum-crc32: AAAA\r\n\r\n"
    looks = in_two(CHUNKED + b"\r\n" + chunk[:cut], chunk[cut:] + b"\r\n0\r\n\r\n")
    with answering(saying(trailers), looks, looks, OK) as (url, seen):
        wire = Connection(Endpoint(url, *KEYS, timeout=2))
        assert wire.ask("GET", "/b/x", keep=True).body == b"abc"
        assert wire.ask("GET", "/b/x", keep=True).body == MARKS
        answer = wire.ask("GET", "/b/x")
        assert (answer.body, answer.received, answer.retries) == (b"", len(MARKS), 0)
        assert wire.ask("GET", "/b/x").status == 200
        wire.close()
    assert len(seen) == 4


def test_an_object_in_chunks_has_its_length(objects: Make) -> None:
    with answering(saying(CHUNKED + b"\r\n3\r\nabc\r\n0\r\n\r\n")) as (url, _):
        assert objects(url).get("x", 3).error == ""


def test_a_large_answer_in_chunks_is_taken_in_at_once() -> None:
    """Memory and time grow with the length, not with its square."""
    piece = bytes(1 << 16)
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for _ in range(320))
    with answering(saying(CHUNKED + b"\r\n" + chunks + b"0\r\n\r\n")) as (url, _):
        wire = Connection(Endpoint(url, *KEYS, timeout=5))
        tracemalloc.start()
        try:
            answer = wire.ask("GET", "/b/x")
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            wire.close()
    assert answer.received == 320 << 16
    assert most < 8 << 20


@pytest.mark.parametrize(
    "said", [b"no number\r\nabc", b"-1\r\nabc", b"3\r\nabcdefg", b"3\r\nabc\r\n0\r\nno trailer\r\n\r\n"]
)
def test_chunks_that_are_wrong_are_an_error(objects: Make, said: bytes) -> None:
    with answering(saying(CHUNKED + b"\r\n" + said, close=True)) as (url, _):
        assert objects(url).get("x", 3).error.startswith("no answer: the answer is not HTTP")


@pytest.mark.parametrize("body", [b"<Key>\xff\xfe</Key>", b"\xff"])
def test_a_listing_that_is_no_text_raises_nothing(body: bytes) -> None:
    listing = saying(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    error = saying(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n", close=True)
    with answering(OK, listing, *[error] * 20) as (url, _):
        client = S3Client(Endpoint(url, *KEYS, timeout=0.5), "bucket")
        assert client.sweep()
        client.close()


def test_an_error_says_what_s3_said(objects: Make) -> None:
    body = b"<Error><Code>AccessDenied</Code><Message>No.</Message></Error>"
    error = b"HTTP/1.1 403 Forbidden\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    with answering(saying(error), OK) as (url, _):
        client = objects(url)
        done = client.put("x", 5)
        assert (done.status, done.error, done.bytes) == (403, "AccessDenied: No.", 0)
        assert client.put("x", 5).error == ""


def test_an_endpoint_that_refuses_a_body_before_it_is_whole(objects: Make) -> None:
    # the listener of `answering` reads bodies whole, so one of our own
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        wire, _ = listener.accept()
        with wire:
            wire.recv(1000)
            wire.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            time.sleep(0.1)

    thread = threading.Thread(target=serve)
    thread.start()
    with listener:
        done = objects(f"http://127.0.0.1:{listener.getsockname()[1]}").put("x", 50_000_000)
        thread.join()
    assert done.error


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        b"no HTTP at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\na",
    ],
)
def test_an_answer_that_is_none(said: bytes) -> None:
    with answering(saying(said, close=True)) as (url, _), pytest.raises(ConnectionFailed):
        Connection(Endpoint(url, *KEYS, timeout=5)).ask("GET", "/b/x")


def test_a_wrong_length_is_an_error(objects: Make) -> None:
    with answering(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")) as (url, _):
        assert objects(url).get("x", 4).error.startswith("wrong length")


def test_a_connection_that_was_closed_while_idle_is_opened_again(objects: Make) -> None:
    with answering(saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", close=True), OK) as (url, seen):
        client = objects(url)
        first, second = client.stat("a"), client.stat("b")
    assert [first.error, second.error] == ["", ""]
    assert [first.retries, second.retries] == [0, 1]
    assert len(seen) == 2


def test_a_request_without_an_answer_is_not_sent_again() -> None:
    """It may be under way: repeated, a hang would look like one slow request."""
    over = threading.Event()

    def hang(_: socket.socket, __: bytes) -> None:
        over.wait(10)

    with answering(OK, hang, OK) as (url, seen):
        client = S3Client(Endpoint(url, *KEYS, timeout=0.3), "bucket")
        assert client.delete("a").error == ""
        lost = client.delete("b")
        over.set()
        client.close()
    assert (lost.status, lost.error, lost.retries) == (0, "no answer: timed out", 0)
    assert lost.total < 2
    assert len(seen) == 2


def test_nobody_there(objects: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    done = objects(f"http://127.0.0.1:{port}").stat("x")
    assert (done.status, done.ttfb) == (0, None)
    assert "refused" in done.error


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "127.0.0.1:9000", "http://host/path"])
def test_what_is_no_endpoint(url: str) -> None:
    with pytest.raises(ValueError, match="is not http"):
        Endpoint(url, *KEYS)


def test_sizes() -> None:
    assert parse_sizes("100KB,10MiB,4k,1 GB,7") == (100_000, 10 << 20, 4096, 10**9, 7)
    for wrong in ("", "x", "10XB", "-1"):
        with pytest.raises(ValueError, match="is no size"):
            parse_size(wrong)


def test_bodies_are_random_and_as_long_as_asked() -> None:
    assert [sum(map(len, pieces(size))) for size in (0, 1, 1 << 20, (1 << 20) + 1)] == [0, 1, 1 << 20, (1 << 20) + 1]
    assert b"".join(pieces(1000)) != b"".join(pieces(1000))
