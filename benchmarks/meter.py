"""One measurement: what a run did, what it cost the server, and whether the client was the limit."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks import processes
from benchmarks.calls import Refused
from benchmarks.client import Client, Outcome, Request
from benchmarks.instructions import Counter

BUSY = 0.9
"""A core is the limit from this share of the time on."""
OTHERS = 0.1
"""More than this share of a core spent by other processes is said in the table."""


@dataclass(frozen=True)
class Cell:
    """What is measured. `size` is bytes of an object, 0 where it has no meaning."""

    operation: str
    size: int
    clients: int

    @property
    def name(self) -> str:
        """`PUT 4 KiB x16`."""
        return f"{self.operation} {size_text(self.size) + ' ' if self.size else ''}x{self.clients}"


def size_text(size: int) -> str:
    """A size in the largest binary unit that divides it."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"


@dataclass
class Measure:
    """One cell of one target in one round. Times are seconds but for `latency_ms`; None: it could not be measured."""

    round: int
    target: str
    cell: Cell
    operations: int
    elapsed: float
    moved: int
    latency_ms: dict[str, float]
    cpu_us: float | None
    peak_bytes: int | None
    client_busy: float
    server_busy: float | None
    """Shares of their cores' time that somebody used, 0 to 1."""
    others: float
    """The larger share of the two cores' time that went to other processes, the kernel's own among them; 0 when the
    server had no core of its own."""
    errors: dict[str, int] = field(default_factory=dict)
    instructions: float | None = None
    """Of an operation."""
    beside_us: float | None = None
    """CPU time an operation of the process tree that is told apart."""

    @property
    def rate(self) -> float:
        """Operations a second."""
        return self.operations / self.elapsed if self.elapsed else 0.0

    @property
    def mib_rate(self) -> float:
        """MiB of bodies a second, both ways."""
        return self.moved / self.elapsed / (1 << 20) if self.elapsed else 0.0

    @property
    def client_bound(self) -> bool:
        """The client's core was busy and the server was not: the rate says nothing about the server."""
        return self.client_busy > BUSY and (self.server_busy is None or self.server_busy <= BUSY)


def percentiles(latencies: list[float]) -> dict[str, float]:
    """p50, p90, p99 and max in milliseconds, by nearest rank; empty for no latencies."""
    if not latencies:
        return {}
    ordered = sorted(latencies)
    found = {f"p{rank}": ordered[min(len(ordered) - 1, len(ordered) * rank // 100)] for rank in (50, 90, 99)}
    return {name: value * 1e3 for name, value in {**found, "max": ordered[-1]}.items()}


class Meter:
    """Measures runs against one server process tree (`pid` may be unknown) with the client on a core of its own.

    `directory` is on the file system that the server writes to; None for one that is not known. `beside` is the root
    process of what serves the server (a database), or None. `server_core` None: the server runs on any core, the
    client's too, of which the client is then asked how much it took itself.
    """

    def __init__(
        self,
        pid: int | None,
        directory: Path | None,
        server_core: int | None,
        client_core: int,
        beside: int | None = None,
    ) -> None:
        self._pid = pid
        self._directory = directory
        self._server_core = server_core
        self._client_core = client_core
        self._beside = beside

    def measure(self, round_number: int, target: str, cell: Cell, run: Callable[[], Outcome]) -> Measure:
        """Run it. Written-back pages of what came before are out of the way first."""
        if self._directory is None:
            os.sync()
        else:
            subprocess.run(["sync", "-f", self._directory], check=True)
        if self._pid is not None:
            processes.reset_peak(self._pid)
        counter = None if self._pid is None else Counter(self._pid)
        before = self._read()
        start = time.perf_counter()
        outcome = run()
        wall = time.perf_counter() - start
        after = self._read()
        executed = None if counter is None else counter.read()
        if counter is not None:
            counter.close()
        count = len(outcome.latencies)
        spent = after.cpu - before.cpu
        client_busy = own = (after.own - before.own) / wall
        server_busy = None
        if self._server_core is not None:
            client_busy = after.client.share_since(before.client)
        others = client_busy - own
        if self._pid is not None and after.server is not None and before.server is not None:
            server_busy = after.server.share_since(before.server)
            others = max(others, server_busy - spent / wall)
        return Measure(
            round=round_number,
            target=target,
            cell=cell,
            operations=count,
            elapsed=outcome.elapsed,
            moved=outcome.moved,
            latency_ms=percentiles(outcome.latencies),
            cpu_us=None if self._pid is None or not count else spent / count * 1e6,
            peak_bytes=None if self._pid is None else processes.peak_bytes(self._pid),
            client_busy=client_busy,
            server_busy=server_busy,
            others=max(0.0, others),
            errors=dict(outcome.errors),
            instructions=None if executed is None or not count else executed / count,
            beside_us=None if self._beside is None or not count else (after.beside - before.beside) / count * 1e6,
        )

    def _read(self) -> _Reading:
        return _Reading(
            cpu=0.0 if self._pid is None else processes.cpu_seconds(self._pid),
            own=time.process_time(),
            server=None if self._server_core is None else processes.core_time(self._server_core),
            client=processes.core_time(self._client_core),
            beside=0.0 if self._beside is None else processes.cpu_seconds(self._beside),
        )


@dataclass(frozen=True)
class _Reading:
    cpu: float
    own: float
    server: processes.CoreTime | None
    client: processes.CoreTime
    beside: float


class Spent(NamedTuple):
    """What requests took of a server: CPU microseconds and thousand instructions each, in all of its processes."""

    outcome: Outcome
    cpu_us: float
    kinstructions: float | None
    """None where the machine does not count them."""


def spend(pid: int, client: Client, requests: Iterator[Request], seconds: float, what: str) -> Spent:
    """Make requests of the server whose root process is `pid`, for so many seconds at most. Raises Refused when one
    of them failed, naming `what` it was, and Stalled."""
    counter = Counter(pid)
    try:
        before = processes.cpu_seconds(pid)
        outcome = client.run(requests, seconds)
        spent = processes.cpu_seconds(pid) - before
        executed = counter.read()
    finally:
        counter.close()
    if outcome.errors:
        raise Refused(f"{what}: {dict(outcome.errors)}")
    count = len(outcome.latencies)
    return Spent(outcome, spent / count * 1e6, executed and executed / count / 1000)
