"""Instructions an operation: rounds of each side in turn, without what an idle worker executes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from sluice_s3.loadtests.common.scratch import scratch
from sluice_s3.loadtests.common.targets import Keys
from sluice_s3.loadtests.cpu.callgrind import Connection, Worker, describe_other
from sluice_s3.loadtests.cpu.callgrind_requests import OPERATIONS, create_buckets, preparations, requests
from sluice_s3.loadtests.cpu.client import Request

KEYS = Keys("GKcallgrind0000000000000", "seeded-secret-of-the-measurement")
"""Not random, so that every run executes the same."""
LEAST_REQUESTS = 3
WARMED_SHARE = 0.25
"""Of the counted requests, sent before them: the interpreter specialises what it executes often."""
SETTLE_SECONDS = 2.0
"""Seconds after the preparations, in which the background jobs write what those left."""


@dataclass(frozen=True)
class Plan:
    """What is counted: operations, small requests of each, and seconds of an idle worker."""

    operations: tuple[str, ...]
    count: int
    idle_seconds: float


@dataclass
class Side:
    """One checkout, with its thousands of instructions by operation and round."""

    name: str
    source: str
    commit: str = ""
    python: dict[str, Any] = field(default_factory=dict)
    idle: list[float] = field(default_factory=list)
    """Thousands of instructions a second of an idle worker, by round."""
    costs: dict[str, list[float]] = field(default_factory=dict)


class Idle(NamedTuple):
    """Instructions without requests: of one reading of the counter, and of each second."""

    reading: float
    per_second: float

    def subtract_from(self, total: int, seconds: float) -> float:
        """Return the instructions of the requests among `total`."""
        return total - self.reading - self.per_second * seconds


def _count(worker: Worker, work: Callable[[], None]) -> tuple[int, float]:
    """Return the instructions of the worker during `work`, and its seconds."""
    worker.zero()
    began = time.perf_counter()
    work()
    taken = time.perf_counter() - began
    return worker.read_total(), taken


def measure_idle(worker: Worker, seconds: float) -> Idle:
    """Count the instructions of a reading at once, and of another after `seconds`."""
    at_once, _ = _count(worker, lambda: None)
    total, taken = _count(worker, partial(time.sleep, seconds))
    return Idle(at_once, (total - at_once) / taken)


def _numbers(name: str, count: int) -> tuple[int, int]:
    """Return how many requests of an operation warm up, and how many are counted."""
    counted = max(round(count * OPERATIONS[name].share), LEAST_REQUESTS)
    return max(round(counted * WARMED_SHARE), LEAST_REQUESTS), counted


def _send(connection: Connection, some: Iterable[Request]) -> None:
    for request in some:
        connection.ask(request)


def measure_round(worker: Worker, plan: Plan) -> tuple[Idle, dict[str, float]]:
    """Return what idling costs, and thousands of instructions by operation.

    Raises S3CallError and CallgrindError.
    """
    signer, connection = worker.signer, Connection(worker.address)
    try:
        _send(connection, create_buckets(signer))
        for name in plan.operations:
            warm, counted = _numbers(name, plan.count)
            _send(connection, preparations(signer, name, warm + 1 + counted))
            _send(connection, requests(signer, name, 0, warm))
        worker.start_counting()
        time.sleep(SETTLE_SECONDS)
        idle = measure_idle(worker, plan.idle_seconds)
        costs = {}
        for name in plan.operations:
            warm, counted = _numbers(name, plan.count)
            _send(connection, requests(signer, name, warm, warm + 1))
            ready = list(requests(signer, name, warm + 1, warm + 1 + counted))
            total, seconds = _count(worker, partial(_send, connection, ready))
            costs[name] = idle.subtract_from(total, seconds) / counted / 1000
    finally:
        connection.close()
    return idle, costs


def measure(
    sides: list[Side], python: str, plan: Plan, rounds: int, parent: Path | None, tell: Callable[[str], None]
) -> None:
    """Measure the sides in turn, each round with a fresh worker on an empty directory.

    The order turns with each round. Raises S3CallError and CallgrindError.
    """
    for number in range(rounds):
        for side in sides if number % 2 == 0 else reversed(sides):
            with (
                scratch("sluice-callgrind-", parent) as directory,
                Worker(Path(side.source), python, directory, KEYS, counted=True) as worker,
            ):
                side.python = describe_other(python)
                idle, costs = measure_round(worker, plan)
            side.idle.append(idle.per_second / 1000)
            for name, cost in costs.items():
                side.costs.setdefault(name, []).append(cost)
            found = ", ".join(f"{name} {cost:,.1f}" for name, cost in costs.items())
            tell(f"round {number + 1}  {side.name}: {found}")
