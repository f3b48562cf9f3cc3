"""The requests whose instructions are counted, in plain shapes and in those of real clients."""

from __future__ import annotations

import base64
import hashlib
import random
import zlib
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sluice_s3.loadtests.clients.signing import Signer
from sluice_s3.loadtests.cpu.client import Request

SMALL_BYTES = 4096
LARGE_BYTES = 10 << 20
LISTED_KEYS = 1000
BUCKET, LISTED = "/bench", "/list"
"""The buckets of objects, and of the keys that are listed."""
TRAILER = "x-amz-checksum-crc32"
SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
BOTO3 = {
    "Accept-Encoding": "identity",
    "User-Agent": "Boto3/1.44.5 md/Botocore#1.44.5 md/awscrt#0.38.1 ua/2.1 os/linux#6.1.0 md/arch#x86_64 "
    "lang/python#3.11.7 md/pyimpl#CPython m/U,E,b,N,e,Z cfg/retry-mode#standard Botocore/1.44.5",
    "amz-sdk-invocation-id": "7ff6df17-17f8-426d-8c4d-00531b18bee2",
    "amz-sdk-request": "attempt=1; max=5",
}
"""Fields of every request of boto3, as 1.44 sends them."""


class Operation(NamedTuple):
    """A counted operation: its request for a path, and how often it is sent."""

    make: Callable[[Signer, str], Request]
    share: float = 1.0
    """Of the command's count, so that all take some seconds: what an idle worker does comes in bursts of a second."""
    object_bytes: int | None = None
    """The size of the object that must exist at the path; None if none must."""
    one_object: bool = False
    """Every request is of the same path."""


def _body(size: int) -> bytes:
    return random.Random(size).randbytes(size)


SMALL, LARGE = _body(SMALL_BYTES), _body(LARGE_BYTES)


def _crc32(body: bytes) -> str:
    return base64.b64encode(zlib.crc32(body).to_bytes(4, "big")).decode()


def put(signer: Signer, path: str, body: bytes = SMALL) -> Request:
    """Return a PUT with an unsigned payload."""
    return Request(signer.head("PUT", path, length=len(body)), memoryview(body))


def put_expect(signer: Signer, path: str) -> Request:
    """Return a PUT as boto3 sends it without TLS: `Expect: 100-continue`, signed payload, checksum."""
    fields = {TRAILER: _crc32(SMALL), "x-amz-sdk-checksum-algorithm": "CRC32"}
    unsigned = {**BOTO3, "Expect": "100-continue", "Content-Length": str(len(SMALL))}
    payload = hashlib.sha256(SMALL).hexdigest()
    return Request(signer.sign("PUT", path, "", payload, fields, unsigned).head, memoryview(SMALL))


def _trailing_body(body: bytes) -> tuple[bytes, bytes]:
    """Return the chunk of `body`, and the last one with the checksum behind it."""
    return b"%x\r\n%b\r\n" % (len(body), body), f"0\r\n{TRAILER}:{_crc32(body)}\r\n\r\n".encode()


def _trailing_fields(body: bytes) -> dict[str, str]:
    return {
        "content-encoding": "aws-chunked",
        "x-amz-decoded-content-length": str(len(body)),
        "x-amz-sdk-checksum-algorithm": "CRC32",
        "x-amz-trailer": TRAILER,
    }


def put_trailer(signer: Signer, path: str) -> Request:
    """Return an aws-chunked PUT with a checksum behind it, as most SDKs send it."""
    body = b"".join(_trailing_body(SMALL))
    unsigned = {"Content-Length": str(len(body))}
    signed = signer.sign("PUT", path, "", UNSIGNED_TRAILER, _trailing_fields(SMALL), unsigned)
    return Request(signed.head, memoryview(body))


def put_trailer_expect(signer: Signer, path: str) -> Request:
    """Return a PUT as boto3 sends it over TLS: aws-chunked inside HTTP's chunks, and `Expect`."""
    pieces = (*_trailing_body(SMALL), b"")
    body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    unsigned = {**BOTO3, "Expect": "100-continue", "Transfer-Encoding": "chunked"}
    signed = signer.sign("PUT", path, "", UNSIGNED_TRAILER, _trailing_fields(SMALL), unsigned)
    return Request(signed.head, memoryview(body))


