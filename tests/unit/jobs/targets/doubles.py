"""Brokers that know as much of their protocol as a sender needs, and remember what they took."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.record import MemoryRecords
from pamqp import commands, frame
from pamqp.header import ContentHeader
from pamqp.heartbeat import Heartbeat

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
NATS_INFO = b'INFO {"server_id":"d","version":"2.9.0","proto":1,"headers":true,"max_payload":1048576}\r\n'


class Double:
    """`taken` is what was sent: where to, key or properties, body. While `refusing` nothing is taken."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, Any, bytes]] = []
        self.refusing = False
        self.port = 0
        self.connections = 0


@asynccontextmanager
async def running(serve: Callable[[Double, Streams], Awaitable[None]]) -> AsyncIterator[Double]:
    """A double that listens."""
    double = Double()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        double.connections += 1
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await serve(double, (reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    double.port = server.sockets[0].getsockname()[1]
    try:
        yield double
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def nats(double: Double, streams: Streams) -> None:
    """https://docs.nats.io/reference/reference-protocols/nats-protocol"""
    reader, writer = streams
    writer.write(NATS_INFO)
    while line := await reader.readline():
        words = line.split()
        if words[0] == b"PING":
            if double.refusing:
                return
            writer.write(b"PONG\r\n")
        elif words[0] == b"PUB":
            body = (await reader.readexactly(int(words[-1]) + 2))[:-2]
            double.taken.append((words[1].decode(), None, body))


async def amqp(double: Double, streams: Streams) -> None:
    """https://www.rabbitmq.com/amqp-0-9-1-reference.html"""
    reader, writer = streams

    def send(channel: int, *answers: Any) -> None:
        for answer in answers:
            writer.write(frame.marshal(answer, channel))

    assert await reader.readexactly(8) == b"AMQP\x00\x00\x09\x01"
    send(
        0,
        commands.Connection.Start(server_properties={"capabilities": {"publisher_confirms": True}}, mechanisms="PLAIN"),
    )
    publishing: Any = None
    properties: Any = None
    tag = 0
    while True:
        head = await reader.readexactly(7)
        size = struct.unpack(">I", head[3:])[0]
        _, channel, found = frame.unmarshal(head + await reader.readexactly(size + 1))
        match found:
            case commands.Connection.StartOk():
                send(0, commands.Connection.Tune(channel_max=10, frame_max=131072, heartbeat=0))
            case commands.Connection.Open():
                send(0, commands.Connection.OpenOk())
            case commands.Connection.Close():
                send(0, commands.Connection.CloseOk())
                return
            case commands.Channel.Open():
                send(channel, commands.Channel.OpenOk())
            case commands.Channel.Close():
                send(channel, commands.Channel.CloseOk())
            case commands.Confirm.Select():
                send(channel, commands.Confirm.SelectOk())
            case commands.Basic.Publish():
                publishing = found
            case ContentHeader():
                properties = found.properties
            case Heartbeat() | commands.Connection.TuneOk():
                pass
            case _:
                tag += 1
                if double.refusing:
                    send(channel, commands.Basic.Nack(tag))
                else:
                    place = f"{publishing.exchange}/{publishing.routing_key}"
                    double.taken.append((place, properties, found.value))
                    send(channel, commands.Basic.Ack(tag))


async def kafka(double: Double, streams: Streams) -> None:
    """https://kafka.apache.org/protocol: ApiVersions 0, Metadata 1, Produce 3."""
    reader, writer = streams
    while True:
        (size,) = struct.unpack(">i", await reader.readexactly(4))
        request = _Reader(await reader.readexactly(size))
        api, _, correlation = request.take(">hhi")
        request.text()
        answer = {18: _versions, 3: _metadata, 0: _produce}[api](double, request)
        writer.write(struct.pack(">ii", len(answer) + 4, correlation) + answer)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return found

    def bytes(self, size: int) -> bytes:
        self._at += max(size, 0)
        return self._data[self._at - max(size, 0) : self._at]

    def text(self) -> str:
        return self.bytes(self.take(">h")[0]).decode()


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _versions(double: Double, request: _Reader) -> bytes:
    known = ((0, 3, 3), (3, 1, 1), (18, 0, 0))
    return struct.pack(">hi", 0, len(known)) + b"".join(struct.pack(">hhh", *one) for one in known)


def _metadata(double: Double, request: _Reader) -> bytes:
    (count,) = request.take(">i")
    topics = [request.text() for _ in range(max(count, 0))] or ["events"]
    broker = struct.pack(">ii", 1, 0) + _text("127.0.0.1") + struct.pack(">ih", double.port, -1) + struct.pack(">i", 0)
    partition = struct.pack(">hii", 0, 0, 0) + struct.pack(">ii", 1, 0) * 2
    shown = (struct.pack(">h", 0) + _text(name) + struct.pack(">?i", False, 1) + partition for name in topics)
    return broker + struct.pack(">i", len(topics)) + b"".join(shown)


def _produce(double: Double, request: _Reader) -> bytes:
    request.text()
    request.take(">hii")
    topic = request.text()
    _, _, size = request.take(">iii")
    records = MemoryRecords(request.bytes(size))
    while (batch := records.next_batch()) is not None:
        for record in batch:
            if not double.refusing:
                double.taken.append((topic, record.key, record.value))
    error = 29 if double.refusing else 0  # TOPIC_AUTHORIZATION_FAILED
    return struct.pack(">i", 1) + _text(topic) + struct.pack(">iihqqi", 1, 0, error, 0, -1, 0)
