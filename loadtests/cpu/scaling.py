"""The cost of many small objects: one store is filled, and measured before and after."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import secrets
import shlex
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rich.console import Console
from rich.table import Table

from sluice_s3.loadtests.clients.signing import Signer
from sluice_s3.loadtests.common import procfs
from sluice_s3.loadtests.common.s3_calls import Calls
from sluice_s3.loadtests.common.targets import ROOT, SLUICE, Keys, free_port
from sluice_s3.loadtests.cpu.bulk_load import fill
from sluice_s3.loadtests.cpu.client import Client, Request
from sluice_s3.loadtests.cpu.measurement import measure_cost

PAGES = 20
TURNS = 3
SPREAD = 7_919_777
"""A prime, so that keys are put in a mixed order."""


@dataclass
class State:
    """How a store of `objects` objects performs.

    Times are seconds unless named otherwise.
    """

    objects: int
    put_rate: float
    empty_put_rate: float
    """The same for an empty store, measured in turns with this one.

    It shows the machine's speed at this time.
    """
    put_cpu_us: float
    put_kinstructions: float
    """Thousand instructions of all processes; 0.0 where the machine does not count them."""
    list_cpu_ms: float
    list_ms: float
    peak_mib: float
    files: int
    data_bytes: int
    index_bytes: int
    restart: float
    """Seconds from the start after kill -9 under load until it is ready."""


class Server:
    """The gateway with one worker on a directory that persists."""

    def __init__(self, data: Path, keys: Keys, durability: str, core: int) -> None:
        self._port = free_port()
        self._core = core
        self.address = ("127.0.0.1", self._port)
        self.signer = Signer(f"127.0.0.1:{self._port}", keys.access_key, keys.secret_key, keys.region)
        self.calls = Calls(self.address, self.signer)
        self._log = data.with_name("log")
        self._environment = {
            **os.environ,
            "SLUICE_ROOT_ACCESS_KEY": keys.access_key,
            "SLUICE_ROOT_SECRET_KEY": keys.secret_key,
            "SLUICE_DURABILITY": durability,
        }
        self._command = [word.format(port=self._port, data=data) for word in shlex.split(SLUICE)]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The launcher's process id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> float:
        """Start the gateway and wait until it answers. Return the seconds that took."""
        began = time.perf_counter()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["taskset", "-c", str(self._core), *self._command],
                cwd=ROOT,
                env=self._environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.calls.wait_ready()
        return time.perf_counter() - began

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Stop the gateway unless it has ended."""
        if self._process is None:
            return
        self._process.send_signal(number)
        self._process.wait()
        self._process = None


def _puts(server: Server, bucket: str, prefix: str, size: int) -> Iterator[Request]:
    pool = memoryview(os.urandom(size + 65536))
    for number in itertools.count():
        start = number % 65536
        path = f"/{bucket}/{prefix}/{number * SPREAD % 10**10:010d}"
        yield Request(server.signer.head("PUT", path, length=size), pool[start : start + size])


class Puts(NamedTuple):
    """The results of the PUTs of one turn."""

    rate: float
    cpu_us: float
    kinstructions: float


def _burst(server: Server, bucket: str, size: int, seconds: float, clients: int) -> Puts:
    feed = iter(list(itertools.islice(_puts(server, bucket, secrets.token_hex(4), size), int(12_000 * seconds))))
    client = Client(server.address, clients)
    try:
        client.run(itertools.islice(feed, 2000), seconds)
        spent = measure_cost(server.pid, client, feed, seconds, "PUT")
    finally:
        client.close()
    rate = len(spent.outcome.latencies) / spent.outcome.elapsed
    return Puts(rate, spent.cpu_us, spent.kinstructions or 0.0)


def _measure(
    server: Server, empty: Server, bucket: str, objects: int, size: int, seconds: float, clients: int
) -> State:
    """Measure PUTs of this store and an empty one in turns (medians), then pages."""
    bursts: list[Puts] = []
    beside: list[Puts] = []
    empty.start()
    try:
        procfs.reset_peak(server.pid)
        for _ in range(TURNS):
            bursts.append(_burst(server, bucket, size, seconds / TURNS, clients))
            beside.append(_burst(empty, bucket, size, seconds / TURNS, clients))
    finally:
        empty.stop()
    list_cpu, list_seconds = _list_pages(server, bucket)
    return State(
        objects=objects,
        put_rate=statistics.median(turn.rate for turn in bursts),
        empty_put_rate=statistics.median(turn.rate for turn in beside),
        put_cpu_us=statistics.median(turn.cpu_us for turn in bursts),
        put_kinstructions=statistics.median(turn.kinstructions for turn in bursts),
        list_cpu_ms=list_cpu * 1e3,
        list_ms=list_seconds * 1e3,
        peak_mib=(procfs.peak_bytes(server.pid) or 0) / (1 << 20),
        files=0,
        data_bytes=0,
        index_bytes=0,
        restart=0.0,
    )