def put_signed_chunks(signer: Signer, path: str) -> Request:
    """Return a PUT whose chunks are signed, as older SDKs send it."""
    fields = {"content-encoding": "aws-chunked", "x-amz-decoded-content-length": str(len(SMALL))}
    framing = len(";chunk-signature=\r\n\r\n") + 64
    length = len(f"{len(SMALL):x}") + len(SMALL) + len("0") + 2 * framing
    signed = signer.sign("PUT", path, "", SIGNED_CHUNKS, fields, {"Content-Length": str(length)})
    body, previous = b"", signed.signature
    for data in (SMALL, b""):
        previous = signed.sign_chunk(previous, data)
        body += b"%x;chunk-signature=%b\r\n%b\r\n" % (len(data), previous.encode(), data)
    return Request(signed.head, memoryview(body))


def delete_objects(signer: Signer, path: str) -> Request:
    """Return a DeleteObjects of one key, as boto3 sends it."""
    key = path.removeprefix(f"{BUCKET}/")
    namespace = "http://s3.amazonaws.com/doc/2006-03-01/"
    body = f'<Delete xmlns="{namespace}"><Object><Key>{key}</Key></Object></Delete>'.encode()
    fields = {TRAILER: _crc32(body), "x-amz-sdk-checksum-algorithm": "CRC32"}
    unsigned = {**BOTO3, "Content-Length": str(len(body))}
    signed = signer.sign("POST", BUCKET, "delete=", hashlib.sha256(body).hexdigest(), fields, unsigned)
    return Request(signed.head, memoryview(body))


def _list(signer: Signer, _path: str) -> Request:
    return Request(signer.head("GET", LISTED, f"list-type=2&max-keys={LISTED_KEYS}"))


OPERATIONS = {
    "PUT": Operation(put),
    "GET": Operation(lambda signer, path: Request(signer.head("GET", path), size=SMALL_BYTES), 1.5, SMALL_BYTES),
    "STAT": Operation(lambda signer, path: Request(signer.head("HEAD", path), bodiless=True), 2, SMALL_BYTES),
    "DELETE": Operation(lambda signer, path: Request(signer.head("DELETE", path)), 1, SMALL_BYTES),
    "LIST": Operation(_list, 0.06, one_object=True),
    "PUT-10M": Operation(lambda signer, path: put(signer, path, LARGE), 0.02),
    "GET-10M": Operation(
        lambda signer, path: Request(signer.head("GET", path), size=LARGE_BYTES), 0.3, LARGE_BYTES, True
    ),
    "PUT-EXPECT": Operation(put_expect, 0.5),
    "PUT-TRAILER": Operation(put_trailer, 0.5),
    "PUT-TRAILER-EXPECT": Operation(put_trailer_expect, 0.5),
    "PUT-SIGNED-CHUNKS": Operation(put_signed_chunks, 0.5),
    "DELETE-OBJECTS": Operation(delete_objects, 0.5, SMALL_BYTES),
}
"""In the order in which they are counted."""
USUAL = ("PUT", "GET", "STAT", "DELETE", "LIST", "PUT-10M", "GET-10M")
"""What is counted if nothing is chosen."""


def create_buckets(signer: Signer) -> list[Request]:
    """Return the requests that create the buckets."""
    return [Request(signer.head("PUT", bucket, length=0)) for bucket in (BUCKET, LISTED)]


def requests(signer: Signer, name: str, start: int, stop: int) -> Iterator[Request]:
    """Return the requests of an operation from number `start` to before `stop`."""
    operation = OPERATIONS[name]
    for number in range(start, stop):
        yield operation.make(signer, _path(name, 0 if operation.one_object else number))


def preparations(signer: Signer, name: str, count: int) -> Iterator[Request]:
    """Return the requests that put what `count` requests of an operation need."""
    operation = OPERATIONS[name]
    if name == "LIST":
        for number in range(LISTED_KEYS):
            yield put(signer, f"{LISTED}/key-{number:05d}", SMALL[:10])
    if operation.object_bytes is not None:
        body = SMALL if operation.object_bytes == SMALL_BYTES else LARGE
        for number in range(1 if operation.one_object else count):
            yield put(signer, _path(name, number), body)


def _path(name: str, number: int) -> str:
    return f"{BUCKET}/{name.lower()}/{number % 64:x}/{number:07d}"
