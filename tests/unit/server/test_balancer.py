"""Connections that gather on few workers, and pass between them."""

from __future__ import annotations

import asyncio
import os
import random
import resource
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from sluice_s3.app.server.http.body_memory import BodyMemoryBudget
from sluice_s3.app.server.http.state import HttpState
from sluice_s3.app.server.processes import balancer as balancing
from sluice_s3.app.server.processes.acceptor import Acceptor, Listener
from sluice_s3.app.server.processes.balancer import Balancer, IdleCores, accepts, choose_gatherer, choose_relief
from sluice_s3.app.server.processes.child import Inherited, Role
from sluice_s3.app.server.processes.handover import Inbox, Inboxes
from sluice_s3.app.server.shared_memory.worker_loads import WorkerLoad, WorkerLoads
from sluice_s3.app.settings import Settings
from tests.support.raw_http import AsyncConnection
from tests.support.waiting import eventually, eventually_async
from tests.unit.server.apps import Served

MOST = 100
ECHO = b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b"


def loads(*workers: tuple[float, int]) -> dict[int, WorkerLoad]:
    """Loads of cores and connections, by workers."""
    return {number: WorkerLoad(cores, 0.0, count) for number, (cores, count) in enumerate(workers)}


def test_a_worker_accepts_nothing_while_one_before_it_has_room() -> None:
    assert accepts(0, loads((0.9, 10), (0, 0)), MOST)
    assert not accepts(1, loads((0.5, 10), (0, 0)), MOST)
    assert accepts(1, loads((0.8, 10), (0, 0)), MOST), "the first one is busy"
    assert accepts(1, loads((0.1, MOST), (0, 0)), MOST), "the first one has as many as it may have"
    assert accepts(1, {1: WorkerLoad(0.0, 0.0, 0)}, MOST), "the first one gives no sign of life"
    assert not accepts(2, loads((0.9, 1), (0.1, 1), (0, 0)), MOST)


def test_a_full_worker_accepts_only_where_all_are_full() -> None:
    assert not accepts(0, loads((0.1, MOST), (0.9, 10)), MOST), "it would refuse what the other one carries"
    assert accepts(1, loads((0.1, MOST), (0.9, 10)), MOST)
    assert all(accepts(own, loads((0.1, MOST), (0.9, MOST + 1)), MOST) for own in range(2))
    assert accepts(0, loads((0.1, MOST)), MOST)


def test_a_busy_worker_hands_half_of_the_difference_to_the_idlest() -> None:
    assert choose_relief(0, loads((1.0, 10), (0.7, 2), (0.0, 0)), MOST) == (2, 0.5)
    assert choose_relief(0, loads((1.0, 10), (0.5, 2)), MOST) == (1, 0.25)
    assert choose_relief(0, loads((1.0, 10), (0.8, 2)), MOST) is None, "the other is busy, too"
    assert choose_relief(0, loads((1.0, 10), (0.0, MOST)), MOST) is None
    assert choose_relief(0, loads((1.0, 10)), MOST) is None


def test_two_workers_with_little_to_do_gather_on_the_first() -> None:
    assert choose_gatherer(1, loads((0.2, 5), (0.2, 5)), MOST, idle=1.0) == 0
    assert choose_gatherer(0, loads((0.2, 5), (0.2, 5)), MOST, idle=1.0) is None
    assert choose_gatherer(1, loads((0.4, 5), (0.4, 5)), MOST, idle=1.0) is None, "they would be busy together"
    assert choose_gatherer(1, loads((0.4, 5), (0.4, 5)), MOST, idle=None) is None
    assert choose_gatherer(1, loads((0.4, 5), (0.4, 5)), MOST, idle=0.05) == 0, "nothing is left to win"
    assert choose_gatherer(1, loads((0.7, 5), (0.7, 5)), MOST, idle=0.05) is None, "they use the machine themselves"
    assert choose_gatherer(1, loads((0.1, 60), (0.1, 60)), MOST, idle=1.0) is None
    assert choose_gatherer(1, loads((0.1, 1), (0.1, 1), (0.1, 1)), MOST, idle=1.0) is None, "the last one goes first"
    assert choose_gatherer(2, loads((0.55, 1), (0.1, 1), (0.1, 1)), MOST, idle=1.0) == 1
    waiting = {0: WorkerLoad(0.1, 0.5, 5), 1: WorkerLoad(0.1, 0.5, 5)}
    assert choose_gatherer(1, waiting, MOST, idle=0.05) is None, "their stores' threads would be all in use"


