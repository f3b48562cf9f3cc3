"""Group G: HTTP itself. Each request is signed well, so that only its form stands in its way."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.integration.negative.checks import cases
from tests.integration.negative.site import GROUND, SMALL, Site, path_of, put
from tests.support.raw_http import Request

Edit = Callable[[bytes], bytes]
CHUNKED = ("transfer-encoding", "chunked")


def hidden(site: Site) -> bytes:
    """A whole request that deletes an object, to be hidden in another's body."""
    return site.sign(Request("DELETE", path_of(GROUND, "keep/small"))).wire(site.host)


def writer(site: Site, *fields: tuple[str, str]) -> Request:
    """A signed PUT with framing of choice and no Content-Length of ours."""
    request = site.sign(put(GROUND, "evil", b""), payload="UNSIGNED-PAYLOAD")
    return replace(request.having(*fields), length=None)


def refused_and_closed(site: Site, data: bytes, status: int, *codes: str) -> None:
    """The first answer is a refusal, and nothing sent behind it is a request any more."""
    with site.connect() as connection:
        connection.send(data)
        answer = connection.answer()
        assert answer.status == status, answer
        assert answer.code in codes, answer
        assert answer.headers["connection"] == "close"
        assert connection.rest() == b""


FRAMINGS: dict[str, tuple[tuple[str, str], ...]] = {
    "length and chunked": (("content-length", "5"), CHUNKED),
    "chunked and length": (CHUNKED, ("content-length", "5")),
    "chunked and length 0": (CHUNKED, ("content-length", "0")),
    "two lengths": (("content-length", "5"), ("content-length", "6")),
    "the same length twice": (("content-length", "5"), ("content-length", "5")),
    "length +5": (("content-length", "+5"),),
    "length -5": (("content-length", "-5"),),
    "length 5,5": (("content-length", "5,5"),),
    "length 5, 6": (("content-length", "5, 6"),),
    "length 0x5": (("content-length", "0x5"),),
    "length 5 5": (("content-length", "5 5"),),
    "length 5.0": (("content-length", "5.0"),),
    "length 1e1": (("content-length", "1e1"),),
    "length 2**64": (("content-length", str(2**64)),),
    "length 2**64+5": (("content-length", str(2**64 + 5)),),
    "length of 5000 digits": (("content-length", "0" * 5000 + "5"),),
    "length empty": (("content-length", ""),),
    "length not ASCII": (("content-length", "\xb2"),),
    "xchunked": (("transfer-encoding", "xchunked"),),
    "chunked, identity": (("transfer-encoding", "chunked, identity"),),
    "identity": (("transfer-encoding", "identity"),),
    "identity, chunked": (("transfer-encoding", "identity, chunked"),),
    "gzip, chunked": (("transfer-encoding", "gzip, chunked"),),
    "chunked twice": (CHUNKED, CHUNKED),
    "chunked;q=1": (("transfer-encoding", "chunked;q=1"),),
    '"chunked"': (("transfer-encoding", '"chunked"'),),
    "chunked behind a tab": (("transfer-encoding", "\x0bchunked"),),
    "transfer-encoding empty": (("transfer-encoding", ""),),
}


@pytest.mark.parametrize("name", **cases(FRAMINGS))
def test_g77_two_framings_or_a_bad_one(site: Site, name: str) -> None:
    head = writer(site, *FRAMINGS[name]).wire(site.host)
    for body in (b"", b"0\r\n\r\n", b"evil!", b"5\r\nevil!\r\n0\r\n\r\n"):
        refused_and_closed(site, head + body + hidden(site), 400, "BadRequest")


FOLDS: dict[str, bytes] = {
    "folded length": b"content-length:\r\n 5\r\n",
    "folded encoding": b"transfer-encoding:\r\n chunked\r\n",
    "folded with a tab": b"transfer-encoding: x\r\n\tchunked\r\n",
    "folded before": b" x: y\r\ncontent-length: 5\r\n",
}


@pytest.mark.parametrize("name", **cases(FOLDS))
def test_g77_folded_lines(site: Site, name: str) -> None:
    head = writer(site).wire(site.host)
    data = head[:-2] + FOLDS[name] + b"\r\n"
    refused_and_closed(site, data + b"5\r\nevil!\r\n0\r\n\r\n" + hidden(site), 400, "BadRequest")


