"""The requests whose instructions are counted, in plain shapes and in those of real clients."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from sluice_s3.loadtests.clients.signing import Signer
from sluice_s3.loadtests.cpu import shapes
from sluice_s3.loadtests.cpu.client import Request
from sluice_s3.loadtests.cpu.shape_requests import LISTED_KEYS, Body, listed_paths, shaped
from sluice_s3.loadtests.cpu.shapes import Shape

SMALL_BYTES = 4096
LARGE_BYTES = 10 << 20
BUCKET, LISTED = "/bench", "/list"
"""The buckets of objects, and of the keys that are listed."""


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
SMALL_BODY = Body(SMALL)


def put(signer: Signer, path: str, body: bytes = SMALL) -> Request:
    """Return a PUT with an unsigned payload."""
    return Request(signer.head("PUT", path, length=len(body)), memoryview(body))


def _list(signer: Signer, _path: str) -> Request:
    return Request(signer.head("GET", LISTED, f"list-type=2&max-keys={LISTED_KEYS}"))


def _shaped(name: str, shape: Shape) -> dict[str, Operation]:
    """Return the operations of a client, `PUT:BOTO3` and, where it sends another request over TLS, `PUT:BOTO3-TLS`."""
    found = {}
    for operation in shapes.OPERATIONS:
        for suffix, calls in (("", shape.calls), ("-TLS", shape.over_tls)):
            if operation in calls and operation != "PART":
                send = partial(_send, shape, operation, tls=bool(suffix))
                size = None if operation in ("PUT", "LIST") else SMALL_BYTES
                share = OPERATIONS["LIST"].share if operation == "LIST" else 0.5
                found[f"{operation}:{name.upper()}{suffix}"] = Operation(send, share, size, operation == "LIST")
    return found


def _send(shape: Shape, operation: str, signer: Signer, path: str, *, tls: bool) -> Request:
    return shaped(signer, shape, operation, LISTED if operation == "LIST" else path, SMALL_BODY, tls=tls)


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
}
PLAIN = tuple(OPERATIONS)
"""Operations without needless fields."""
for _name, _shape in shapes.SHAPES.items():
    OPERATIONS |= _shaped(_name, _shape)
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
    if name.startswith("LIST"):
        for path in listed_paths(LISTED):
            yield put(signer, path, SMALL[:10])
    if operation.object_bytes is not None:
        body = SMALL if operation.object_bytes == SMALL_BYTES else LARGE
        for number in range(1 if operation.one_object else count):
            yield put(signer, _path(name, number), body)


def _path(name: str, number: int) -> str:
    return f"{BUCKET}/{name.lower().replace(':', '-')}/{number % 64:x}/{number:07d}"
