"""A body goes through a worker, it is never in it: memory stays flat however large an object is."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.integration.limits.memory import Memory
from tests.integration.limits.wire import MIB, Content, Wire
from tests.support.environment import sized
from tests.support.gateway import Gateway
from tests.support.raw_http import Answer

pytestmark = pytest.mark.xdist_group("limits")

SIZE = sized(ci=300 * MIB, soak=10 * 1024 * MIB)
PART = sized(ci=16 * MIB, soak=64 * MIB)
PARTS_AT_ONCE = 4
BOUND = 150_000_000
"""Bytes of resident memory of a worker, all of it: the interpreter, libraries, and what transfers need."""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """Takes objects of 10 GiB in one PUT, and gives deleted space back at once."""
    with Gateway(tmp_path / "data", env={"SLUICE_MAX_PUT": str(16 * 1024 * MIB), "SLUICE_DISCARD_GRACE": "0"}) as made:
        with Wire(made.endpoint) as wire:
            assert wire.ask_signed("PUT", "/large").status == 200
        yield made


def tell(what: str, seconds: float, memory: Memory) -> None:
    """Print figures for people, and hold them to the bound."""
    rate = SIZE / MIB / seconds
    print(f"\n{what} {SIZE / MIB:,.0f} MiB: {seconds:.1f} s, {rate:.0f} MiB/s, workers {memory.told()}")
    assert max(memory.peaks()) < BOUND, memory.told()


def read_back(gateway: Gateway, path: str, content: Content) -> None:
    memory, started = Memory(gateway), time.monotonic()
    with Wire(gateway.endpoint) as wire:
        wire.get(path, content)
        tell("GET", time.monotonic() - started, memory)
        assert wire.ask_signed("DELETE", path).status == 204


def test_by_one_put(gateway: Gateway) -> None:
    content = Content(SIZE, seed=1)
    memory, started = Memory(gateway), time.monotonic()
    with Wire(gateway.endpoint) as wire:
        wire.put("/large/one", content)
    tell("PUT", time.monotonic() - started, memory)
    read_back(gateway, "/large/one", content)


def test_by_multipart(gateway: Gateway) -> None:
    path, seed = "/large/parts", 2
    memory, started = Memory(gateway), time.monotonic()
    answer = ask(gateway, path, "uploads=", b"")
    found = re.search(rb"<UploadId>([^<]+)</UploadId>", answer.body)
    assert found, answer
    upload = found[1].decode()
    starts = range(0, SIZE, PART)

    def put_part(number: int) -> str:
        query = f"partNumber={number}&uploadId={upload}"
        start = starts[number - 1]
        with Wire(gateway.endpoint) as own:
            return own.put(path, Content(SIZE, seed), query, start, min(PART, SIZE - start))

    with ThreadPoolExecutor(PARTS_AT_ONCE) as threads:
        etags = list(threads.map(put_part, range(1, len(starts) + 1)))
    parts = "".join(
        f"<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>" for number, etag in enumerate(etags, 1)
    )
    document = f"<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>".encode()
    answer = ask(gateway, path, f"uploadId={upload}", document)
    tell("multipart", time.monotonic() - started, memory)
    digests = hashlib.md5(b"".join(map(bytes.fromhex, etags)), usedforsecurity=False).hexdigest()
    assert f"{digests}-{len(etags)}".encode() in answer.body
    read_back(gateway, path, Content(SIZE, seed))


def ask(gateway: Gateway, path: str, query: str, document: bytes) -> Answer:
    """One POST on a connection of its own: parts may take longer than an idle one is kept."""
    with Wire(gateway.endpoint) as wire:
        answer = wire.ask_signed("POST", path, query, document)
        assert answer.status == 200, answer
        return answer