def _list_pages(server: Server, bucket: str) -> tuple[float, float]:
    """Return CPU seconds and median seconds of a page of 1000 keys.

    The pages are spread over the bucket.
    """
    places = [f"many/{10**10 * number // PAGES:010d}" for number in range(PAGES)]
    before = procfs.cpu_seconds(server.pid)
    taken = []
    for place in places:
        began = time.perf_counter()
        server.calls.ask("GET", f"/{bucket}", f"list-type=2&prefix=many%2F&start-after={quote(place, safe='')}")
        taken.append(time.perf_counter() - began)
    return (procfs.cpu_seconds(server.pid) - before) / PAGES, statistics.median(taken)


def _kill_and_restart(server: Server, bucket: str, size: int, clients: int) -> float:
    """Send SIGKILL to every process under load, then restart."""
    killer = threading.Timer(1.0, os.killpg, (server.pid, signal.SIGKILL))
    client = Client(server.address, clients)
    killer.start()
    try:
        client.run(_puts(server, bucket, "killed", size), 3.0)
    except OSError:
        pass  # killed
    finally:
        client.close()
        killer.join()
    server.stop(signal.SIGKILL)
    return server.start()


def _files(data: Path) -> tuple[int, int, int]:
    files = data_bytes = index_bytes = 0
    for directory, _, names in os.walk(data):
        for name in names:
            found = os.stat(os.path.join(directory, name))
            if Path(directory).is_relative_to(data / "data"):
                files += 1
                data_bytes += found.st_blocks * 512
            elif "sluice.db" in name:
                index_bytes += found.st_size
    return files, data_bytes, index_bytes


def grow(
    directory: Path, counts: list[int], size: int, durability: str, seconds: float, clients: int, console: Console
) -> list[State]:
    """Fill a store to each of the counts and measure it there."""
    keys = Keys("GK" + secrets.token_hex(12), secrets.token_hex(32))
    data = directory / "data"
    bucket = "many"
    servers = []
    for place in (data, directory / "empty" / "data"):
        place.mkdir(parents=True)
        server = Server(place, keys, durability, 0)
        server.start()
        try:
            server.calls.ask("PUT", f"/{bucket}")
        finally:
            server.stop()
        servers.append(server)
    server, empty = servers
    states: list[State] = []
    have = 0
    try:
        for count in counts:
            server.stop()
            asyncio.run(fill(data, durability, bucket, have, count, size, console))
            have = count
            server.start()
            state = _measure(server, empty, bucket, count, size, seconds, clients)
            state.restart = _kill_and_restart(server, bucket, size, clients)
            state.files, state.data_bytes, state.index_bytes = _files(data)
            states.append(state)
            console.print(f"{count:,} objects: {json.dumps(asdict(state))}", highlight=False)
    finally:
        server.stop()
    return states


def table(states: list[State]) -> Table:
    """Render the states side by side."""
    made = Table(title="one store, growing")
    made.add_column("")
    for state in states:
        made.add_column(f"{state.objects:,}", justify="right")
    rows = [
        ("PUT/s", [f"{state.put_rate:,.0f}" for state in states]),
        ("PUT/s of an empty store beside it", [f"{state.empty_put_rate:,.0f}" for state in states]),
        ("CPU µs a PUT", [f"{state.put_cpu_us:,.0f}" for state in states]),
        ("thousand instructions a PUT", [f"{state.put_kinstructions:,.0f}" for state in states]),
        ("CPU ms a page of 1000 keys", [f"{state.list_cpu_ms:.2f}" for state in states]),
        ("ms a page of 1000 keys", [f"{state.list_ms:.2f}" for state in states]),
        ("peak memory of the server, MiB", [f"{state.peak_mib:.0f}" for state in states]),
        ("files under data/", [f"{state.files:,}" for state in states]),
        ("bytes of data an object", [f"{state.data_bytes / max(state.objects, 1):,.0f}" for state in states]),
        ("bytes of index an object", [f"{state.index_bytes / max(state.objects, 1):,.0f}" for state in states]),
        ("seconds to start after kill -9", [f"{state.restart:.2f}" for state in states]),
    ]
    for name, cells in rows:
        made.add_row(name, *cells)
    return made
