"""Threads that can be given up."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError, Future

import pytest

from storage_drivers.errors import StoreFailed, StoreSilent
from storage_drivers.threads import Threads


class Result:
    """What somebody must give back."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def release(self) -> None:
        """Note it."""
        self.released.set()


def hanging(threads: Threads, count: int) -> tuple[threading.Event, list[Future[bool]]]:
    """Calls that run until the event is set, each in a thread."""
    go_on, running = threading.Event(), threading.Semaphore(0)

    def hang() -> bool:
        running.release()
        return go_on.wait(30)

    calls = [threads.submit(hang) for _ in range(count)]
    for _ in range(count):
        assert running.acquire(timeout=30)
    return go_on, calls


def test_more_threads_than_that_are_never_made() -> None:
    threads = Threads(2)
    go_on, calls = hanging(threads, 2)
    third = threads.submit(threading.get_ident)
    assert (len(threads.running()), threads.waiting()) == (2, 1)
    go_on.set()
    third.result(30)
    assert [call.result(30) for call in calls] == [True, True]
    assert threads.running() == []
    threads.shutdown()


def test_what_hangs_is_the_same_at_two_looks() -> None:
    threads = Threads(2)
    go_on, _ = hanging(threads, 1)
    before = threads.running()
    threads.submit(int).result(30)
    assert [call for call in threads.running() if call in before] == before
    go_on.set()
    threads.shutdown()


def test_given_up() -> None:
    """Whoever waits is told at once; nothing that waited is begun, and what comes late is given back."""
    threads, result, ran = Threads(2), Result(), threading.Event()
    go_on, calls = hanging(threads, 1)
    running = threading.Event()

    def late() -> Result:
        running.set()
        go_on.wait(30)
        return result

    opening = threads.submit(late)
    assert running.wait(30)
    queued = threads.submit(ran.set)
    threads.give_up(StoreSilent("it does not answer"))
    for call in (*calls, opening, queued):
        with pytest.raises(StoreSilent):
            call.result(0)
    with pytest.raises(RuntimeError):
        threads.submit(int)
    go_on.set()
    assert result.released.wait(30)
    threads.shutdown()
    assert not ran.is_set()


def test_a_cancelled_call_is_not_begun() -> None:
    threads = Threads(1)
    go_on, _ = hanging(threads, 1)
    ran = threading.Event()
    queued = threads.submit(ran.set)
    assert queued.cancel()
    go_on.set()
    threads.shutdown()
    with pytest.raises(CancelledError):
        queued.result(0)
    assert not ran.is_set()


def test_failures_of_the_mount_are_counted() -> None:
    threads = Threads(1)

    def fail(error: Exception) -> None:
        raise error

    for error, troubles in ((ValueError(), 0), (OSError(), 1), (StoreFailed(), 2)):
        with pytest.raises(type(error)):
            threads.submit(fail, error).result(30)
        assert threads.troubles == troubles
    threads.shutdown()
