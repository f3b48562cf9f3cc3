"""Clients that never retry: whatever is not the answer they must get is a failure."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from tests.integration.limits.wire import MIB, Wire
from tests.support.gateway import Gateway
from tests.support.raw_http import Answer
from tests.support.waiting import eventually

SIZES = (0, 1, 4096, 100_000, 400_000)
LARGE = 8 * MIB


class Load:
    """Threads that each work on a key of their own, request behind request, until the end of the `with`."""

    def __init__(self, gateway: Gateway, bucket: str, *, kept: int, fresh: int, large: int) -> None:
        self._endpoint = gateway.endpoint
        self._bucket = bucket
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.failures: list[str] = []
        self.requests = 0
        self.connections = 0
        kinds = (self._kept,) * kept + (self._fresh,) * fresh + (self._large,) * large
        self._threads = [threading.Thread(target=kind, args=(number,)) for number, kind in enumerate(kinds)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, more: int) -> None:
        """Return once so many more requests were answered."""
        goal = self.requests + more
        eventually(lambda: self.requests >= goal or self.failures, f"{more} more requests")

    # kinds of clients
    def _kept(self, number: int) -> None:
        """One connection, opened again only after an answer that said it closes."""
        rng = random.Random(number)
        with Wire(self._endpoint) as wire:
            while not self._stop.is_set():
                self._life(number, rng.randbytes(rng.choice(SIZES)), lambda: wire)

    def _fresh(self, number: int) -> None:
        """A new connection for each request, closed by the client."""
        rng = random.Random(number)
        while not self._stop.is_set():
            made: list[Wire] = []

            def another(made: list[Wire] = made) -> Wire:
                for wire in made:
                    wire.close()
                made[:] = [Wire(self._endpoint)]
                return made[0]

            self._life(number, rng.randbytes(rng.choice(SIZES)), another)
            made[0].close()

    def _large(self, number: int) -> None:
        """Transfers that a restart comes into the middle of."""
        body = random.Random(number).randbytes(LARGE)
        with Wire(self._endpoint) as wire:
            while not self._stop.is_set():
                self._life(number, body, lambda: wire)

    def _life(self, number: int, body: bytes, wire: Callable[[], Wire]) -> None:
        """Everything that may be done with a key."""
        for method, sent, status, got in (
            ("PUT", body, 200, b""),
            ("GET", None, 200, body),
            ("HEAD", None, 200, b""),
            ("DELETE", None, 204, b""),
            ("HEAD", None, 404, b""),
        ):
            what = f"{method} of {len(body)} bytes, client {number}"
            try:
                answer = self._ask(wire(), method, f"/{self._bucket}/key-{number}", sent)
            except OSError as error:
                self.failures.append(f"{what}: {error!r}")
                self._stop.set()
                return
            if answer.status != status or answer.body != got:
                self.failures.append(f"{what}: {answer.status} {answer.code} {len(answer.body)} bytes")

    def _ask(self, wire: Wire, method: str, path: str, body: bytes | None) -> Answer:
        opened = not wire.is_open
        answer = wire.ask_signed(method, path, body=body)
        with self._lock:
            self.requests += 1
            self.connections += opened
        return answer
