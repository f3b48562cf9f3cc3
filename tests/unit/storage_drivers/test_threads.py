"""Threads that can be given up."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sluice_s3.storage_drivers.errors import BlobDamaged, StoreFailed, StoreSilent
from sluice_s3.storage_drivers.threads import BackgroundThread, StoreThreadPool
from tests.support.waiting import eventually_async


class Late:
    """A call that ends when it may, with what must be given back: itself."""

    def __init__(self) -> None:
        self.running, self.go_on, self.released = threading.Event(), threading.Event(), threading.Event()

    def __call__(self) -> Late:
        self.running.set()
        self.go_on.wait(30)
        return self

    def release(self) -> None:
        """Note it."""
        self.released.set()


async def hanging(threads: StoreThreadPool, count: int) -> tuple[threading.Event, list[asyncio.Future[bool]]]:
    """Calls that run until the event is set, each in a thread."""
    go_on, running = threading.Event(), threading.Semaphore(0)

    def hang() -> bool:
        running.release()
        return go_on.wait(30)

    calls = [threads.call(hang) for _ in range(count)]
    for _ in range(count):
        await eventually_async(lambda: running.acquire(blocking=False))
    return go_on, calls


async def test_more_threads_than_that_are_never_made() -> None:
    threads = StoreThreadPool(2)
    go_on, calls = await hanging(threads, 2)
    third = threads.call(threading.get_ident)
    assert (len(threads.running()), threads.waiting()) == (2, 1)
    go_on.set()
    await third
    assert await asyncio.gather(*calls) == [True, True]
    await eventually_async(lambda: threads.running() == [])
    threads.shutdown()


async def test_a_thread_serves_those_who_come_one_after_another() -> None:
    threads = StoreThreadPool(8)
    assert len({await threads.call(threading.get_ident) for _ in range(20)}) == 1
    threads.shutdown()


async def test_many_calls_at_once_all_come_back() -> None:
    threads = StoreThreadPool(8)
    assert await asyncio.gather(*(threads.call(divmod, number, 7) for number in range(2000))) == [
        divmod(number, 7) for number in range(2000)
    ]
    threads.shutdown()


async def test_what_hangs_is_the_same_at_two_looks() -> None:
    threads = StoreThreadPool(2)
    go_on, _ = await hanging(threads, 1)
    before = threads.running()
    await threads.call(int)
    assert [call for call in threads.running() if call in before] == before
    go_on.set()
    threads.shutdown()


async def test_given_up() -> None:
    """Whoever waits is told at once; nothing that waited is begun, and what comes late is given back."""
    threads, late, ran = StoreThreadPool(2), Late(), threading.Event()
    go_on, calls = await hanging(threads, 1)
    opening = threads.call(late)
    await eventually_async(late.running.is_set)
    queued = threads.call(ran.set)
    threads.give_up(StoreSilent("it does not answer"))
    for call in (*calls, opening, queued):
        with pytest.raises(StoreSilent):
            call.result()
    with pytest.raises(StoreFailed):
        threads.call(int)
    go_on.set()
    late.go_on.set()
    await eventually_async(late.released.is_set)
    threads.shutdown()
    assert not ran.is_set()


async def test_a_cancelled_call_is_not_begun() -> None:
    threads = StoreThreadPool(1)
    go_on, _ = await hanging(threads, 1)
    ran = threading.Event()
    queued = threads.call(ran.set)
    assert queued.cancel()
    go_on.set()
    await threads.call(int)
    threads.shutdown()
    assert not ran.is_set()


async def test_what_comes_for_a_cancelled_caller_is_given_back() -> None:
    threads, late = StoreThreadPool(1), Late()
    opening = threads.call(late)
    await eventually_async(late.running.is_set)
    assert opening.cancel()
    assert not late.released.is_set()
    late.go_on.set()
    await eventually_async(late.released.is_set)
    threads.shutdown()


def test_what_comes_after_the_end_of_the_loop_is_given_back() -> None:
    threads, late = StoreThreadPool(2), [Late(), Late()]

    async def begin() -> None:
        for call in late:
            threads.call(call)

    asyncio.run(begin())
    for call in late:  # the second finds what the first left
        call.go_on.set()
        assert call.released.wait(30)

    async def again() -> int:
        return await threads.call(int)

    assert asyncio.run(again()) == 0, "another loop has its own way back"
    threads.shutdown()


async def test_failures_of_the_mount_are_counted() -> None:
    threads = StoreThreadPool(1)

    def fail(error: Exception) -> None:
        raise error

    for error, troubles in ((ValueError(), 0), (BlobDamaged(), 0), (OSError(), 1), (StoreFailed(), 2)):
        with pytest.raises(type(error)):
            await threads.call(fail, error)
        assert threads.troubles == troubles
    threads.shutdown()


async def test_an_error_that_nobody_takes_is_not_logged() -> None:
    """As of a piece that was read ahead for somebody who has gone."""
    threads, said = StoreThreadPool(1), list[dict[str, Any]]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))

    def fail() -> None:
        raise OSError

    failing = threads.call(fail)
    await eventually_async(failing.done)
    del failing
    gc.collect()
    assert said == []
    with pytest.raises(RuntimeError):  # what no future takes
        await threads.call(next, iter(()))
    threads.shutdown()


async def test_threads_that_cannot_be_started_serve_nothing_and_count_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found by the lab: a pool whose threads did not start took calls that nobody ever ran."""
    threads = StoreThreadPool(2)

    def refuse(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr("sluice_s3.storage_drivers.threads.start_new_thread", refuse)
        for _ in range(5):
            with pytest.raises(StoreFailed, match="no thread can be started"):
                threads.call(threading.get_ident)
    go_on, calls = await hanging(threads, 1)
    with monkeypatch.context() as patch:
        patch.setattr("sluice_s3.storage_drivers.threads.start_new_thread", refuse)
        late = threads.call(threading.get_ident)
    go_on.set()
    await asyncio.gather(*calls, late)
    again, both = await hanging(threads, 2)
    again.set()
    await asyncio.gather(*both)
    threads.shutdown()


class Forgetful(asyncio.Future[Any]):
    """A future that has no memory for its result."""

    def set_result(self, result: Any) -> None:
        raise MemoryError


async def test_a_result_arrives_once_there_is_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, no result of the store arrived any more."""
    loop, threads, failed = asyncio.get_running_loop(), StoreThreadPool(2), threading.Event()
    wake = loop.call_soon_threadsafe

    def fail(*_: Any, **__: Any) -> None:
        failed.set()
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(loop, "call_soon_threadsafe", fail)
        first = threads.call(lambda: "first")
        await eventually_async(failed.is_set)
    assert loop.call_soon_threadsafe == wake
    assert await asyncio.wait_for(first, 30) == "first"
    with monkeypatch.context() as patch:
        patch.setattr(loop, "create_future", lambda: Forgetful(loop=loop))
        lost = threads.call(lambda: "lost")
    assert await asyncio.wait_for(threads.call(lambda: "next"), 30) == "next"
    assert not lost.done()
    lost.cancel()
    threads.shutdown()


WITHOUT_MEMORY = """
import resource, threading
from sluice_s3.storage_drivers import threads

threads.START_SECONDS = 0.2
go_on = threading.Event()
before = [threading.Thread(target=go_on.wait) for _ in range(40)]
for thread in before:
    thread.start()
go_on.set()
for thread in before:  # their stacks stay with the process, so that the system can give a thread
    thread.join()
with open("/proc/self/status") as status:
    size = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmSize:"))
ran = []
waiting = threading.Event()
resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
for number in range(40):
    try:
        threads.BackgroundThread(lambda: (ran.append(number), waiting.wait()))
    except (RuntimeError, MemoryError):
        break
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(len(ran) == number < 39)
"""


def test_the_start_of_a_thread_ends_where_memory_lacks() -> None:
    """Found by the lab: three processes of a gateway waited in `threading.Thread.start` for ever."""
    program = [sys.executable, "-c", WITHOUT_MEMORY]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
    assert "Exception ignored in thread started by" in done.stderr


def test_a_thread_that_begins_too_late_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    begin: list[Callable[[], None]] = []

    def start_later(play: Callable[[], None], _: tuple[()]) -> int:
        begin.append(play)
        return 1

    monkeypatch.setattr("sluice_s3.storage_drivers.threads.start_new_thread", start_later)
    monkeypatch.setattr("sluice_s3.storage_drivers.threads.START_SECONDS", 0.01)
    ran: list[str] = []
    with pytest.raises(RuntimeError, match="can't start new thread"):
        BackgroundThread(lambda: ran.append("it"))
    begin[0]()
    assert ran == []


def test_a_thread_can_be_waited_for() -> None:
    go_on = threading.Event()
    thread = BackgroundThread(lambda: go_on.wait(30))
    assert not thread.join(0.01)
    go_on.set()
    assert thread.join(30)
    assert thread.join(0)
