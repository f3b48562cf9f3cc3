"""Locust's users: one that does an operation after another, and one that plays a script of stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from gevent.pool import Group
from locust import FastHttpUser, constant, task
from locust.env import Environment
from locust.exception import StopUser

from loadtests.objects import Done, Objects, run_many
from loadtests.session import Session

Item = TypeVar("Item")
WARM_UPS = 5
"""Objects put before a script begins: what the first of a bucket costs is no figure of a store."""


class S3User(FastHttpUser):
    """Has a connection of its own. `client` of FastHttpUser is there as well, but what is measured goes by `objects`:
    signed cheaply, with the first byte timed, and what is received dropped in the kernel."""

    abstract = True
    host = "http://127.0.0.1:9000"
    wait_time = constant(0)

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        self.session = Session.of(environment)
        self.objects: Objects = self.session.connect()

    def do(
        self,
        operation: str,
        key: str,
        size: int = 0,
        *,
        stage: str = "",
        users: int = 0,
        objects: Objects | None = None,
        after: str = "",
    ) -> Done:
        """One operation, written down. LIST: `key` is the prefix, `size` the keys of the page. Raises StopUser when the
        test is over."""
        if self.session.over:
            raise StopUser
        through = objects or self.objects
        started = time.perf_counter()
        done = perform(through, operation, key, size, after)
        self.session.record(operation, done, size, started, stage=stage, users=users)
        return done


def perform(objects: Objects, operation: str, key: str, size: int = 0, after: str = "") -> Done:
    """One operation by its name. Raises KeyError for one that there is not."""
    calls: dict[str, Callable[[], Done]] = {
        "PUT": lambda: objects.put(key, size),
        "GET": lambda: objects.get(key, size),
        "STAT": lambda: objects.stat(key),
        "DELETE": lambda: objects.delete(key),
        "LIST": lambda: objects.list(key, after, size),
    }
    return calls[operation]()


class ScriptUser(S3User):
    """Plays `script` once and ends the test. Stages have clients of their own: one such user a process is enough;
    with several processes each does its share of the work, without waiting for the others between stages."""

    abstract = True

    def on_start(self) -> None:
        self._clients = Group()

    def on_stop(self) -> None:
        self._clients.kill()

    @task
    def play(self) -> None:
        """The script, by the first user of the process."""
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
            except Exception as error:  # Locust would only log it, and wait for the end for ever
                self.session.give_up(f"{type(error).__name__}: {error}")
                raise
            self.session.finish()
        raise StopUser

    def script(self) -> None:
        """What is to be done."""
        raise NotImplementedError

    def mine(self, all_of_them: Sequence[Item]) -> Sequence[Item]:
        """This process's share of work."""
        number, processes = self.session.share
        return all_of_them[number::processes]

    def together(self, clients: int, work: Callable[[Objects, int], Any]) -> None:
        """So many clients at once do `work(objects, number)` until all are done; in several processes, their share."""
        self._run([(self.session.connect(), number) for number in self.mine(range(clients))], work)

    def each_of_mine(self, clients: int, items: Sequence[Item], work: Callable[[Objects, Item], Any]) -> None:
        """So many clients of this process take the items, one after another."""
        left = iter(items)

        def client(objects: Objects, _: int) -> None:
            for item in left:
                work(objects, item)

        self._run([(self.session.connect(), number) for number in range(clients)], client)

    def remove(self, keys: Sequence[str]) -> None:
        """Delete what is no longer needed, without writing it down."""
        run_many(self.session.connect, "delete", keys)

    def _run(self, clients: Sequence[tuple[Objects, int]], work: Callable[[Objects, int], Any]) -> None:
        for objects, _ in clients:
            objects.open()

        def client(objects: Objects, number: int) -> None:
            with suppress(StopUser):
                work(objects, number)

        for objects, number in clients:
            self._clients.spawn(client, objects, number)
        self._clients.join()
        for objects, _ in clients:
            objects.close()
