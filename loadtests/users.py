"""Locust's users: one for single operations, and one for a script of stages."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from gevent.pool import Group
from locust import User, constant, task
from locust.env import Environment
from locust.exception import StopUser

from sluice_s3.loadtests import arguments, coordination  # noqa: F401  (they listen to Locust's events)
from sluice_s3.loadtests.clients.s3 import OperationResult, StorageClient, run_concurrently
from sluice_s3.loadtests.session import Session

Item = TypeVar("Item")
WARM_UPS = 5
"""Objects put before a script begins.

The cost of a bucket's first objects says nothing about a store.
"""


class S3User(User):
    """A user with a connection of its own, `objects`.

    Requests are signed cheaply, the first byte is timed, and received bodies are dropped in the kernel.
    """

    abstract = True
    exclusive = False
    """Whether it excludes other such classes from the same test."""
    timed = False
    """Whether `--duration` ends it."""
    closed_loop = False
    """Whether each operation is due when the one before is done, so that a stall holds up those behind it unseen."""
    host = "http://127.0.0.1:9000"
    interval = 0.0
    """Seconds from one operation's due time to the next one's; 0: each is due when the one before is done."""
    due = 0.0
    """When the next operation is due (perf_counter)."""
    _ended = 0.0
    objects: StorageClient

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.session = Session.of(environment)
        if not self.session.over:  # else it cannot begin
            self.objects = self.connect()

    def connect(self) -> StorageClient:
        """Return the client of this user's operations."""
        return self.session.connect()

    def set_pace(self, throughput: float) -> None:
        """Have so many operations a second be due from now on, the first one somewhere in the first interval."""
        self.interval = 1 / throughput if throughput > 0 else 0.0
        self.due = time.perf_counter() + random.random() * self.interval

    def wait_time(self) -> float:
        """Return the seconds until the next operation is due.

        Unlike Locust's `constant_throughput`, a user that is late catches up. Raises StopUser when the test is over.
        """
        if self.session.over:
            raise StopUser
        return max(0.0, self.due - time.perf_counter()) if self.interval else 0.0

    def do(
        self,
        operation: str,
        key: str,
        size: int = 0,
        *,
        stage: str = "",
        users: int = 0,
        objects: StorageClient | None = None,
        after: str = "",
    ) -> OperationResult:
        """Do one operation and record it.

        LIST: `key` is the prefix, `size` the number of keys of the page. Raises StopUser when the test is over.
        """
        if self.session.over:
            raise StopUser
        through, window = objects or self.objects, self.session.window
        started, late, waited = time.perf_counter(), None, 0.0
        if self.interval:
            late = max(0.0, started - self.due)
            waited = late if self._ended > self.due else 0.0  # else the clock woke us late, not the store
            self.due += self.interval
        window.open += 1
        self.session.under_way += 1
        try:
            done = perform(through, operation, key, size, after)
        finally:
            window.open -= 1
            self.session.under_way -= 1
        self._ended = time.perf_counter()
        counted = done._replace(total=done.total + waited)
        begun = started - waited
        self.session.record(operation, counted, size, begun, stage=stage, users=users, late=late, window=window)
        return done


def perform(objects: StorageClient, operation: str, key: str, size: int = 0, after: str = "") -> OperationResult:
    """Do one operation by its name. Raises KeyError for an unknown name."""
    calls: dict[str, Callable[[], OperationResult]] = {
        "PUT": lambda: objects.put(key, size),
        "GET": lambda: objects.get(key, size),
        "STAT": lambda: objects.stat(key),
        "DELETE": lambda: objects.delete(key),
        "LIST": lambda: objects.list(key, after, size),
    }
    return calls[operation]()


class ScriptUser(S3User):
    """A user that runs `script` once and ends the test.

    Stages have clients of their own, so one such user in a process is enough. With several processes, each does its
    share of the work and does not wait for the others between stages.
    """

    abstract = True
    exclusive = True
    wait_time = constant(0)

    def on_start(self) -> None:
        """Run the script."""
        self._clients = Group()

    def on_stop(self) -> None:
        """Close the connection."""
        self._clients.kill()

    @task
    def play(self) -> None:
        """Run the script, as the first user of the process."""
        if self.session.over or not self.session.first():
            raise StopUser
        problem = self.objects.prepare()
        if problem:
            self.session.give_up(problem)
        else:
            for number in range(WARM_UPS):
                self.objects.put(f"warm-up/{number}", 1000)
            try:
                self.script()
            except Exception as error:  # Locust would only log it, and wait forever for the end
                self.session.give_up(f"{type(error).__name__}: {error}")
                raise
            self.session.finish()
        raise StopUser

    def script(self) -> None:
        """Run the stages."""
        raise NotImplementedError

    def own_share(self, all_of_them: Sequence[Item]) -> Sequence[Item]:
        """Return this process's share of work."""
        number, processes = self.session.share
        return all_of_them[number::processes]

    def run_concurrently(self, clients: int, work: Callable[[StorageClient, int], Any]) -> None:
        """Have clients run `work(objects, number)` concurrently until all are done.

        With several processes, each runs its share of the clients.
        """
        self._run([(self.session.connect(), number) for number in self.own_share(range(clients))], work)

    def run_each(self, clients: int, items: Sequence[Item], work: Callable[[StorageClient, Item], Any]) -> None:
        """Have this process's clients take the items, one after another."""
        left = iter(items)

        def client(objects: StorageClient, _: int) -> None:
            for item in left:
                work(objects, item)

        self._run([(self.session.connect(), number) for number in range(clients)], client)

    def remove(self, keys: Sequence[str]) -> None:
        """Delete objects that are no longer needed, without recording it."""
        run_concurrently(self.session.connect, "delete", keys)

    def _run(self, clients: Sequence[tuple[StorageClient, int]], work: Callable[[StorageClient, int], Any]) -> None:
        for objects, _ in clients:
            objects.open()

        def client(objects: StorageClient, number: int) -> None:
            with suppress(StopUser):
                work(objects, number)

        for objects, number in clients:
            self._clients.spawn(client, objects, number)
        self._clients.join()
        for objects, _ in clients:
            objects.close()