HEADS: dict[str, Edit] = {
    "bare LF everywhere": lambda head: head.replace(b"\r\n", b"\n"),
    "bare LF behind the request line": lambda head: head.replace(b"\r\n", b"\n", 1),
    "bare LF at the end": lambda head: head[:-4] + b"\n\n",
    "bare LF then CRLF": lambda head: head[:-4] + b"\n\r\n",
    "CR in a value": lambda head: head[:-2] + b"x: a\rtransfer-encoding: chunked\r\n\r\n",
    "LF in a value": lambda head: head[:-2] + b"x: a\ntransfer-encoding: chunked\r\n\r\n",
    "NUL in a value": lambda head: head[:-2] + b"x: a\0b\r\n\r\n",
    "NUL in a name": lambda head: head[:-2] + b"x\0: a\r\n\r\n",
    "NUL in the target": lambda head: head.replace(b"/evil", b"/ev\0il", 1),
    "space before the colon": lambda head: head[:-2] + b"content-length : 5\r\n\r\n",
    "tab before the colon": lambda head: head[:-2] + b"transfer-encoding\t: chunked\r\n\r\n",
    "space in a name": lambda head: head[:-2] + b"content length: 5\r\n\r\n",
    "no name": lambda head: head[:-2] + b": 5\r\n\r\n",
    "no colon": lambda head: head[:-2] + b"content-length\r\n\r\n",
    "not ASCII in a name": lambda head: head[:-2] + b"x\xff: 5\r\n\r\n",
    "control in a value": lambda head: head[:-2] + b"x: \x01\r\n\r\n",
    "HTTP/1.2": lambda head: head.replace(b"HTTP/1.1", b"HTTP/1.2", 1),
    "HTTP/2.0": lambda head: head.replace(b"HTTP/1.1", b"HTTP/2.0", 1),
    "HTTP/0.9": lambda head: head.replace(b" HTTP/1.1", b"", 1),
    "http/1.1": lambda head: head.replace(b"HTTP/1.1", b"http/1.1", 1),
    "tab for a space": lambda head: head.replace(b"PUT ", b"PUT\t", 1),
    "lower-case method": lambda head: head.replace(b"PUT", b"put", 1),
    "no method": lambda head: head.replace(b"PUT ", b"", 1),
}


@pytest.mark.parametrize("name", **cases(HEADS))
def test_g78_broken_head(site: Site, name: str) -> None:
    head = HEADS[name](writer(site, ("content-length", "5")).wire(site.host))
    refused_and_closed(site, head + b"evil!" + hidden(site), 400, "BadRequest", "InvalidURI")


CHUNKS: dict[str, bytes] = {
    "no CRLF behind the data": b"5\r\nevil!xx0\r\n\r\n",
    "LF behind the data": b"5\r\nevil!\n0\r\n\r\n",
    "CR behind the data": b"5\r\nevil!\r0\r\n\r\n",
    "LF behind the size": b"5\nevil!\r\n0\r\n\r\n",
    "nothing behind the data": b"5\r\nevil!0\r\n\r\n",
    "0x5": b"0x5\r\nevil!\r\n0\r\n\r\n",
    "+5": b"+5\r\nevil!\r\n0\r\n\r\n",
    "-5": b"-5\r\nevil!\r\n0\r\n\r\n",
    "space before": b" 5\r\nevil!\r\n0\r\n\r\n",
    "space behind": b"5 \r\nevil!\r\n0\r\n\r\n",
    "no digits": b"\r\nevil!\r\n0\r\n\r\n",
    "2**64+5": b"10000000000000005\r\nevil!\r\n0\r\n\r\n",
    "2**68": b"fffffffffffffffff\r\nevil!\r\n0\r\n\r\n",
    "LF in an extension": b"5;a\nb\r\nevil!\r\n0\r\n\r\n",
    "trailer without a colon": b"5\r\nevil!\r\n0\r\nx y\r\n\r\n",
    "trailer with NUL": b"5\r\nevil!\r\n0\r\nx: \0\r\n\r\n",
    "length as a trailer": b"5\r\nevil!\r\n0\r\ncontent-length: 9\r\n\r\n",
    "encoding as a trailer": b"5\r\nevil!\r\n0\r\ntransfer-encoding: chunked\r\n\r\n",
    "extension of 1 MB": b"5;" + b"x" * 1_000_000 + b"\r\nevil!\r\n0\r\n\r\n",
    "trailers of 1 MB": b"5\r\nevil!\r\n0\r\n" + b"x: y\r\n" * 170_000 + b"\r\n",
    "chunks of one with extensions": b"".join(b"1;%b\r\ne\r\n" % (b"x" * 2000) for _ in range(2000)) + b"0\r\n\r\n",
}


