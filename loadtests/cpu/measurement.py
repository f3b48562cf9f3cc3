"""One measurement: a run's work, its cost for the server, and the limiting side."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sluice_s3.loadtests.common import procfs
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.cpu.client import Client, Outcome, Request
from sluice_s3.loadtests.cpu.instructions import Counter

BUSY = 0.9
"""The busy share from which a core is the limit."""
OTHERS = 0.1
"""The table notes it when other processes used more than this share of a core."""


@dataclass(frozen=True)
class Case:
    """What is measured. `size` is bytes of an object, 0 where it has no meaning."""

    operation: str
    size: int
    clients: int

    @property
    def name(self) -> str:
        """The case's name: `PUT 4 KiB x16`."""
        return f"{self.operation} {size_text(self.size) + ' ' if self.size else ''}x{self.clients}"


def size_text(size: int) -> str:
    """Render a size in the largest binary unit that divides it."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power and size % (1 << power) == 0:
            return f"{size >> power} {unit}"
    return f"{size} B"


@dataclass
class Measure:
    """One cell of one target in one round.

    Times are seconds except `latency_ms`. None: it could not be measured.
    """

    round: int
    target: str
    cell: Case
    operations: int
    elapsed: float
    moved: int
    latency_ms: dict[str, float]
    cpu_us: float | None
    peak_bytes: int | None
    client_busy: float
    server_busy: float | None
    """Busy shares of their cores' time, 0 to 1."""
    others: float
    """The larger share of the two cores' time that other processes used, kernel threads included.

    If the server had no core of its own: of all cores together, as a multiple of a core's time.
    """
    errors: dict[str, int] = field(default_factory=dict)
    instructions: float | None = None
    """Instructions of an operation."""
    beside_us: float | None = None
    """CPU time an operation of the process tree that is reported separately."""
    pss_bytes: int | None = None
    """Resident memory at the end; a page that several processes share counts once."""
    load_average: float | None = None
    """The machine's, of the last minute, at the end."""

    @property
    def rate(self) -> float:
        """Operations a second."""
        return self.operations / self.elapsed if self.elapsed else 0.0

    @property
    def mib_rate(self) -> float:
        """MiB of bodies a second, in both directions."""
        return self.moved / self.elapsed / (1 << 20) if self.elapsed else 0.0

    @property
    def client_bound(self) -> bool:
        """Whether the client's core was busy and the server's was not.

        Then the rate says nothing about the server.
        """
        return self.client_busy > BUSY and (self.server_busy is None or self.server_busy <= BUSY)


def percentiles(latencies: list[float]) -> dict[str, float]:
    """Return p50, p90, p99 and max in milliseconds, by nearest rank; empty without latencies."""
    if not latencies:
        return {}
    ordered = sorted(latencies)
    found = {f"p{rank}": ordered[min(len(ordered) - 1, len(ordered) * rank // 100)] for rank in (50, 90, 99)}
    return {name: value * 1e3 for name, value in {**found, "max": ordered[-1]}.items()}


class Meter:
    """Measures runs against one server process tree, with the client on its own core.

    `pid` may be unknown. `directory` is on the file system that the server writes to, or None if unknown. `beside` is
    the root process of what serves the server (a database), or None. With `server_core` None the server runs on any
    core, the client's too; then the client's own CPU time is measured. With `client_core` None the client does so.
    """

    def __init__(
        self,
        pid: int | None,
        directory: Path | None,
        server_core: int | None,
        client_core: int | None,
        beside: int | None = None,
    ) -> None:
        self._pid = pid
        self._directory = directory
        self._server_core = server_core
        self._client_core = client_core
        self._beside = beside

    def measure(self, round_number: int, target: str, case: Case, run: Callable[[], Outcome]) -> Measure:
        """Run it after a sync, so that earlier writes are out of the way."""
        if self._directory is None:
            os.sync()
        else:
            subprocess.run(["sync", "-f", self._directory], check=True)
        if self._pid is not None:
            procfs.reset_peak(self._pid)
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
        others = (after.busy - before.busy - spent - after.beside + before.beside) / wall - own
        if self._server_core is not None and after.client is not None and before.client is not None:
            client_busy = after.client.share_since(before.client)
            others = client_busy - own
        if self._pid is not None and after.server is not None and before.server is not None:
            server_busy = after.server.share_since(before.server)
            others = max(others, server_busy - spent / wall)
        return Measure(
            round=round_number,
            target=target,
            cell=case,
            operations=count,
            elapsed=outcome.elapsed,
            moved=outcome.moved,
            latency_ms=percentiles(outcome.latencies),
            cpu_us=None if self._pid is None or not count else spent / count * 1e6,
            peak_bytes=None if self._pid is None else procfs.peak_bytes(self._pid),
            client_busy=client_busy,
            server_busy=server_busy,
            others=max(0.0, others),
            errors=dict(outcome.errors),
            instructions=None if executed is None or not count else executed / count,
            beside_us=None if self._beside is None or not count else (after.beside - before.beside) / count * 1e6,
            pss_bytes=None if self._pid is None else procfs.pss_bytes(self._pid),
            load_average=os.getloadavg()[0],
        )

    def timed(
        self,
        round_number: int,
        target: str,
        case: Case,
        client: Client,
        feed: Iterator[Request],
        span: Span,
        warm_up_requests: int | None = None,
    ) -> tuple[Measure, int]:
        """Warm up with at most `warm_up_requests` of `feed`, then measure. Also return how many requests both took."""
        requests = client.run(itertools.islice(feed, warm_up_requests), span.warm_up).requests

        def run() -> Outcome:
            nonlocal requests
            outcome = client.run(feed, span.seconds)
            requests += outcome.requests
            return outcome

        return self.measure(round_number, target, case, run), requests

    def _read(self) -> _Reading:
        return _Reading(
            cpu=0.0 if self._pid is None else procfs.cpu_seconds(self._pid),
            own=time.process_time(),
            server=None if self._server_core is None else procfs.core_time(self._server_core),
            client=None if self._client_core is None else procfs.core_time(self._client_core),
            busy=procfs.busy_seconds(),
            beside=0.0 if self._beside is None else procfs.cpu_seconds(self._beside),
        )


@dataclass(frozen=True)
class _Reading:
    cpu: float
    own: float
    server: procfs.CoreTime | None
    client: procfs.CoreTime | None
    busy: float
    beside: float


class Span(NamedTuple):
    """Seconds before a measurement, and of it."""

    warm_up: float
    seconds: float


class Spent(NamedTuple):
    """The server's cost of a request: CPU microseconds and thousand instructions."""

    outcome: Outcome
    cpu_us: float
    kinstructions: float | None
    """None where the machine does not count them."""


def measure_cost(pid: int, client: Client, requests: Iterator[Request], seconds: float, what: str) -> Spent:
    """Send requests to the server with root process `pid`, for `seconds` at most.

    Raises Stalled, and S3CallError when a request failed, with its name `what`.
    """
    counter = Counter(pid)
    try:
        before = procfs.cpu_seconds(pid)
        outcome = client.run(requests, seconds)
        spent = procfs.cpu_seconds(pid) - before
        executed = counter.read()
    finally:
        counter.close()
    if outcome.errors:
        raise S3CallError(f"{what}: {dict(outcome.errors)}")
    count = len(outcome.latencies)
    return Spent(outcome, spent / count * 1e6, executed and executed / count / 1000)
