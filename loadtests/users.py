"""Locust's users: one for single operations, and one for a script of stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from gevent.pool import Group
from locust import FastHttpUser, constant, task
from locust.env import Environment
from locust.exception import StopUser

from sluice_s3.loadtests.clients.s3 import OperationResult, StorageClient, run_concurrently
from sluice_s3.loadtests.session import Session

Item = TypeVar("Item")
WARM_UPS = 5
"""Objects put before a script begins.

The cost of a bucket's first objects says nothing about a store.
"""


class S3User(FastHttpUser):
    """A user with a connection of its own.

    FastHttpUser's `client` exists as well, but measured requests go by `objects`: signed cheaply, with the first byte
    timed, and received bodies dropped in the kernel.
    """

    abstract = True
    exclusive = False
    """Whether it excludes other such classes from the same test."""
    timed = False
    """Whether `--duration` ends it."""
    host = "http://127.0.0.1:9000"
    wait_time = constant(0)

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.session = Session.of(environment)
        self.objects: StorageClient = self.session.connect()

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
        through = objects or self.objects
        started = time.perf_counter()
        done = perform(through, operation, key, size, after)
        self.session.record(operation, done, size, started, stage=stage, users=users)
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

    def on_start(self) -> None:
        """Run the script."""
        self._clients = Group()

    def on_stop(self) -> None:
        """Close the connection."""
        self._clients.kill()

    @task
    def play(self) -> None:
        """Run the script, as the first user of the process."""
        if not self.session.first():
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
