"""Runs the circuit breakers of several stores in one process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping

from sluice_s3.app.store.availability.circuit_breaker import CircuitBreaker
from sluice_s3.app.store.store import Store


class BreakerWatch:
    """The breakers of those stores that have one: started together, then run until `stop`."""

    def __init__(self, stores: Iterable[Store], report: Callable[[str, str, int, int, int], None]) -> None:
        """`report` takes the state of a store at each check: see `CircuitBreaker.run`."""
        self._breakers: dict[str, CircuitBreaker] = {
            store.name: store.breaker for store in stores if store.breaker is not None
        }
        self._report = report
        self._running: asyncio.Future[list[None]] | None = None

    async def start(self, identities: Mapping[str, tuple[str, int]]) -> None:
        """Start all, with the identities that the index knows. Raises as `CircuitBreaker.start`."""
        await asyncio.gather(*(breaker.start(identities.get(name)) for name, breaker in self._breakers.items()))
        self._running = asyncio.gather(*(breaker.run(self._report) for breaker in self._breakers.values()))

    async def stop(self) -> None:
        """End all, and wait for that."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)
