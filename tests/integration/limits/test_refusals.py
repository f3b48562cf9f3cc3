"""Past a limit the answer is `SlowDown`, and whoever is stuck is cut off after its time."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.integration.limits.memory import Memory
from tests.integration.limits.wire import MIB, Content, Wire
from tests.support.gateway import Gateway
from tests.support.raw_http import Answer
from tests.support.waiting import eventually

pytestmark = pytest.mark.xdist_group("limits")

MEMORY, BODIES = 8 * MIB, 200
LARGE = Content(64 * MIB, seed=4)


@contextmanager
def limited(tmp_path: Path, **limits: float) -> Iterator[Gateway]:
    """A gateway with one worker and limits of its own, and a bucket `box`."""
    env = {f"SLUICE_{name.upper()}": str(value) for name, value in limits.items()}
    with Gateway(tmp_path / "data", workers=1, env=env) as gateway:
        with Wire(gateway.endpoint) as wire:
            assert wire.ask_signed("PUT", "/box").status == 200
            assert wire.ask_signed("PUT", "/box/small", body=b"small").status == 200
        yield gateway


def ask(gateway: Gateway, method: str = "GET", path: str = "/box/small", body: bytes | None = None) -> Answer:
    """One request on a connection of its own."""
    with Wire(gateway.endpoint) as wire:
        return wire.ask_signed(method, path, body=body)


def slow_down(answer: Answer) -> bool:
    """Whether the answer is SlowDown, all of it as S3 gives it; else it must be a success."""
    if answer.status == 200:
        return False
    assert (answer.status, answer.code) == (503, "SlowDown"), answer
    assert answer.headers["content-type"] == "application/xml"
    assert answer.headers["connection"] == "close"
    assert f"<RequestId>{answer.headers['x-amz-request-id']}</RequestId>".encode() in answer.body
    return True


def test_more_connections_than_the_limit(tmp_path: Path) -> None:
    with limited(tmp_path, max_connections=8) as gateway, ExitStack() as stack:
        held = [stack.enter_context(Wire(gateway.endpoint)) for _ in range(8)]
        eventually(
            lambda: not slow_down(held[0].ask_signed("GET", "/box/small"))
        )  # the connection that made the bucket is gone
        for wire in held:
            assert wire.ask_signed("GET", "/box/small").body == b"small"
        for _ in range(3):
            assert slow_down(ask(gateway))
        for wire in held:
            assert wire.ask_signed("GET", "/box/small").body == b"small"
        held.pop().close()
        eventually(lambda: not slow_down(ask(gateway)))


def test_more_requests_than_the_limit(tmp_path: Path) -> None:
    with limited(tmp_path, max_requests=4) as gateway, ExitStack() as stack:
        idle = stack.enter_context(Wire(gateway.endpoint))
        assert idle.ask_signed("GET", "/box/small").status == 200
        running = [stack.enter_context(Wire(gateway.endpoint)) for _ in range(4)]
        for number, wire in enumerate(running):
            wire.begin_signed("PUT", f"/box/{number}", length=10)
            wire.send(b"12345")
        eventually(lambda: slow_down(ask(gateway)))
        assert slow_down(idle.ask_signed("GET", "/box/small"))
        assert slow_down(ask(gateway, "PUT", "/box/refused", b"refused"))
        for wire in running:
            wire.send(b"67890")
            assert wire.answer().status == 200
        assert ask(gateway).body == b"small"
        assert ask(gateway, path="/box/3").body == b"1234567890"
        assert ask(gateway, path="/box/refused").code == "NoSuchKey"


def test_more_bodies_than_fit_into_memory(tmp_path: Path) -> None:
    """The store is slow (two threads), so that bodies pile up: they wait for each other, and new ones are refused."""
    content = Content(2 * MIB, seed=6)
    answers: list[Answer] = []
    lost: list[int] = []
    with limited(tmp_path, max_body_memory=MEMORY, io_threads=2) as gateway:
        memory = Memory(gateway)

        def put(number: int) -> None:
            with Wire(gateway.endpoint) as wire:
                wire.begin_signed("PUT", f"/box/{number}", length=content.size)
                for offset in range(0, content.size, MIB):
                    wire.send(pieces[offset])
                try:
                    answers.append(wire.answer())
                except ConnectionResetError:
                    lost.append(number)  # refused, and slower to send than the server lingers

        pieces = {offset: content.some(offset, content.size) for offset in range(0, content.size, MIB)}
        with ThreadPoolExecutor(BODIES) as threads:
            list(threads.map(put, range(BODIES)))
        refused = sum(map(slow_down, answers)) + len(lost)
        print(f"\n{BODIES} bodies of 2 MiB, {MEMORY / MIB:.0f} MiB for them: {refused} refused, {memory.told()}")
        assert len(answers) + len(lost) == BODIES
        assert refused < BODIES
        # what bodies hold and what connections hold are each bounded so; the rest is for answers, threads and the heap
        assert max(memory.peaks()) - min(memory.before) < 2 * MEMORY + 32 * MIB, memory.told()


def test_a_stuck_reader_is_cut_off(tmp_path: Path) -> None:
    """Its place is free again: there is only one."""
    with limited(tmp_path, max_requests=1, body_timeout=1) as gateway, Wire(gateway.endpoint) as stuck:
        with Wire(gateway.endpoint) as wire:
            wire.put("/box/large", LARGE)
        stuck.begin_signed("GET", "/box/large")
        assert stuck.connection.socket.recv(1, socket.MSG_PEEK)
        assert slow_down(ask(gateway))
        eventually(lambda: not slow_down(ask(gateway)))
        assert 0 < len(stuck.connection.rest()) < LARGE.size


def test_a_slow_reader_is_not_cut_off(tmp_path: Path) -> None:
    """It takes much less in `body_timeout` than the server's kernel wants to be free of before it takes more."""
    content, piece = Content(32 * MIB, seed=5), 64 * 1024
    with limited(tmp_path, body_timeout=4) as gateway, Wire(gateway.endpoint, buffer=2 * piece) as slow:
        with Wire(gateway.endpoint) as wire:
            wire.put("/box/large", content)
        slow.begin_signed("GET", "/box/large")
        assert slow.connection.head().status == 200
        for offset in range(0, 32 * piece, piece):
            assert slow.connection.take(piece) == content.some(offset, offset + piece)
            time.sleep(0.5)
        left = content.size - 32 * piece
        assert len(slow.connection.take(left)) == left


def test_a_stuck_writer_is_cut_off(tmp_path: Path) -> None:
    """It is told so, and nothing of its body stays."""
    with limited(tmp_path, max_requests=1, body_timeout=1) as gateway, Wire(gateway.endpoint) as stuck:
        before = files(gateway)
        stuck.begin_signed("PUT", "/box/stuck", length=LARGE.size)
        stuck.send(LARGE.some(0, MIB))
        answer = stuck.answer()
        assert (answer.status, answer.code, answer.headers["connection"]) == (400, "RequestTimeout", "close")
        eventually(lambda: not slow_down(ask(gateway)))
        assert ask(gateway, path="/box/stuck").code == "NoSuchKey"
        assert files(gateway) == before


def files(gateway: Gateway) -> set[Path]:
    return {path for path in (gateway.data / "data").rglob("*") if path.is_file()}