@pytest.mark.parametrize("name", **cases(CHUNKS))
def test_g79_broken_chunks(site: Site, name: str) -> None:
    head = writer(site, CHUNKED).wire(site.host)
    with site.connect() as connection:
        connection.send(head + CHUNKS[name] + hidden(site))
        rest = connection.rest()
        assert rest.count(b"HTTP/1.1 ") == 1, rest
        assert rest.startswith(b"HTTP/1.1 400 "), rest


def test_g79_trailers_are_not_headers(site: Site) -> None:
    """Not even when they look like the header that a signature would need."""
    bucket = site.fresh()
    request = replace(site.sign(put(bucket, "k", b""), payload="UNSIGNED-PAYLOAD").having(CHUNKED), length=None)
    body = b"5;ext=1\r\nbody!\r\n0\r\nx-amz-meta-evil: 1\r\nx-amz-acl: public-read\r\nhost: evil\r\n\r\n"
    assert site.ask_raw(request.wire(site.host) + body).status == 200
    stored = site.ok(Request("GET", path_of(bucket, "k")))
    assert stored.body == b"body!"
    assert "x-amz-meta-evil" not in stored.headers


HOSTS: dict[str, Edit] = {
    "none": lambda head: b"\r\n".join(line for line in head.split(b"\r\n") if not line.startswith(b"host:")),
    "two": lambda head: head[:-2] + b"host: others.s3.test\r\n\r\n",
    "the same twice": lambda head: head.replace(b"host:", b"HOST: 127.0.0.1\r\nhost:", 1),
}


@pytest.mark.parametrize("name", **cases(HOSTS))
def test_g80_host(site: Site, name: str) -> None:
    head = HOSTS[name](writer(site, ("content-length", "5")).wire(site.host))
    refused_and_closed(site, head + b"evil!" + hidden(site), 400, "BadRequest")


def test_g81_header_sections_that_are_too_large(site: Site) -> None:
    one = writer(site, ("content-length", "5"), ("x", "a" * 66_000)).wire(site.host)
    many = writer(site, ("content-length", "5"), *((f"x-{n}", "a" * 1000) for n in range(70))).wire(site.host)
    count = writer(site, ("content-length", "5"), *((f"x{n}", "") for n in range(10_000))).wire(site.host)
    name = writer(site, ("content-length", "5"), ("x" * 66_000, "a")).wire(site.host)
    for head in (one, many, count, name):
        refused_and_closed(site, head + b"evil!", 400, "RequestHeaderSectionTooLarge")


def test_g81_a_head_without_end(site: Site) -> None:
    with site.connect() as connection:
        connection.send(b"PUT /ground/evil HTTP/1.1\r\n" + b"x: y\r\n" * 200_000)
        assert connection.answer().code == "RequestHeaderSectionTooLarge"
        assert connection.rest() == b""


