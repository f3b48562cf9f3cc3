"""The threads of one store: which calls run, and an end for those who wait when the mount does not answer.

A call that hangs in the kernel cannot be ended. So whoever waits for it is told, the thread is left alone, and the
store goes on with other threads. Nothing ever waits for these threads, not even the end of the process.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, InvalidStateError
from typing import Any, ParamSpec, TypeVar

from storage_drivers.errors import BlobDamaged, DriverError

P = ParamSpec("P")
T = TypeVar("T")


class Call:
    """A call of somebody's, in a queue or in a thread."""

    __slots__ = ("arguments", "function", "future", "named")

    def __init__(
        self, future: Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
    ) -> None:
        self.future = future
        self.function = function
        self.arguments = arguments
        self.named = named


class Threads(Executor):
    """At most `most` threads, made as they are needed; more calls wait in a queue."""

    def __init__(self, most: int, name: str = "store") -> None:
        self._most = most
        self._name = name
        self._queue: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        """Threads that wait and were not thought of for a call yet; never fewer than that."""
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._running: list[Call | None] = []
        """What each thread does."""
        self._closed = False
        self._given_up: DriverError | None = None
        self.refused: DriverError | None = None
        """Take no calls for now, for this reason."""
        self.troubles = 0
        """Calls that failed by the mount: a reason to look at it."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call in a thread. Raises RuntimeError once closed, and what `refused` says."""
        if self._closed:
            raise RuntimeError("the threads are closed")
        if self.refused is not None:
            raise self.refused
        future: Future[T] = Future()
        call = Call(future, fn, args, kwargs)
        if self._idle.acquire(blocking=False) or not self._start(call):
            self._queue.put(call)
        return future

    def _start(self, first: Call) -> bool:
        with self._lock:
            number = len(self._threads)
            if number == self._most:
                return False
            self._running.append(None)
            name = f"{self._name}-{number}"
            thread = threading.Thread(target=self._work, args=(number, first), name=name, daemon=True)
            self._threads.append(thread)
        thread.start()
        return True

    def _work(self, number: int, first: Call) -> None:
        running = self._running
        call: Call | None = first
        while True:
            if call is None:
                try:
                    call = self._queue.get_nowait()
                except queue.Empty:
                    self._idle.release()
                    call = self._queue.get()
            if call is None:
                self._queue.put(None)
                return
            running[number] = call
            if self._given_up is not None:  # after it is noted as running: one of the two sees the other
                _fail(call, self._given_up)
            elif _is_wanted(call):
                self._run(call)
            running[number] = call = None

    def _run(self, call: Call) -> None:
        try:
            result = call.function(*call.arguments, **call.named)
        except BaseException as error:
            if isinstance(error, OSError | DriverError) and not isinstance(error, BlobDamaged):
                self.troubles += 1
            _fail(call, error)
            return
        try:
            call.future.set_result(result)
        except InvalidStateError:  # given up: nobody takes it
            release = getattr(result, "release", None)
            if release is not None:
                release()

    def running(self) -> list[object]:
        """What runs now, each with an identity of its own: what is there at two looks has run between them."""
        return [call for call in self._running if call is not None]

    def waiting(self) -> int:
        """How many calls wait for a thread."""
        return self._queue.qsize()

    def give_up(self, error: DriverError) -> None:
        """Take no more, and fail whatever runs or waits; what hangs goes on hanging, for nobody."""
        self._closed = True
        self._given_up = error
        for call in self._running:
            if call is not None:
                _fail(call, error)
        self._empty(error)
        self._queue.put(None)

    def _empty(self, error: DriverError | None) -> None:
        while True:
            try:
                call = self._queue.get_nowait()
            except queue.Empty:
                return
            if call is not None and (error is None or _is_wanted(call)):
                call.future.cancel() if error is None else _fail(call, error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more; threads end after what is queued. `wait` for them only where nothing can hang."""
        self._closed = True
        if cancel_futures:
            self._empty(None)
        self._queue.put(None)
        for thread in self._threads if wait else ():
            thread.join()


def _is_wanted(call: Call) -> bool:
    """False when it was cancelled, or given up by now."""
    try:
        return not call.future.done() and call.future.set_running_or_notify_cancel()
    except (InvalidStateError, RuntimeError):
        return False


def _fail(call: Call, error: BaseException) -> None:
    try:
        call.future.set_exception(error)
    except InvalidStateError:
        pass  # given up, or cancelled
