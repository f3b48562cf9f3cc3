"""The course of a mix with overwrites and deletes over a long time: whether work that was put off catches up with it.

After a closed loop has found the saturation, requests arrive at a fraction of its rate.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from rich.table import Table

from sluice_s3.loadtests.common import procfs
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.targets import Keys, Running, Target, free_port
from sluice_s3.loadtests.cpu.client import Client, Request
from sluice_s3.loadtests.cpu.measurement import size_text
from sluice_s3.loadtests.cpu.open_loop import OpenLoopClient
from sluice_s3.loadtests.latencies import Latencies

MIX = {"GET": 45, "STAT": 30, "PUT": 15, "DELETE": 10}
POOL_BYTES = 32 << 20
BACKLOG = re.compile(rb"^sluice_discarded_blobs\{[^}]*\} (\S+)$", re.MULTILINE)
BUCKET = "curve"
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@dataclass(frozen=True)
class Plan:
    """What is done. Sizes are bytes, times seconds."""

    sizes: tuple[int, ...]
    objects: int
    """Objects of a size that are read and overwritten, and as many that are deleted and put again."""
    clients: int
    load: float
    """The share of the saturation at which requests arrive."""
    rate: float
    """Requests a second; 0: by `load`."""
    seconds: float
    interval: float
    calibration: float


@dataclass(frozen=True)
class Point:
    """One interval. None: it could not be measured."""

    minute: float
    """Minutes from the begin to the end of the interval."""
    rate: float
    """Good answers a second."""
    latency_ms: dict[str, float]
    by_operation: dict[str, dict[str, float]]
    backlog: float | None
    """Blobs that are discarded and not removed, those in their grace included."""
    disk_bytes: int | None
    pss_bytes: int | None
    load_average: float


@dataclass
class Curve:
    """A run of one target."""

    target: str
    rate: float
    """Requests a second that were due."""
    points: list[Point] = field(default_factory=list)
    errors: dict[str, int] = field(default_factory=dict)


class Mix:
    """An endless mix: half of the PUTs overwrite what is read, the others put back what is deleted."""

    def __init__(self, running: Running, plan: Plan) -> None:
        self._signer = running.signer
        self._sizes = plan.sizes
        self._objects = plan.objects
        self._random = random.Random(0)
        self._pool = memoryview(os.urandom(POOL_BYTES + max(plan.sizes)))
        self.names = [f"{operation} {size_text(size)}" for operation in MIX for size in plan.sizes]
        """What the numbers of the requests mean."""

    def fill(self) -> Iterator[Request]:
        """Yield the first PUT of every object."""
        for size in self._sizes:
            for kind in ("kept", "churn"):
                for number in range(self._objects):
                    yield self._request("PUT", f"/{BUCKET}/{size}/{kind}/{number:06d}", size)

    def __iter__(self) -> Iterator[Request]:
        while True:
            (operation,) = self._random.choices(list(MIX), list(MIX.values()))
            size = self._random.choice(self._sizes)
            churns = operation == "DELETE" or (operation == "PUT" and self._random.random() < 0.5)
            key = f"{'churn' if churns else 'kept'}/{self._random.randrange(self._objects):06d}"
            yield self._request(operation, f"/{BUCKET}/{size}/{key}", size)

    def _request(self, operation: str, path: str, size: int) -> Request:
        number = self.names.index(f"{operation} {size_text(size)}")
        if operation == "PUT":
            start = self._random.randrange(POOL_BYTES)
            body = self._pool[start : start + size]
            return Request(self._signer.head("PUT", path, length=size), body, number=number)
        if operation == "GET":
            return Request(self._signer.head("GET", path), size=size, number=number)
        if operation == "STAT":
            return Request(self._signer.head("HEAD", path), size=0, bodiless=True, number=number)
        return Request(self._signer.head("DELETE", path), number=number)


class Sampler:
    """Takes a point at the end of each interval, beside the client.

    It shares the client's interpreter lock: so answers are counted in histograms, and a point is little work.
    """

    def __init__(self, running: Running, admin_port: int, plan: Plan, names: list[str], tell: Callable[[Point], None]):
        self._running = running
        self._admin_port = admin_port
        self._plan = plan
        self._names = names
        self._tell = tell
        self._latencies = [Latencies() for _ in names]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def finished(self, request: Request, seconds: float) -> None:
        """Note an answer."""
        self._latencies[request.number].add(seconds)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        began = last = time.perf_counter()
        for number in range(1, round(self._plan.seconds / self._plan.interval) + 1):
            if self._stop.wait(max(0.0, began + number * self._plan.interval - time.perf_counter())):
                return
            now = time.perf_counter()
            latencies, self._latencies = self._latencies, [Latencies() for _ in self._names]
            self._tell(self._point((now - began) / 60, now - last, latencies))
            last = now

    def _point(self, minute: float, elapsed: float, latencies: list[Latencies]) -> Point:
        together = Latencies()
        for one in latencies:
            together.merge(one)
        by_operation = {name: one for name, one in zip(self._names, latencies, strict=True) if one.count}
        pid = self._running.pid
        return Point(
            minute=round(minute, 3),
            rate=together.count / elapsed,
            latency_ms=_percentiles_ms(together),
            by_operation={name: _percentiles_ms(by_operation[name]) for name in sorted(by_operation)},
            backlog=self._backlog(),
            disk_bytes=self._disk_bytes(),
            pss_bytes=None if pid is None else procfs.pss_bytes(pid),
            load_average=os.getloadavg()[0],
        )

    def _backlog(self) -> float | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._admin_port}/metrics", timeout=10) as answer:
                found = BACKLOG.findall(answer.read())
        except OSError:
            return None
        return sum(map(float, found)) if found else None

    def _disk_bytes(self) -> int | None:
        if self._running.directory is None:
            return None
        # another program, so that it does not hold up the client; it fails when a file goes meanwhile
        done = subprocess.run(
            ["du", "-s", "-B1", self._running.directory / "data"], capture_output=True, text=True, check=False
        )
        return int(done.stdout.split()[0]) if done.stdout else None


def _percentiles_ms(latencies: Latencies) -> dict[str, float]:
    return {name: 1e3 * latencies.percentile(share) for name, share in PERCENTILES.items()}


def measure(target: Target, keys: Keys, parent: Path, plan: Plan, tell: Callable[[Point], None]) -> Curve:
    """Measure a target in a directory of its own. Raises S3CallError, Stalled and OSError."""
    admin_port = free_port()
    target = replace(target, command=target.command.replace("--admin-port -1", f"--admin-port {admin_port}"))
    with Running(target, keys, parent, None) as running:
        running.calls.ask("PUT", f"/{BUCKET}")
        mix = Mix(running, plan)
        with closing(Client(running.address, plan.clients)) as client:
            filled = client.run(mix.fill(), 3600.0)
            if filled.errors:
                raise S3CallError(f"objects cannot be put: {dict(filled.errors)}")
            rate = plan.rate
            if not rate:
                found = client.run(iter(mix), plan.calibration)
                rate = plan.load * len(found.latencies) / found.elapsed
        curve = Curve(target.name, rate)

        def take(point: Point) -> None:
            curve.points.append(point)
            tell(point)

        with (
            closing(OpenLoopClient(running.address, plan.clients)) as open_loop,
            Sampler(running, admin_port, plan, mix.names, take) as sampler,
        ):
            outcome = open_loop.run_at(rate, iter(mix), plan.seconds + 1.0, sampler.finished)
        curve.errors = dict(outcome.errors)
    return curve


def write(path: Path, plan: Plan, curves: list[Curve]) -> None:
    """Write all that was measured as JSON."""
    path.write_text(json.dumps({"plan": asdict(plan), "curves": [asdict(curve) for curve in curves]}, indent=1))


def line(point: Point, first: Point) -> list[str]:
    """Return the cells of a point; its 99th percentile also over that of the first."""
    ratio = point.latency_ms.get("p99", 0.0) / (first.latency_ms.get("p99") or 1.0)
    return [
        f"{point.minute:.1f}",
        f"{point.latency_ms.get('p50', 0.0):.2f}",
        f"{point.latency_ms.get('p99', 0.0):.1f} ({ratio:.2f} x)",
        f"{point.latency_ms.get('p99.9', 0.0):.1f}",
        f"{point.rate:.1f}",
        "" if point.backlog is None else f"{point.backlog:.0f}",
        "" if point.disk_bytes is None else f"{point.disk_bytes / (1 << 20):,.0f}",
        "" if point.pss_bytes is None else f"{point.pss_bytes / (1 << 20):.0f}",
        f"{point.load_average:.1f}",
    ]


def table(curve: Curve) -> Table:
    """Render a curve."""
    errors = f", errors {curve.errors}" if curve.errors else ""
    made = Table(title=f"{curve.target} at {curve.rate:.1f} requests/s{errors}")
    for name in (
        "minute",
        "p50 ms",
        "p99 ms (of the first)",
        "p99.9 ms",
        "ops/s",
        "backlog",
        "disk MiB",
        "PSS MiB",
        "load average",
    ):
        made.add_column(name, justify="right")
    for point in curve.points:
        made.add_row(*line(point, curve.points[0]))
    return made
