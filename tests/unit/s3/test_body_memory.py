"""What bodies hold is counted, and past the budget they wait for each other, but never for themselves."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import MutableMapping
from typing import Any

import pytest

from sluice_s3.app.errors import Overloaded
from sluice_s3.app.s3 import request_body as body
from sluice_s3.app.s3.request_body import READ_BYTES, RequestBody
from sluice_s3.app.s3.wire.request import S3Request
from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.storage_drivers.base import Buffer

BUDGET = 4 * READ_BYTES
SOME = 16 * 1024
"""Bytes of a piece where a piece has very many."""


def make_request(size: int, memory: BodyMemoryBudget, payload: str = "UNSIGNED-PAYLOAD") -> S3Request:
    """The head of an upload."""
    request = S3Request()
    request.headers = {"x-amz-decoded-content-length": str(size)}
    request.content_length = size
    request.payload = payload
    request.signature = object()
    request.memory = memory
    return request


class Upload:
    """A request whose body arrives in the pieces given, and no further until more are added."""

    def __init__(self, memory: BodyMemoryBudget, *pieces: bytes, size: int | None = None) -> None:
        self.coming: asyncio.Queue[bytes] = asyncio.Queue()
        for piece in pieces:
            self.coming.put_nowait(piece)
        self._left = sum(map(len, pieces)) if size is None else size
        request = make_request(self._left, memory)
        request.receive = self._receive
        self.body = RequestBody(request)
        assert request.body is self.body

    async def _receive(self) -> MutableMapping[str, Any]:
        data = await self.coming.get()
        self._left -= len(data)
        return {"type": "http.request", "body": data, "more_body": self._left > 0}

    async def write(self) -> bytes:
        """Read the next piece and hash it in a thread, as drivers do."""
        piece = await self.body.read()
        await asyncio.to_thread(self.body.digest, piece)
        return bytes(piece)


def pieces(count: int) -> list[bytes]:
    return [bytes([number]) * READ_BYTES for number in range(count)]


async def waiting(task: asyncio.Task[Any]) -> bool:
    """Whether a task cannot go on."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not task.done()


async def test_held_from_reading_until_hashing() -> None:
    memory = BodyMemoryBudget(BUDGET)
    upload = Upload(memory, *pieces(3))
    for number in range(3):
        assert await upload.write() == pieces(3)[number]
        assert memory.used_bytes == READ_BYTES
    assert await upload.body.read() == b""
    assert memory.used_bytes == 0
    upload.body.verify()


async def test_what_nobody_hashed_is_given_back_at_the_end() -> None:
    memory = BodyMemoryBudget(BUDGET)
    upload = Upload(memory, *pieces(2))
    piece = await upload.body.read()
    await upload.body.read()
    assert memory.used_bytes == 2 * READ_BYTES
    upload.body.close()
    assert memory.used_bytes == 0
    upload.body.digest(piece)
    upload.body.close()
    assert memory.used_bytes == 0


async def test_when_memory_is_short_a_body_gives_what_it_has() -> None:
    memory = BodyMemoryBudget(BUDGET)
    memory.take(BUDGET - 10)
    upload = Upload(memory, b"0123456789", b"abc")
    assert await upload.body.read() == b"0123456789"


async def test_when_memory_is_short_a_body_that_has_nothing_waits() -> None:
    memory = BodyMemoryBudget(BUDGET)
    memory.take(BUDGET)
    upload = Upload(memory, *pieces(1))
    reading = asyncio.create_task(upload.body.read())
    assert await waiting(reading)
    assert upload.coming.qsize() == 1, "it must not take what there is no room for"
    memory.release(READ_BYTES)
    assert await reading == pieces(1)[0]
    assert memory.used_bytes == BUDGET


async def test_a_body_that_waits_gets_the_memory_of_its_own_pieces() -> None:
    """All of the budget is in pieces of bodies that wait for more: hashing them lets all go on."""
    memory = BodyMemoryBudget(BUDGET)
    uploads = [Upload(memory, *pieces(2)) for _ in range(4)]
    first = [await upload.body.read() for upload in uploads]
    readings = [asyncio.create_task(upload.body.read()) for upload in uploads]
    for reading in readings:
        assert await waiting(reading)
    for upload, piece in zip(uploads, first, strict=True):
        await asyncio.to_thread(upload.body.digest, piece)
    assert await asyncio.gather(*readings) == [pieces(2)[1]] * 4


async def test_a_hash_before_the_wait_is_seen() -> None:
    memory = BodyMemoryBudget(READ_BYTES)
    upload = Upload(memory, *pieces(2))
    await upload.write()
    assert await upload.body.read() == pieces(2)[1]


async def test_the_end_of_a_body_is_not_waited_for() -> None:
    """Its bytes are all there; only its end was not seen yet."""
    memory = BodyMemoryBudget(BUDGET)
    upload = Upload(memory, size=3)
    upload._left = 10  # `more_body` stays true
    upload.coming.put_nowait(b"abc")
    reading = asyncio.create_task(upload.body.read())
    assert await waiting(reading)
    memory.take(BUDGET)
    upload._left = 0
    upload.coming.put_nowait(b"")
    assert await reading == b"abc"


async def test_a_wait_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = BodyMemoryBudget(BUDGET)
    acquire = memory.acquire
    monkeypatch.setattr(memory, "acquire", lambda size: acquire(size, timeout=0.01))
    memory.take(BUDGET)
    upload = Upload(memory, *pieces(1))
    with pytest.raises(Overloaded):
        await upload.body.read()
    upload.body.close()
    assert memory.used_bytes == BUDGET


async def test_a_document_is_held_whole() -> None:
    memory = BodyMemoryBudget(BUDGET)
    upload = Upload(memory, *pieces(3))
    assert len(await upload.body.collect()) == 3 * READ_BYTES
    assert memory.used_bytes == 3 * READ_BYTES
    upload.body.close()
    assert memory.used_bytes == 0


async def test_a_share_that_was_waited_for_is_given_back_when_the_client_goes() -> None:
    memory = BodyMemoryBudget(BUDGET)
    memory.take(BUDGET)
    upload = Upload(memory, size=READ_BYTES)
    reading = asyncio.create_task(upload.body.read())
    assert await waiting(reading)
    memory.release(BUDGET)
    assert await waiting(reading)
    assert memory.used_bytes == READ_BYTES
    reading.cancel()
    assert await asyncio.gather(reading, return_exceptions=True)
    upload.body.close()
    assert memory.used_bytes == 0


def taken(upload: RequestBody) -> tuple[Buffer, int]:
    """The next piece, and the most memory that Python took for it."""
    tracemalloc.start()
    try:
        piece = asyncio.run(upload.read())
        return piece, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("payload", ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"])
def test_a_body_in_very_small_pieces_takes_little_more_than_others(
    monkeypatch: pytest.MonkeyPatch, payload: str
) -> None:
    """As a client sends it that has every two bytes in a packet, or in a chunk, of their own."""
    monkeypatch.setattr(body, "READ_BYTES", SOME)
    request = make_request(2 * READ_BYTES, BodyMemoryBudget(BUDGET), payload)
    sent = b"xy" if payload == "UNSIGNED-PAYLOAD" else b"2\r\nxy\r\n" * 20

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": bytes(bytearray(sent)), "more_body": True}

    request.receive = receive
    piece, memory = taken(RequestBody(request))
    assert len(piece) >= SOME
    assert bytes(piece) == b"xy" * (len(piece) // 2)
    assert memory < 5 * SOME