def test_idle_cores_are_those_of_the_last_tick(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    cores = IdleCores(stat)
    assert cores.look(99.0) is None, "there is no such file"
    second = os.sysconf("SC_CLK_TCK")
    stat.write_text(f"cpu  1 2 3 {10 * second} {second} 0 0 0 0 0\ncpu0 1\n")
    assert cores.look(100.0) is None, "it has nothing to compare with"
    stat.write_text(f"cpu  1 2 3 {10 * second + second // 4} {second + second // 8} 0 0 0 0 0\ncpu0 1\n")
    assert cores.look(100.25) == pytest.approx(1.48)
    assert cores.look(200.0) is None


def test_loads_are_of_workers_that_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = (WorkerLoads(tmp_path / "loads", 3, create=create) for create in (True, False))
    assert own.read() == {}
    own.publish(2, WorkerLoad(0.5, 0.25, 7))
    assert other.read() == {2: WorkerLoad(0.5, 0.25, 7)}
    monkeypatch.setattr("sluice_s3.app.server.shared_memory.worker_loads.STALE_SECONDS", -1.0)
    assert other.read() == {}


def inbox_of(inboxes: Inboxes, worker: int) -> Inbox:
    """As in a process of its own, which has descriptors of its own."""
    receiving, sending = (tuple(map(os.dup, one)) for one in inboxes)
    return Inbox(Inboxes(receiving, sending), worker)


def test_a_full_inbox_takes_nothing() -> None:
    inboxes = Inboxes.open(2)
    sender, receiver = inbox_of(inboxes, 0), inbox_of(inboxes, 1)
    with closing(sender), closing(receiver), socket.socket() as passed:
        sent = 0
        while sender.send(1, passed.fileno(), listener=sent % 2, is_new=bool(sent % 3), idle_seconds=sent * 200.5):
            sent += 1
        taken = []
        while more := list(receiver.take()):
            taken += more
        wanted = [(n % 2, bool(n % 3), min(n * 401 // 2, 65_535)) for n in range(sent)]
        assert [(one.listener, one.is_new, one.idle_seconds) for one in taken] == wanted
        assert sent > balancing.MAX_HANDED
        for one in taken:
            assert os.fstat(one.socket.fileno()) == os.fstat(passed.fileno())
            one.socket.close()
    inboxes.close()
    assert Inboxes.open(1) == Inboxes()


def test_a_connection_waits_for_a_free_descriptor() -> None:
    """The kernel would close what a process has no descriptor for."""
    inboxes = Inboxes.open(2)
    sender, receiver = inbox_of(inboxes, 0), inbox_of(inboxes, 1)
    inboxes.close()
    with closing(sender), closing(receiver), socket.socket() as passed:
        assert sender.send(1, passed.fileno(), listener=0, is_new=False, idle_seconds=0)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        fillers: list[int] = []
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 16, hard))
            with suppress(OSError):
                while True:
                    fillers.append(os.dup(passed.fileno()))
            with pytest.raises(OSError, match="Too many open files"):
                next(receiver.take())
        finally:
            for filler in fillers:
                os.close(filler)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        (taken,) = receiver.take()
        assert os.fstat(taken.socket.fileno()) == os.fstat(passed.fileno())
        taken.socket.close()


def test_only_workers_inherit_inboxes() -> None:
    inherited = Inherited(0, {}, Inboxes((3,), (4,)))
    assert inherited.get_inboxes(Role("worker", 0, "", (), tls=False)) == Inboxes((3,), (4,))
    assert inherited.get_inboxes(Role("admin", 2, "", (), tls=False)) == Inboxes()


class Pair:
    """Two workers in one process."""

    def __init__(self, directory: Path, config: uvicorn.Config) -> None:
        settings = Settings(data=directory)
        loads = WorkerLoads(directory / "loads", 2, create=True)
        inboxes = Inboxes.open(2)
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.states = [HttpState(settings, BodyMemoryBudget(settings.max_body_memory)) for _ in range(2)]
        made: Any = Served()  # an application, which its base class types as something served
        self.acceptors = [
            Acceptor(state, [Listener(self.listening.dup(), None)], made, config, starts_eagerly=True)
            for state in self.states
        ]
        self.balancers = [
            Balancer(state, acceptor, inbox_of(inboxes, number), loads, number, lambda: 0.0)
            for number, (state, acceptor) in enumerate(zip(self.states, self.acceptors, strict=True))
        ]
        inboxes.close()
        for one in self.balancers:
            one.start()

    async def connect(self) -> AsyncConnection:
        return AsyncConnection(*await asyncio.open_connection(*self.listening.getsockname()))

    def connections(self) -> list[int]:
        return [len(state.connections) for state in self.states]

    def hand_over(self, own: int, count: int) -> None:
        self.balancers[own]._hand_over(list(self.states[own].connections), count, 1 - own)

    async def stop(self, worker: int) -> None:
        self.balancers.pop(worker).stop()
        await self.acceptors.pop(worker).end()

    async def close(self) -> None:
        while self.balancers:
            await self.stop(0)
        for state in self.states:
            for connection in list(state.connections):
                connection.abort()
        self.listening.close()


@asynccontextmanager
async def pair_of_workers(directory: Path, **options: Any) -> AsyncIterator[Pair]:
    config = uvicorn.Config(Served(), interface="asgi3", log_config=None, **options)
    config.load()
    pair = Pair(directory, config)
    try:
        await eventually_async(lambda: pair.acceptors[0].is_open and not pair.acceptors[1].is_open)
        yield pair
    finally:
        await pair.close()
        await asyncio.sleep(0)


async def test_a_busy_worker_is_relieved_and_clients_do_not_notice(tmp_path: Path) -> None:
    async with pair_of_workers(tmp_path) as pair:
        clients = [await pair.connect() for _ in range(8)]
        for client in clients:
            assert (await client.ask(ECHO % (1, b"a"))).body == b"a"
        assert pair.connections() == [8, 0]
        before = loads((0.95, 8), (0.0, 0))
        for _ in range(balancing.BUSY_TICKS - 1):
            pair.balancers[0]._balance(before, 1.0)
        await asyncio.sleep(0.05)
        assert pair.connections() == [8, 0], "a moment of load is no reason"
        pair.balancers[0]._balance(before, 1.0)
        await eventually_async(lambda: pair.connections() == [4, 4])
        for number, client in enumerate(clients):
            assert (await client.ask(ECHO % (2, b"%02d" % number))).body == b"%02d" % number
        for _ in range(balancing.GATHER_TICKS):
            pair.balancers[1]._balance(loads((0.1, 4), (0.1, 4)), 1.0)
        await asyncio.sleep(0.05)
        assert pair.connections() == [4, 4], "what relieves stays for a while"
        pair.balancers[1]._keeps_until = 0.0
        pair.balancers[1]._gather_ticks = 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pair.balancers[1], "_hand_over", lambda *_: pytest.fail("a moment without load is no reason"))
            pair.balancers[1]._balance(loads((0.1, 4), (0.1, 4)), 1.0)
        pair.balancers[1]._balance(loads((0.1, 4), (0.1, 4)), 1.0)
        await eventually_async(lambda: pair.connections() == [8, 0])
        for client in clients:
            assert (await client.ask(ECHO % (1, b"b"))).body == b"b"
            client.close()


@pytest.mark.parametrize(("by_loop", "moved"), [(0.99, True), (0.6, False)])
async def test_a_full_event_loop_needs_less_of_a_core_to_spare(tmp_path: Path, by_loop: float, moved: bool) -> None:
    async with pair_of_workers(tmp_path) as pair:
        clients = [await pair.connect() for _ in range(8)]
        for client in clients:
            assert (await client.ask(ECHO % (1, b"a"))).body == b"a"
        pair.balancers[0]._loop_cores = by_loop
        for _ in range(balancing.BUSY_TICKS):
            pair.balancers[0]._balance(loads((1.05, 8), (0.0, 0)), 0.4)
        if moved:
            await eventually_async(lambda: pair.connections() == [4, 4])
        else:
            await asyncio.sleep(0.05)
            assert pair.connections() == [8, 0]
        for client in clients:
            client.close()


async def test_a_worker_whose_store_has_no_thread_left_is_relieved(tmp_path: Path) -> None:
    """However much of the machine others use: each worker has threads of its own."""
    async with pair_of_workers(tmp_path) as pair:
        clients = [await pair.connect() for _ in range(4)]
        for client in clients:
            assert (await client.ask(ECHO % (1, b"a"))).body == b"a"
        waiting = {0: WorkerLoad(0.2, 1.0, 4), 1: WorkerLoad(0.0, 0.0, 0)}
        for _ in range(balancing.BUSY_TICKS):
            pair.balancers[0]._balance(waiting, 0.0)
        await eventually_async(lambda: pair.connections() == [2, 2])
        for client in clients:
            client.close()


async def test_an_idle_connection_is_no_younger_in_another_worker(tmp_path: Path) -> None:
    async with pair_of_workers(tmp_path) as pair:
        client = await pair.connect()
        assert (await client.ask(ECHO % (1, b"a"))).body == b"a"
        (connection,) = pair.states[0].connections
        connection.since -= 60
        pair.hand_over(0, 1)
        await eventually_async(lambda: pair.connections() == [0, 1])
        (connection,) = pair.states[1].connections
        assert 55 < pair.states[1].now - connection.since < 65
        client.close()


async def test_what_is_in_the_middle_of_something_stays(tmp_path: Path) -> None:
    async with pair_of_workers(tmp_path) as pair:
        running, head, idle = [await pair.connect() for _ in range(3)]
        running.writer.write(b"GET /sleep?0.3 HTTP/1.1\r\nHost: h\r\n\r\n")
        head.writer.write(b"GET /echo HT")
        await eventually_async(lambda: pair.connections()[0] == 3)
        await eventually_async(lambda: sum(one.is_between_requests() for one in pair.states[0].connections) == 1)
        pair.hand_over(0, 3)
        await eventually_async(lambda: pair.connections() == [2, 1])
        head.writer.write(b"TP/1.1\r\nHost: h\r\n\r\n")
        assert (await head.answer()).status == 200
        assert (await running.answer()).body == b"slept"
        assert (await idle.ask(ECHO % (1, b"c"))).body == b"c"
        for client in (running, head, idle):
            client.close()


async def test_no_answer_is_lost_or_wrong_while_connections_move(tmp_path: Path) -> None:
    async with pair_of_workers(tmp_path) as pair:
        done = asyncio.Event()

        async def ask(number: int) -> int:
            client, count = await pair.connect(), 0
            while not done.is_set():
                body = b"%d %d " % (number, count) * (1 + 977 * (count % 3))
                assert (await client.ask(ECHO % (len(body), body))).body == body
                count += 1
            client.close()
            return count

        asking = asyncio.gather(*(ask(number) for number in range(8)))
        moves, chance = 0, random.Random(5)
        while moves < 200 and not asking.done():
            before = pair.connections()
            pair.hand_over(chance.randrange(2), chance.randrange(1, 5))
            await asyncio.sleep(0.001)
            moves += pair.connections() != before
        done.set()
        assert min(await asking) > 20
        assert moves == 200


async def test_a_stop_loses_no_connection_that_is_in_the_inbox(tmp_path: Path) -> None:
    async with pair_of_workers(tmp_path) as pair:
        client = await pair.connect()
        assert (await client.ask(ECHO % (1, b"a"))).body == b"a"
        pair.hand_over(0, 1)
        client.writer.write(ECHO % (1, b"b"))
        await pair.stop(1)
        assert len(pair.states[1].connections) == 1, "else the worker ends now"
        assert (await client.answer()).body == b"b"
        client.close()


async def test_a_relieving_worker_gets_no_more_than_it_may_have(tmp_path: Path) -> None:
    async with pair_of_workers(tmp_path) as pair:
        clients = [await pair.connect() for _ in range(8)]
        for client in clients:
            await client.ask(ECHO % (1, b"a"))
        pair.balancers[0]._busy_ticks = balancing.BUSY_TICKS
        pair.balancers[0]._most = 3
        pair.balancers[0]._balance(loads((0.95, 8), (0.0, 1)), 1.0)
        await eventually_async(lambda: pair.connections() == [6, 2])
        for client in clients:
            client.close()


async def test_all_listeners_open_or_none_and_no_descriptor_stays(tmp_path: Path) -> None:
    async with pair_of_workers(tmp_path) as pair:
        config: Any = SimpleNamespace(ssl=None, backlog=1)
        state, listening = pair.states[1], Listener(pair.listening, None)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            acceptor = Acceptor(state, [listening, Listener(datagrams, None)], None, config, starts_eagerly=True)
            with pytest.raises((OSError, ValueError)):
                await acceptor.open()
            assert not acceptor.is_open
        before = len(os.listdir("/proc/self/fd"))
        acceptor = Acceptor(state, [listening], None, config, starts_eagerly=True)
        for _ in range(5):
            await acceptor.open()
            acceptor.close()
        await eventually_async(lambda: len(os.listdir("/proc/self/fd")) <= before)


@pytest.mark.slow
def test_connections_gather_on_the_first_worker_and_survive_its_death(launch: Any) -> None:
    server = launch(workers=2, gather_connections=True).ready()
    eventually(lambda: len(server.pids()) == 1)
    first = server.pids()
    os.kill(first.pop(), signal.SIGKILL)
    assert server.get("/pid"), "another worker accepts it"
    eventually(lambda: len(server.pids()) == 1)