@pytest.mark.parametrize("size", [2049, 8 * 1024, 40_000])
def test_g81_user_metadata(site: Site, size: int) -> None:
    for request in (
        put(GROUND, "evil").having(("x-amz-meta-a", "v" * (size - 1))),
        put(GROUND, "evil").having(*((f"x-amz-meta-{n:04d}", "v" * 996) for n in range(size // 1000 + 1))),
        put(GROUND, "evil", b"", x_amz_copy_source=f"/{GROUND}/keep/small", x_amz_metadata_directive="REPLACE").having(
            ("x-amz-meta-a", "v" * (size - 1))
        ),
        Request("POST", path_of(GROUND, "evil"), "uploads", (("x-amz-meta-a", "v" * (size - 1)),)),
    ):
        site.refused(site.sign(request), 400, "MetadataTooLarge")


def test_g81_user_metadata_that_fits(site: Site) -> None:
    bucket = site.fresh()
    site.ok(put(bucket, "k").having(("x-amz-meta-a", "v" * 2047)))
    assert site.ok(Request("HEAD", path_of(bucket, "k"))).headers["x-amz-meta-a"] == "v" * 2047


def test_g81_target_that_is_too_long(site: Site) -> None:
    for target in ("/ground/" + "a" * 100_000, "/ground/evil?" + "x=y&" * 25_000, "/" + "%41" * 40_000):
        refused_and_closed(site, f"PUT {target} HTTP/1.1\r\nhost: h\r\n\r\n".encode(), 400, "InvalidURI")


def test_g81_many_parameters(site: Site) -> None:
    query = "&".join(f"x{n}=" for n in range(1500))
    site.refused(site.sign(Request("GET", path_of(GROUND), query)), 400, "InvalidArgument", "InvalidURI")


def test_g82_continue_comes_only_behind_the_checks(site: Site) -> None:
    body = b"x" * 100_000
    for request, code in (
        (
            site.sign(put(GROUND, "evil", body, expect="100-continue"), site.root._replace(secret="wrong")),
            "SignatureDoesNotMatch",
        ),
        (site.sign(put(GROUND, "evil", body, expect="100-continue"), site.other), "AccessDenied"),
        (put(GROUND, "evil", body, expect="100-continue"), "AccessDenied"),
        (site.sign(put(GROUND, "../evil", body, expect="100-continue")), "InvalidURI"),
        (site.sign(put("no-such-bucket", "evil", body, expect="100-continue")), "NoSuchBucket"),
        (site.sign(put(GROUND, "evil", body, expect="100-continue", content_md5="x")), "InvalidDigest"),
        (site.sign(put(GROUND, "evil", body, expect="100-continue", x_amz_tagging="a=b&a=c")), "InvalidArgument"),
        (
            site.sign(put(GROUND, "evil", body, expect="100-continue", x_amz_server_side_encryption="aws:kms:dsse")),
            "NotImplemented",
        ),
    ):
        with site.connect() as connection:
            connection.send(request.head(site.host))
            assert connection.answer().code == code
            assert connection.rest() == b""


def test_g82_continue_and_then_the_wrong_body(site: Site) -> None:
    request = site.sign(put(GROUND, "evil", b"right", expect="100-continue"))
    with site.connect() as connection:
        connection.send(request.head(site.host))
        assert connection.answer().status == 100
        connection.send(b"wrong")
        assert connection.answer().code == "XAmzContentSHA256Mismatch"


@pytest.mark.parametrize("key", ["evil", "keep/small"])
@pytest.mark.parametrize("size", [0, 1, 5000, 999_999])
def test_g83_a_body_shorter_than_its_length(site: Site, key: str, size: int) -> None:
    body = b"e" * 1_000_000
    for way in ("half closed", "closed", "reset"):
        request = site.sign(put(GROUND, key, body), payload="UNSIGNED-PAYLOAD")
        with site.connect() as connection:
            connection.send(request.head(site.host) + body[:size])
            if way == "half closed":
                connection.end()
                rest = connection.rest()
                assert rest == b"" or rest.startswith(b"HTTP/1.1 400 ")
            elif way == "reset":
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def test_g83_a_body_that_stops(site: Site) -> None:
    for key, size in (("evil", 10), ("keep/small", 300_000)):
        request = site.sign(put(GROUND, key, b"e" * 1_000_000))
        with site.connect() as connection:
            connection.send(request.head(site.host) + request.body[:size])
            assert connection.answer().code == "RequestTimeout"
            assert connection.rest() == b""


def test_g83_a_body_longer_than_its_length(site: Site) -> None:
    """What is behind it is another request, and there it must stand for itself."""
    bucket = site.fresh()
    request = replace(site.sign(put(bucket, "k", b"body!")), body=b"")
    head = replace(request, length=5).head(site.host)
    with site.connect() as connection:
        connection.send(head + b"body!" + b"trailing garbage\r\n\r\n")
        assert connection.answer().status == 200
        assert connection.answer().status == 400
        assert connection.rest() == b""
    assert site.get(bucket, "k") == b"body!"


@pytest.mark.parametrize("size", [10, 60_000, 500_000])
def test_g84_a_refused_body_is_not_a_request(site: Site, size: int) -> None:
    """The refusal comes before the body: the body must not be taken for the next request."""
    inner = hidden(site)
    body = inner * (size // len(inner) + 1)
    for request in (
        put(GROUND, "evil", body),
        site.sign(put(GROUND, "evil", body), site.other),
        site.sign(put("no-such-bucket", "evil", body)),
        replace(site.sign(put(GROUND, "evil", b""), site.other).having(CHUNKED), body=body, length=None),
    ):
        with site.connect() as connection:
            connection.send(request.wire(site.host))
            assert connection.answer().status in (400, 403, 404)
            connection.end()
            assert connection.rest().count(b"HTTP/1.1 ") <= 1  # the broken chunks


def test_g84_requests_behind_a_refusal_are_answered_in_order(site: Site) -> None:
    get = site.sign(Request("GET", path_of(GROUND, "keep/small")))
    bad = site.sign(put(GROUND, "evil", b"x" * 100), site.other)
    with site.connect() as connection:
        connection.send((bad.wire(site.host) + get.wire(site.host)) * 5)
        for _ in range(5):
            assert connection.answer().code == "AccessDenied"
            assert connection.answer().body == SMALL


def test_g84_requests_behind_a_broken_one_are_not_answered(site: Site) -> None:
    get = site.sign(Request("GET", path_of(GROUND, "keep/small"))).wire(site.host)
    with site.connect() as connection:
        connection.send(get + b"BROKEN\r\n\r\n" + hidden(site) + get)
        assert connection.answer().body == SMALL
        assert connection.answer().status == 400
        assert connection.rest() == b""


RANGES: dict[str, tuple[int, bytes | str]] = {
    # what a GET of `hello world` answers: a body, or the code of an error
    "bytes=" + ",".join(["0-0"] * 10_000): (200, SMALL),
    "bytes=0-1,4-5": (200, SMALL),
    "bytes=5-2": (200, SMALL),
    "bytes=-": (200, SMALL),
    "bytes=": (200, SMALL),
    "bytes=a-b": (200, SMALL),
    "bytes=--1": (200, SMALL),
    "bytes=-1-5": (200, SMALL),
    "bytes=+1-5": (200, SMALL),
    "bytes=0x1-0x5": (200, SMALL),
    "bytes=1-5-9": (200, SMALL),
    "bytes 0-5": (200, SMALL),
    "items=0-5": (200, SMALL),
    "bytes=\xb2-\xb3": (200, SMALL),
    "bytes=0-18446744073709551616": (206, SMALL),
    "bytes=0-" + "9" * 20_000: (206, SMALL),
    "bytes=-18446744073709551616": (206, SMALL),
    "bytes=-99": (206, SMALL),
    "bytes=18446744073709551616-": (416, "InvalidRange"),
    "bytes=11-": (416, "InvalidRange"),
    "bytes=11-20": (416, "InvalidRange"),
    "bytes=-0": (416, "InvalidRange"),
    "bytes=" + "9" * 20_000 + "-": (416, "InvalidRange"),
}


@pytest.mark.parametrize("value", argvalues=list(RANGES), ids=[name[:24] for name in RANGES])
def test_g85_ranges(site: Site, value: str) -> None:
    status, expected = RANGES[value]
    answer = site.ask(site.sign(Request("GET", path_of(GROUND, "keep/small"), headers=(("range", value),))))
    assert answer.status == status
    assert expected == (answer.body if status < 300 else answer.code)
    if status == 416:
        assert answer.headers["content-range"] == "bytes */11"


@pytest.mark.parametrize("number", ["1", "2"])
def test_g85_range_and_part_number(site: Site, number: str) -> None:
    request = Request("GET", path_of(GROUND, "keep/small"), f"partNumber={number}", (("range", "bytes=0-1"),))
    site.refused(site.sign(request), 400, "InvalidRequest")


PART_NUMBERS = {
    "0": 400,
    "-1": 400,
    "10001": 400,
    "x": 400,
    "": 400,
    "1e1": 400,
    "9" * 5000: 400,
    "%C2%B2": 400,
    "2": 416,
}


@pytest.mark.parametrize("number", argvalues=list(PART_NUMBERS), ids=[name[:8] or "empty" for name in PART_NUMBERS])
def test_g85_part_number(site: Site, number: str) -> None:
    request = Request("GET", path_of(GROUND, "keep/small"), f"partNumber={number}")
    site.refused(site.sign(request), PART_NUMBERS[number], "InvalidArgument", "InvalidPartNumber")
