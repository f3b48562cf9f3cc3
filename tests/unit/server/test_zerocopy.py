"""Files straight to sockets: the right bytes, no thread that waits, and no descriptor used after its time."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.app.server.http import zerocopy
from tests.support.raw_http import AsyncConnection
from tests.support.waiting import eventually_async
from tests.unit.server.files import Files
from tests.unit.server.tools import Site, serving

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def content() -> bytes:
    return os.urandom(24 * MIB)


@pytest.fixture
def files(tmp_path: Path, content: bytes) -> Files:
    path = tmp_path / "blob"
    path.write_bytes(content)
    return Files(path)


def get(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode()


async def slow_client(site: Site, buffer: int = 4096) -> AsyncConnection:
    """A client whose socket takes little, so that the server has to wait for it."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", site.port))
    client = AsyncConnection(*await asyncio.open_connection(sock=sock, limit=buffer))
    site.clients.append(client)
    return client


@pytest.mark.parametrize(("nowait", "waits"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize(
    ("offset", "count"), [(0, 1), (0, 4096), (9, 16_384), (7, 65_537), (3, MIB), (MIB, 9 * MIB + 1), (0, 24 * MIB)]
)
async def test_the_bytes_are_right(
    files: Files, content: bytes, offset: int, count: int, nowait: bool, waits: bool
) -> None:
    files.nowait, files.waits = nowait, waits
    async with serving(files) as site:
        client = await site.connect()
        for _ in range(3):
            got = await client.ask(get(f"/{offset}/{count}"))
            assert got.status == 200
            assert got.body == content[offset : offset + count]
        assert (await client.ask(get("/quick"))).body == b"ok"
        await eventually_async(lambda: files.sent == [count] * 3 + [2])


async def test_slices_and_bytes_in_one_answer(files: Files, content: bytes) -> None:
    expected = content[5:15] + b"between" + content[100_000:2_100_000] + b"x" * 500_000 + content[:3]
    async with serving(files) as site:
        client = await site.connect()
        await client.send(get("/parts") * 5 + get("/quick"))
        for _ in range(5):
            assert (await client.answer()).body == expected
        assert (await client.answer()).body == b"ok"


@pytest.mark.parametrize(("nowait", "waits"), [(True, False), (True, True), (False, False)])
async def test_a_slow_reader_gets_everything(files: Files, content: bytes, nowait: bool, waits: bool) -> None:
    files.nowait, files.waits = nowait, waits
    async with serving(files) as site:
        client = await slow_client(site)
        await client.send(get("/0/3000000"))
        assert (await client.head()).headers["content-length"] == "3000000"
        body = bytearray()
        while len(body) < 3_000_000:
            body += await client.reader.read(50_000)
            await asyncio.sleep(0)
        assert bytes(body) == content[:3_000_000]
        await client.send(get("/quick"))
        assert (await client.answer()).body == b"ok"


@pytest.mark.parametrize(("nowait", "waits"), [(True, False), (True, True), (False, False)])
async def test_a_client_gone_half_way(files: Files, nowait: bool, waits: bool) -> None:
    files.nowait, files.waits = nowait, waits
    async with serving(files) as site:
        before = len(os.listdir("/proc/self/fd"))
        client = await slow_client(site)
        await client.send(get(f"/0/{24 * MIB}"))
        await client.reader.read(1000)
        client.writer.transport.abort()
        await eventually_async(lambda: files.sent)
        assert files.sent[0] < 24 * MIB
        await eventually_async(lambda: not site.state.connections and not site.state.running)
        await eventually_async(lambda: len(os.listdir("/proc/self/fd")) <= before)


async def test_200_stalled_readers_do_not_hold_a_thread(files: Files) -> None:
    async with serving(files, io_threads=4) as site:
        before = len(os.listdir("/proc/self/task"))
        stalled = [await slow_client(site) for _ in range(200)]
        for client in stalled:
            await client.send(get(f"/0/{24 * MIB}"))
        await eventually_async(lambda: sum(c.out is not None for c in site.state.connections) == 200)
        quick = await site.connect()
        assert len((await quick.ask(get(f"/0/{20 * MIB}"))).body) == 20 * MIB
        assert len(os.listdir("/proc/self/task")) < before + 20


async def test_a_stalled_reader_is_cut_off(files: Files) -> None:
    async with serving(files, body_timeout=0.2) as site:
        client = await slow_client(site)
        await client.send(get(f"/0/{24 * MIB}"))
        await eventually_async(lambda: files.sent)
        assert files.sent[0] < 24 * MIB
        await eventually_async(lambda: not site.state.connections)


async def test_a_reader_that_goes_on_is_not_cut_off(files: Files, content: bytes) -> None:
    async with serving(files, sweeps=False) as site:
        client = await slow_client(site, 64 * 1024)
        await client.send(get(f"/0/{24 * MIB}"))
        (connection,) = site.state.connections
        await eventually_async(lambda: connection.out)
        await client.head()
        body = bytearray()
        while len(body) < 24 * MIB:
            if connection.out:
                site.later(site.state.settings.body_timeout - 1)
            body += await client.reader.read(MIB)
            while connection.out and connection.write_progress < site.state.now:
                body += await client.reader.read(MIB)
        assert bytes(body) == content


@pytest.mark.parametrize(("nowait", "cached"), [(True, True), (True, False), (False, True)])
async def test_only_cached_bytes_are_sent_without_a_thread(
    files: Files, content: bytes, monkeypatch: pytest.MonkeyPatch, nowait: bool, cached: bool
) -> None:
    threads: set[int] = set()
    send_some = zerocopy._send_some

    def recorded(*arguments: Any) -> tuple[int, bytes]:
        threads.add(threading.get_ident())
        return send_some(*arguments)

    monkeypatch.setattr(zerocopy, "_send_some", recorded)
    monkeypatch.setattr(zerocopy, "is_cached", lambda *_: cached)
    files.nowait = nowait
    async with serving(files) as site:
        client = await slow_client(site, 64 * 1024)
        got = await client.ask(get(f"/100/{20 * MIB}"))
        assert got.body == content[100 : 20 * MIB + 100]
    assert (threading.get_ident() in threads) is (nowait and cached)
    assert bool(threads - {threading.get_ident()}) is not (nowait and cached)


async def test_what_has_left_the_page_cache_is_sent_in_a_thread(
    files: Files, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached = iter([True, False])
    monkeypatch.setattr(zerocopy, "is_cached", lambda *_: next(cached, False))
    monkeypatch.setattr(zerocopy, "CACHED_SECONDS", 0.0)
    async with serving(files) as site:
        client = await slow_client(site, 64 * 1024)
        assert (await client.ask(get(f"/100/{20 * MIB}"))).body == content[100 : 20 * MIB + 100]
        assert next(cached, None) is None
        await eventually_async(lambda: files.sent == [20 * MIB])
        assert (await client.ask(get("/quick"))).body == b"ok"


@pytest.mark.parametrize("evicted", [False, True])
@pytest.mark.parametrize("size", [10_000, zerocopy.COPIED_BYTES])
async def test_a_head_that_the_socket_takes_in_part(
    files: Files, content: bytes, monkeypatch: pytest.MonkeyPatch, size: int, evicted: bool
) -> None:
    send_some, cut = zerocopy._send_some, []

    def recorded(*arguments: Any) -> tuple[int, bytes]:
        taken, head = send_some(*arguments)
        cut.append(head)
        return taken, head

    monkeypatch.setattr(zerocopy, "_send_some", recorded)
    monkeypatch.setattr(zerocopy, "is_cached", lambda *_: not (evicted and any(cut)))
    monkeypatch.setattr(zerocopy, "CACHED_SECONDS", 0.0)
    async with serving(files) as site:
        client = await slow_client(site, 64 * 1024)
        asked = 0
        while not any(cut):
            assert asked < 5_000, "the socket took each head whole"
            await asyncio.wait_for(client.send(get(f"/{asked}/{size}")), 10)
            asked += 1
            await asyncio.sleep(0)
        for number in range(asked):
            assert (await client.answer()).body == content[number : number + size]
        await eventually_async(lambda: files.sent == [size] * asked)


async def test_a_file_that_leaves_the_page_cache_keeps_the_begin_of_its_request(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zerocopy, "is_cached", lambda *_: all(c.out is None for c in site.state.connections))
    monkeypatch.setattr(zerocopy, "CACHED_SECONDS", 0.0)
    async with serving(files) as site:
        client = await slow_client(site, 64 * 1024)
        await client.send(get(f"/0/{24 * MIB}"))
        await eventually_async(lambda: any(c.out for c in site.state.connections))
        ((cycle, began),) = site.state.running.items()
        site.state.boot_ms += 5_000
        while cycle.begun is not None:
            assert await client.reader.read(MIB)
        assert site.state.running[cycle] == began
        while not files.sent:
            assert await client.reader.read(MIB)


async def test_a_request_ends_that_is_cut_before_its_task_begins(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    def leaves(*_: Any) -> bool:
        if all(c.out is None for c in site.state.connections):
            return True
        asyncio.get_running_loop().call_soon(next(iter(site.state.running)).cut)
        return False

    monkeypatch.setattr(zerocopy, "is_cached", leaves)
    monkeypatch.setattr(zerocopy, "CACHED_SECONDS", 0.0)
    async with serving(files) as site:
        client = await slow_client(site, 64 * 1024)
        await client.send(get(f"/0/{24 * MIB}"))
        with suppress(ConnectionError):
            while await client.reader.read(MIB):
                pass
        await eventually_async(lambda: files.sent and not site.state.running)


async def test_a_file_that_ends_early_ends_the_connection(files: Files) -> None:
    async with serving(files) as site:
        client = await site.connect()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await client.ask(get(f"/{23 * MIB}/{2 * MIB}"))
        await eventually_async(lambda: files.sent)
        assert files.sent[0] < 2 * MIB


async def test_a_file_cut_while_it_is_sent_on_the_loop_ends_the_connection(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zerocopy, "is_cached", lambda *_: True)
    async with serving(files) as site:
        client = await slow_client(site)
        await client.send(get(f"/0/{24 * MIB}"))
        await eventually_async(lambda: any(c.out for c in site.state.connections))
        os.truncate(files.path, 0)
        while await client.reader.read(MIB):
            pass
        await eventually_async(lambda: files.sent)
        assert files.sent[0] < 24 * MIB
        await eventually_async(lambda: not site.state.connections and not site.state.running)


async def test_a_cancelled_answer_waits_for_its_thread(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """The application closes the file when `send` returns: no thread may be reading from that number then."""
    entered, leave, running = threading.Event(), threading.Event(), threading.Event()

    def hanging(*arguments: Any) -> tuple[int, bytes]:
        entered.set()
        running.set()
        leave.wait(20)
        running.clear()
        return 0, b""

    files.nowait = False
    monkeypatch.setattr(zerocopy, "_send_some", hanging)
    async with serving(files) as site:
        client = await site.connect()
        await client.send(get("/0/1000"))
        await eventually_async(entered.is_set)
        next(iter(site.state.running)).cut()
        await asyncio.sleep(0.02)
        assert running.is_set()
        assert not files.sent, "the answer ended while its thread still runs"
        leave.set()
        await eventually_async(lambda: files.sent)
        assert not running.is_set()
