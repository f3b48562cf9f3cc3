"""How a mount that hangs affects health and another store: before, meanwhile and after.

Requests come at fixed rates, so that each phase sends the same. A latency counts from when its request was due.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.table import Table

from sluice_s3.loadtests.clients.signing import Signer
from sluice_s3.loadtests.common.s3_calls import Calls, S3CallError
from sluice_s3.loadtests.common.targets import SLUICE, Keys, Running, Target
from sluice_s3.loadtests.cpu.measurement import percentiles
from sluice_s3.loadtests.mounts import Mount, mounted

SMALL, LARGE = 4 << 10, 1 << 20
"""Bytes of an object in a pack, and of one in a file."""
ODD_CLIENTS, ODD_RATE = 16, 4.0
"""Clients of the store that hangs, and the requests a second of each."""
HANG_SECONDS = 2.0
"""Seconds after which a call is given up: the gateway's setting `hang_timeout`."""
PHASES = ("before", "while it hangs", "after")


@dataclass(frozen=True)
class Stream:
    """Requests on one connection at a fixed rate."""

    name: str
    method: str
    path: str
    size: int
    rate: float


WATCHED = (
    Stream("health", "GET", "/-/health/ready", 0, 50),
    Stream("GET 4 KiB", "GET", "/good/small", 0, 50),
    Stream("PUT 4 KiB", "PUT", "/good/new-small", SMALL, 50),
    Stream("GET 1 MiB", "GET", "/good/large", 0, 20),
    Stream("PUT 1 MiB", "PUT", "/good/new-large", LARGE, 10),
)


@dataclass
class Phase:
    """Latencies in milliseconds by stream, and the statuses of the store that hangs."""

    name: str
    latency_ms: dict[str, dict[str, float]] = field(default_factory=dict)
    odd: dict[int, int] = field(default_factory=dict)
    failed: int = 0
    """Failed answers of health or of the other store."""


def measure(parent: Path, keys: Keys, core: int | None, seconds: float) -> list[Phase]:
    """Measure all phases on a gateway of its own. Raises S3CallError and OSError."""
    with _scene(parent, keys, core) as (running, mount):
        _ask_all(running)
        found = [_phase(PHASES[0], running, seconds)]
        hang = mount.fault("*", "hang", times=None)
        try:
            found.append(_phase(PHASES[1], running, seconds))
        finally:
            mount.clear(hang)
        _recovered(running.calls)
        found.append(_phase(PHASES[2], running, seconds))
    return found


@contextmanager
def _scene(parent: Path, keys: Keys, core: int | None) -> Iterator[tuple[Running, Mount]]:
    for name in ("backing", "odd", "good"):
        (parent / name).mkdir()
    stores = {
        "good": {"driver": "local", "path": str(parent / "good")},
        "odd": {"driver": "fuse", "path": str(parent / "odd")},
    }
    os.environ |= {
        "SLUICE_STORES": json.dumps(stores),
        "SLUICE_INDEX": f"sqlite:///{parent}/index.db",
        "SLUICE_HANG_TIMEOUT": str(HANG_SECONDS),
    }
    target = Target("sluice-full", command=SLUICE.replace(" --data {data}", ""), durability="full")
    with (
        mounted(parent / "backing", parent / "odd", cached=False) as mount,
        Running(target, keys, parent, core) as running,
    ):
        yield running, mount


def _ask_all(running: Running) -> None:
    """Create buckets on both stores, and the objects to read."""
    for name in ("good", "odd"):
        where = f"<CreateBucketConfiguration><LocationConstraint>us-east-1:{name}</LocationConstraint>"
        running.calls.ask("PUT", f"/{name}", body=f"{where}</CreateBucketConfiguration>".encode())
        for key, size in (("small", SMALL), ("large", LARGE)):
            running.calls.ask("PUT", f"/{name}/{key}", body=os.urandom(size))


def _recovered(calls: Calls) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            calls.ask("PUT", "/odd/again", body=bytes(LARGE))
        except S3CallError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return


def _phase(name: str, running: Running, seconds: float) -> Phase:
    phase = Phase(name)
    lock = threading.Lock()
    end = time.perf_counter() + seconds

    def watch(stream: Stream) -> None:
        latencies = []
        for status, latency in _answers(stream, running, end):
            latencies.append(latency)
            with lock:
                phase.failed += status not in (200, 204)
        with lock:
            phase.latency_ms[stream.name] = percentiles(latencies)

    def bother(number: int) -> None:
        put = Stream("odd", "PUT", f"/odd/new-{number}", LARGE if number % 2 else SMALL, ODD_RATE)
        get = Stream("odd", "GET", "/odd/large" if number % 2 else "/odd/small", 0, ODD_RATE)
        for status, _ in _answers(put if number % 4 < 2 else get, running, end):
            with lock:
                phase.odd[status] = phase.odd.get(status, 0) + 1

    threads = [threading.Thread(target=watch, args=(stream,)) for stream in WATCHED]
    threads += [threading.Thread(target=bother, args=(number,)) for number in range(ODD_CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return phase


def _answers(stream: Stream, running: Running, end: float) -> Iterator[tuple[int, float]]:
    """Send a stream's requests until `end`. Yield status and seconds of each.

    Status 0: the connection was cut.
    """
    body = os.urandom(stream.size)
    signer: Signer = running.signer
    connection: socket.socket | None = None
    due = time.perf_counter()
    try:
        while due < end:
            time.sleep(max(0.0, due - time.perf_counter()))
            if connection is None:
                connection = socket.create_connection(running.address, timeout=60)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            head = signer.head(stream.method, stream.path, length=len(body) if stream.method == "PUT" else None)
            try:
                connection.sendall(head + body)
                with closing(http.client.HTTPResponse(connection, method=stream.method)) as response:
                    response.begin()
                    response.read()
                    status = response.status
                    cut = response.will_close
            except (OSError, http.client.HTTPException):
                status, cut = 0, True
            yield status, time.perf_counter() - due
            if cut:
                connection.close()
                connection = None
            due = max(due + 1 / stream.rate, time.perf_counter() - 1 / stream.rate)
    finally:
        if connection is not None:
            connection.close()


def table(rounds: list[list[Phase]]) -> Table:
    """Render each stream's 99th percentile by phase: the median of the rounds, and its ratio to `before`."""
    made = Table(title=f"p99 in ms beside a mount that hangs, median of {len(rounds)} rounds")
    for name in ("", *PHASES):
        made.add_column(name, justify="right" if name else "left")
    for stream in WATCHED:
        middle = [
            sorted(phases[number].latency_ms[stream.name]["p99"] for phases in rounds)[len(rounds) // 2]
            for number in range(len(PHASES))
        ]
        made.add_row(stream.name, *(f"{value:.2f} ({value / middle[0]:.2f} x)" for value in middle))
    odd: list[dict[int, int]] = [{} for _ in PHASES]
    for phases in rounds:
        for number, phase in enumerate(phases):
            for status, count in phase.odd.items():
                odd[number][status] = odd[number].get(status, 0) + count
    made.add_row("answers of the store that hangs", *(str(dict(sorted(one.items()))) for one in odd))
    failed = [sum(phases[number].failed for phases in rounds) for number in range(len(PHASES))]
    made.add_row("failures elsewhere", *map(str, failed))
    return made
