"""A client that begins each request when it is due, however slow the server is."""

from __future__ import annotations

import random
import select
import time
from collections import deque
from collections.abc import Callable, Iterator

from sluice_s3.loadtests.cpu.client import STALLED, Client, Connection, Outcome, Request, Stalled

LONGEST_WAIT = 1.0
Finished = Callable[[Request, float], None]
"""Called with each request that had a good answer, and the seconds from when it was due to that."""


class OpenLoopClient(Client):
    """The client of `client.py` at a rate. A request that finds no free connection waits for one."""

    _finished: Finished
    _free: list[Connection]

    def run_at(self, rate: float, requests: Iterator[Request], seconds: float, finished: Finished) -> Outcome:
        """Send requests at `rate` a second on average (Poisson) for `seconds`, and wait for the last answer.

        What could not be sent in time is an error. Raises Stalled, and OSError when the endpoint cannot be reached.
        """
        self._feed, self._finished, self._free = requests, finished, list(self._by_fd.values())
        self._deadline, self._busy = float("inf"), 0
        outcome = self._outcome = Outcome()
        waiting: deque[float] = deque()
        start = now = answered = time.perf_counter()
        due, end = start, start + seconds
        while self._busy or now < end:
            while due <= now and due < end:
                waiting.append(due)
                due += random.expovariate(rate)
            while waiting and self._free and now < end:
                super()._next(self._free.pop(), waiting.popleft())
            if self._take_answers(min(max(due - now, 0.0), LONGEST_WAIT) if due < end else LONGEST_WAIT):
                answered = now
            now = time.perf_counter()
            if self._busy and now > answered + STALLED:
                raise Stalled(f"no answer for {STALLED:.0f} s")
        outcome.elapsed = now - start
        if waiting:
            outcome.errors["not sent in time"] += len(waiting)
        return outcome

    def _take_answers(self, most: float) -> bool:
        """Wait for events for `most` seconds; return whether there were any."""
        select.select([self._epoll], [], [], most)  # epoll_wait counts in milliseconds
        events = self._epoll.poll(0)
        self._handle(events)
        return bool(events)

    def _next(self, connection: Connection, now: float) -> None:
        """Let the connection wait for the next request that is due."""
        connection.request = None
        self._free.append(connection)

    def _finish(self, connection: Connection) -> None:
        if connection.request is not None and connection.good:
            self._finished(connection.request, time.perf_counter() - connection.started)
        super()._finish(connection)
        self._outcome.latencies.clear()  # an hour of them is much memory

    def _reconnect(self, connection: Connection) -> None:
        if connection.request is not None:
            super()._reconnect(connection)
        elif connection in self._free:  # closed by the server while it was idle
            self._free.remove(connection)
            self._free.append(self._replace(connection))
        else:  # there was no further request for it
            self._drop(connection)
