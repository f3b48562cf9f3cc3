"""Simulated time and threads: one thread runs at a time, and a seed decides which.

Every thread of the simulated programs is a real thread that waits for its turn. It passes the turn on at each lock,
queue, system call and look of its event loop. The clock goes on a little with each turn, and jumps when all threads
wait.
"""

from __future__ import annotations

import _thread
import asyncio
import queue
import random
import selectors
from collections import deque
from collections.abc import Callable
from math import inf
from typing import Any

TURN_SECONDS = 2e-6
"""Simulated seconds of a turn."""
BEGIN = 1_700_000_000.0


class Stuck(RuntimeError):
    """All threads wait for each other."""


class Killed(BaseException):
    """Ends the threads of a killed process. Whatever they still do on the way out has no effect."""


class Process:
    """Threads that are killed together, and what the kernel then closes."""

    def __init__(self) -> None:
        self.killed = False
        self.fds: set[int] = set()
        self.connections: list[Any] = []
        """Of SQLite."""


class Task:
    """A simulated thread."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.turn = _thread.allocate_lock()
        self.turn.acquire()
        self.ready: Callable[[], bool] | None = None
        """Whether it can go on before its deadline; None: it can."""
        self.deadline = inf


class Scheduler:
    """The threads of one trial. The thread that creates it is the first, and decides when the power fails."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = BEGIN
        self.clock_error = 0.0
        """Seconds by which the wall clock is wrong."""
        self.steps = 0
        self.cut_at: float = inf
        """The step at which the first thread goes on."""
        self.first = self.current = Task(Process())
        self.tasks = [self.first]

    def start(self, run: Callable[[], None], process: Process | None = None) -> Task:
        """Add a thread, to the process of the current one unless another is given."""
        self.require_alive()
        task = Task(process or self.current.process)
        self.tasks.append(task)

        def begin() -> None:
            task.turn.acquire()
            try:
                self.require_alive()
                run()
            except Killed:
                pass
            finally:
                self.tasks.remove(task)
                if task.process.killed:
                    self.current = self.first
                    self.first.turn.release()
                else:
                    self._choose().turn.release()

        _thread.start_new_thread(begin, ())
        return task

    def require_alive(self) -> None:
        """Raise Killed in a thread of a killed process."""
        if self.current.process.killed:
            raise Killed

    def kill(self, process: Process) -> None:
        """End a process as kill -9 does: each of its threads ends where it waits."""
        process.killed = True
        for task in [task for task in self.tasks if task.process is process]:
            self.current = task
            task.turn.release()
            self.first.turn.acquire()

    def pause(self) -> None:
        """Let any other thread go on."""
        self._switch(None, inf)

    def sleep(self, seconds: float) -> None:
        """Wait for simulated time."""
        self._switch(_never, self.now + seconds)

    def wait(self, ready: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until it is so, and return whether it is."""
        self._switch(ready, inf if seconds is None else self.now + max(seconds, 0))
        return ready()

    def run_for(self, steps: int, ended: Callable[[], bool]) -> None:
        """Run the others for so many steps or until they have ended."""
        self.cut_at = self.steps + steps
        self._switch(lambda: self.steps >= self.cut_at or ended(), inf)
        self.cut_at = inf

    def cut_power(self) -> None:
        """None of the others ever runs again."""
        self.tasks = [self.first]

    def _switch(self, ready: Callable[[], bool] | None, deadline: float) -> None:
        self.require_alive()
        task = self.current
        task.ready, task.deadline = ready, deadline
        chosen = self._choose()
        if chosen is not task:
            chosen.turn.release()
            task.turn.acquire()
            self.require_alive()

    def _choose(self) -> Task:
        self.steps += 1
        self.now += TURN_SECONDS
        if self.steps >= self.cut_at:
            self.current = self.first
            return self.first
        able = self._able()
        if not able:
            self.now = max(self.now, min(task.deadline for task in self.tasks))
            if self.now == inf:
                raise Stuck
            able = self._able()
        self.current = able[self.random.randrange(len(able))]
        return self.current

    def _able(self) -> list[Task]:
        now = self.now
        return [task for task in self.tasks if task.ready is None or task.deadline <= now or task.ready()]


def _never() -> bool:
    return False


class Simulation:
    """The scheduler that the replaced functions use; None outside of a trial."""

    scheduler: Scheduler | None = None


def running() -> Scheduler:
    """Return the scheduler of the trial."""
    assert Simulation.scheduler is not None
    return Simulation.scheduler


class Lock:
    """threading.Lock. Outside of a trial only one thread uses it."""

    def __init__(self) -> None:
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if Simulation.scheduler is not None:
            running().pause()
            if self._held and blocking:
                running().wait(lambda: not self._held, None if timeout < 0 else timeout)
        if self._held:
            return False
        self._held = True
        return True

    def release(self) -> None:
        self._held = False

    def locked(self) -> bool:
        return self._held

    __enter__ = acquire

    def __exit__(self, *_: object) -> None:
        self.release()


class Event:
    """threading.Event."""

    def __init__(self) -> None:
        self._set = False

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        self._set = True

    def clear(self) -> None:
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        return running().wait(self.is_set, timeout)


class Condition:
    """threading.Condition, whose lock no thread can find held: none passes its turn on inside."""

    def __init__(self, _lock: object = None) -> None:
        self._notified = 0

    def __enter__(self) -> bool:
        return True

    acquire = __enter__

    def __exit__(self, *_: object) -> None:
        pass

    release = __exit__

    def wait(self, timeout: float | None = None) -> bool:
        before = self._notified
        return running().wait(lambda: self._notified != before, timeout)

    def notify(self, _n: int = 1) -> None:
        self._notified += 1

    notify_all = notify


class SimpleQueue:
    """queue.SimpleQueue."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)
        if Simulation.scheduler is not None:
            running().pause()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        if block and not self._items:
            running().wait(self._items.__len__, timeout)  # type: ignore[arg-type]
        if not self._items:
            raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        return self.get(False)

    def qsize(self) -> int:
        return len(self._items)

    def empty(self) -> bool:
        return not self._items

    def __class_getitem__(cls, _: object) -> type[SimpleQueue]:
        return cls


class Thread:
    """threading.Thread."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...] = (), **_: object) -> None:
        self._run = lambda: target(*args)
        self._alive = False

    def start(self) -> None:
        self._alive = True
        running().start(self._work)

    def _work(self) -> None:
        try:
            self._run()
        finally:
            self._alive = False

    def is_alive(self) -> bool:
        return self._alive

    def join(self, timeout: float | None = None) -> None:
        running().wait(lambda: not self._alive, timeout)


class _Selector(selectors.SelectSelector):
    """Waits in simulated time for what other threads give the loop."""

    woken = False

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout <= 0:
            running().pause()
        else:
            running().wait(lambda: self.woken, timeout)
        self.woken = False
        return []


class Loop(asyncio.SelectorEventLoop):
    """An event loop in a simulated thread."""

    def __init__(self) -> None:
        self._sim = _Selector()
        super().__init__(self._sim)

    def time(self) -> float:
        return running().now

    def _write_to_self(self) -> None:
        self._sim.woken = True

    def run_in_executor(self, _executor: Any, call: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()

        def end(result: Any, error: BaseException | None) -> None:
            if not future.done():
                if error is None:
                    future.set_result(result)
                else:
                    future.set_exception(error)

        def work() -> None:
            try:
                result, error = call(*args), None
            except BaseException as raised:
                result, error = None, raised
            self.call_soon_threadsafe(end, result, error)

        running().start(work)
        return future

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Report nothing: what matters is in the ledger."""
