"""Threads that nothing waits for, and those of one store, which callers can abandon when the mount hangs.

A call that hangs in the kernel cannot be ended. So its caller gets an error, the thread is abandoned, and the store
goes on with other threads. Nothing ever waits for these threads, not even the end of the process.

Futures are the event loop's own, and results that arrive while it is busy share one wake-up: a call through
`concurrent.futures` costs three times as much CPU.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from _thread import start_new_thread
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from sluice_s3.storage_drivers.errors import BlobDamaged, DriverError, StoreFailed

P = ParamSpec("P")
T = TypeVar("T")

START_SECONDS = 2.0
"""Longest wait for a thread to begin."""
RETRY_SECONDS = 0.05
"""Pause of a thread that has no memory to pass its result on."""


class BackgroundThread:
    """A daemon thread whose start ends, also where memory lacks.

    `threading.Thread.start` waits until the thread runs: for ever, if there is no memory for its first frame, since
    the thread then ends in silence (CPython 3.11 to 3.14). An event loop would stand still.
    """

    def __init__(self, run: Callable[[], object]) -> None:
        """Start it. Raises RuntimeError where the system gives no thread, or none that begins in time."""
        self._run = run
        self._turn, self._begun, self._ended = threading.Lock(), threading.Lock(), threading.Lock()
        self._begun.acquire()
        self._ended.acquire()
        start_new_thread(self._play, ())
        if not self._begun.acquire(timeout=START_SECONDS) and self._turn.acquire(blocking=False):
            raise RuntimeError("can't start new thread")  # Python's words; `run` will never run

    def _play(self) -> None:
        if not self._turn.acquire(blocking=False):
            return  # it begins too late
        try:
            self._begun.release()
            self._run()
        finally:
            self._ended.release()

    def join(self, seconds: float) -> bool:
        """Wait for its end, at most so long; return whether it has ended."""
        ended = self._ended.acquire(timeout=seconds)
        if ended:
            self._ended.release()
        return ended


class Call:
    """A call in a queue or in a thread."""

    __slots__ = ("arguments", "completions", "function", "future", "kwargs")

    def __init__(
        self,
        completions: LoopCompletions,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.completions = completions
        self.future: asyncio.Future[Any] = completions.loop.create_future()
        self.function = function
        self.arguments = arguments
        self.kwargs = kwargs

    def run(self) -> tuple[Any, BaseException | None]:
        """Run the call in a thread; return its result or its error."""
        try:
            return self.function(*self.arguments, **self.kwargs), None
        except StopIteration as error:  # no future accepts it
            return None, RuntimeError(repr(error))
        except BaseException as error:  # the caller gets it
            return None, error

    def end(self, result: Any, error: BaseException | None) -> None:
        """Resolve the future on the event loop. A result without a taker is released."""
        if self.future.done():
            _release(result)
        elif error is None:
            self.future.set_result(result)
        else:
            self.future.set_exception(error)
            self.future.exception()  # or asyncio would log it, if its caller has gone


class LoopCompletions:
    """Delivery of results to the event loop of their calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.pending = 0
        """Calls without a result so far."""
        self._results: deque[tuple[Call, Any, BaseException | None]] = deque()
        self._wakeup_scheduled = False

    def post(self, call: Call, result: Any, error: BaseException | None) -> None:
        """Queue a result in a thread."""
        while True:
            try:
                self._results.append((call, result, error))
                break
            except MemoryError:
                time.sleep(RETRY_SECONDS)  # nothing else ends the call
        while not self._wakeup_scheduled:  # cleared before the queue is emptied
            self._wakeup_scheduled = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
                return
            except MemoryError:
                self._wakeup_scheduled = False
                time.sleep(RETRY_SECONDS)
            except RuntimeError:  # the loop is closed, and nothing waits
                self._wakeup_scheduled = False
                while self._results:
                    _release(self._results.popleft()[1])
                return

    def _deliver(self) -> None:
        self._wakeup_scheduled = False
        while self._results:
            call, result, error = self._results.popleft()
            self.pending -= 1
            with suppress(MemoryError):  # the other calls have their ends
                call.end(result, error)


class StoreThreadPool:
    """At most `most` threads, created on demand; further calls wait in a queue."""

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        self._queue: queue.SimpleQueue[Call | None] = queue.SimpleQueue()
        self._running: list[Call | None] = []
        """The current call of each thread."""
        self._completions: LoopCompletions | None = None
        self._closed = False
        self._abandon_error: DriverError | None = None
        self.refused: DriverError | None = None
        """The reason why calls are refused for now, if any."""
        self.troubles = 0
        """Calls that failed by the mount: a reason to check it."""

    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[T]:
        """Call in a thread.

        Cancelling the future prevents a call that has not begun; a running one goes on, and a result with a `release`
        is released. Raises StoreFailed once closed and where no thread can be started, and the error in `refused`.
        """
        if self._closed:
            raise StoreFailed("the store is closed")
        if self.refused is not None:
            raise self.refused
        completions = self._completions
        if completions is None or completions.loop is not asyncio.get_running_loop():
            completions = self._completions = LoopCompletions(asyncio.get_running_loop())
        if len(self._running) < min(self._max_threads, completions.pending + 1):
            self._start()
        call = Call(completions, function, args, kwargs)
        completions.pending += 1
        self._queue.put(call)
        return call.future

    def _start(self) -> None:
        """Start another thread. Where the system gives none, those that run do with what they are."""
        number = len(self._running)
        self._running.append(None)
        try:
            BackgroundThread(lambda: self._work(number))
        except (RuntimeError, MemoryError) as error:
            self._running.pop()  # or it would count as one that serves the queue
            if not self._running:
                raise StoreFailed(f"no thread can be started: {error}") from error

    def _work(self, number: int) -> None:
        running = self._running
        while True:
            call = self._queue.get()
            if call is None:
                self._queue.put(None)
                return
            running[number] = call
            self._serve(call)
            running[number] = call = None

    def _serve(self, call: Call) -> None:
        if (
            self._abandon_error is not None or call.future.done()
        ):  # after it is noted as running: one of the two sees the other
            call.completions.post(call, None, self._abandon_error)
            return
        result, error = call.run()
        if isinstance(error, OSError | DriverError) and not isinstance(error, BlobDamaged):
            self.troubles += 1
        call.completions.post(call, result, error)

    def running(self) -> list[object]:
        """Return the running calls.

        Each has its own identity: a call returned twice ran all the time between.
        """
        return [call for call in self._running if call is not None]

    def waiting(self) -> int:
        """Return how many calls wait for a thread."""
        return self._queue.qsize()

    def give_up(self, error: DriverError) -> None:
        """Refuse new calls, and fail all running and waiting ones.

        Hanging calls go on without a caller.
        """
        self._closed = True
        self._abandon_error = error
        for call in self._running:
            if call is not None:
                call.end(None, error)
        while True:
            try:
                waiting = self._queue.get_nowait()
            except queue.Empty:
                break
            if waiting is not None:
                waiting.end(None, error)
        self._queue.put(None)

    def shutdown(self) -> None:
        """Refuse new calls; threads end after queued ones.

        It does not wait for the threads, since any may hang.
        """
        self._closed = True
        self._queue.put(None)


def _release(result: Any) -> None:
    release = getattr(result, "release", None)
    if release is not None:
        release()
