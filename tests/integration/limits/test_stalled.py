"""Clients that stop reading or writing take a connection and a little memory, but nobody's turn."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.integration.limits.memory import Memory
from tests.integration.limits.wire import MIB, Content, Wire
from tests.support.gateway import Gateway
from tests.support.raw_http import Client, Request

pytestmark = pytest.mark.xdist_group("limits")

STALLED = 200
"""Readers, and as many writers."""
LARGE = Content(64 * MIB, seed=3)
"""More than the socket buffers of both sides take."""
BODIES = ((1000, 10), (MIB, 10), (MIB, 250_000), (MIB, 700_000))
"""Bytes of stalled bodies, and bytes that were sent of them: none reaches the store, or a part of it does."""
BOUND = 5.0
"""Seconds; what is not delayed takes a hundredth of it."""
ROUNDS = 10
"""Each round comes on new connections, so that every worker gets some."""
ESTABLISHED = 1
"""TCP_ESTABLISHED of include/net/tcp_states.h, the first byte of TCP_INFO."""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """Waits for stuck clients longer than this test runs."""
    with Gateway(tmp_path / "data", env={"SLUICE_BODY_TIMEOUT": "600"}) as made:
        with Wire(made.endpoint) as wire:
            assert wire.ask_signed("PUT", "/stalled").status == 200
            wire.put("/stalled/large", LARGE)
        yield made


def begin_read(wire: Wire) -> None:
    wire.begin_signed("GET", "/stalled/large")
    assert wire.connection.socket.recv(1, socket.MSG_PEEK)  # the answer has begun


def body_of(number: int) -> Content:
    return Content(BODIES[number % len(BODIES)][0], number)


def begun(number: int) -> int:
    return BODIES[number % len(BODIES)][1]


def start_write(wire: Wire, number: int) -> None:
    content = body_of(number)
    wire.begin_signed("PUT", f"/stalled/{number}", length=content.size)
    wire.send(content.some(0, begun(number)))


def end_write(wire: Wire, number: int) -> None:
    content = body_of(number)
    wire.send(content.some(begun(number), content.size))
    assert wire.answer().status == 200


def connected(wire: Wire) -> bool:
    return wire.connection.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == ESTABLISHED


def others(gateway: Gateway, number: int) -> None:
    """What everybody else does."""
    with Client(gateway.endpoint, patience=BOUND) as health:
        assert health.ask(Request("GET", "/-/health/ready")).status == 200
    path, body = f"/stalled/other-{number}", b"other" * 1000
    for method, query, sent, status, got in (
        ("PUT", "", body, 200, b""),
        ("GET", "", None, 200, body),
        ("HEAD", "", None, 200, b""),
        ("DELETE", "", None, 204, b""),
    ):
        with Wire(gateway.endpoint, timeout=BOUND) as wire:
            answer = wire.ask_signed(method, path, query, sent)
            assert (answer.status, answer.body) == (status, got)
    with Wire(gateway.endpoint, timeout=BOUND) as wire:
        assert wire.ask_signed("GET", "/stalled", "list-type=2").status == 200


def test_200_stalled_readers_and_200_stalled_writers(gateway: Gateway) -> None:
    memory, longest = Memory(gateway), 0.0
    with ExitStack() as stack:
        readers = [stack.enter_context(Wire(gateway.endpoint)) for _ in range(STALLED)]
        writers = [stack.enter_context(Wire(gateway.endpoint)) for _ in range(STALLED)]
        for reader in readers:
            begin_read(reader)
        for number, writer in enumerate(writers):
            start_write(writer, number)
        for number in range(ROUNDS):
            started = time.monotonic()
            others(gateway, number)
            longest = max(longest, time.monotonic() - started)
        assert all(map(connected, readers + writers))
        assert longest < BOUND
        print(f"\n{STALLED} readers and {STALLED} writers stalled: the slowest of {ROUNDS} rounds of 6 requests by")
        print(f"others took {longest * 1000:.0f} ms; workers {memory.told()}")
        # they were only slow: what they asked for is still to be had
        for number, writer in enumerate(writers):
            end_write(writer, number)
        for reader in readers[:3]:
            LARGE.read(reader.connection)
