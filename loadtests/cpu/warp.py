"""Cells that warp (github.com/minio/warp) runs: requests of a client that people use, on any core."""

from __future__ import annotations

import csv
import io
import os
import secrets
import subprocess
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sluice_s3.loadtests.common import procfs
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.targets import Keys, Running
from sluice_s3.loadtests.cpu.measurement import Case, Measure, percentiles
from sluice_s3.loadtests.cpu.target_run import Plan

SAMPLE_SECONDS = 0.2
LIST_KEYS = 1000
"""Keys that one LIST returns: those of one thread's prefix, in one page."""
READ_BYTES = 1 << 30
READ_OBJECTS = 2500
"""Objects that GET and STAT prepare, or fewer, of READ_BYTES in all."""
MIX_OBJECTS = 200
DELETE_RATE = 4000
"""Objects a second that DELETE prepares. It ends early when none is left."""


@dataclass(frozen=True)
class Operation:
    """A subcommand of warp, its name in warp's records (empty: several), and its options."""

    command: str
    recorded: str
    options: Callable[[Case, float], list[str]]


def _no_options(_case: Case, _seconds: float) -> list[str]:
    return []


def _objects_to_read(case: Case, _seconds: float) -> list[str]:
    return ["--objects", str(min(READ_OBJECTS, max(case.clients, READ_BYTES // case.size)))]


def _objects_to_delete(_case: Case, seconds: float) -> list[str]:
    return ["--objects", str(int(DELETE_RATE * seconds)), "--batch", "1"]


def _objects_to_list(case: Case, _seconds: float) -> list[str]:
    return ["--objects", str(LIST_KEYS * case.clients), "--max-keys", str(LIST_KEYS)]


def _objects_of_mix(_case: Case, _seconds: float) -> list[str]:
    return ["--objects", str(MIX_OBJECTS)]


OPERATIONS = {
    "PUT": Operation("put", "PUT", _no_options),
    "GET": Operation("get", "GET", _objects_to_read),
    "STAT": Operation("stat", "STAT", _objects_to_read),
    "DELETE": Operation("delete", "DELETE", _objects_to_delete),
    "LIST": Operation("list", "LIST", _objects_to_list),
    "MIX": Operation("mixed", "", _objects_of_mix),
}


class WarpRun:
    """Runs a plan against one target by the warp at `program`, each cell in a bucket of its own.

    CPU is that of the time from the first request of the cell to its last answer, without warp's preparation.
    """

    def __init__(self, running: Running, keys: Keys, plan: Plan, program: Path, number: int, parent: Path) -> None:
        self._running = running
        self._keys = keys
        self._plan = plan
        self._program = program
        self._round = number
        self._parent = parent

    def run(self, report: Callable[[Measure], None]) -> None:
        """Run every cell and report each measure. Raises S3CallError and OSError."""
        for case in self._cases():
            os.sync()
            report(self._measure(case))

    def clean(self) -> None:
        """Do nothing: warp removes what it made on an endpoint that outlives the turn."""

    def _cases(self) -> Iterator[Case]:
        plan = self._plan
        for clients in plan.clients:
            for size in plan.sizes:
                yield from (Case(one, size, clients) for one in plan.operations if one not in ("LIST", "MIX"))
            if "LIST" in plan.operations:
                yield Case("LIST", 1 << 10, clients)
        if "MIX" in plan.operations:
            yield Case("MIX", plan.mix_bytes, plan.mix_clients)

    def _measure(self, case: Case) -> Measure:
        operation = OPERATIONS[case.operation]
        records = self._parent / f"warp-{secrets.token_hex(4)}"
        command = self._command(case, operation, records)
        environment = {**os.environ, "WARP_SECRET_KEY": self._keys.secret_key}
        start = partial(subprocess.Popen, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with (
            start(command) as process,
            _sampled(self._running.pid, process.pid) as samples,
        ):
            output, _ = process.communicate()
        if process.returncode:
            raise S3CallError(f"warp {case.name}: exit status {process.returncode}\n{output[-2000:]}")
        compressed = records.with_name(f"{records.name}.csv.zst")
        done = subprocess.run(["zstd", "-dcq", compressed], capture_output=True, check=False)
        compressed.unlink()
        if done.returncode:
            raise S3CallError(f"zstd cannot read what warp recorded: {done.stderr.decode(errors='replace')}")
        return self._result(case, parse_records(done.stdout.decode(), operation.recorded), samples)

    def _command(self, case: Case, operation: Operation, records: Path) -> list[str]:
        host, port = self._running.address
        command = [str(self._program), operation.command, "--no-color", "--full", "--benchdata", str(records)]
        command += ["--host", f"{host}:{port}", "--access-key", self._keys.access_key, "--region", self._keys.region]
        command += ["--bucket", f"warp-{secrets.token_hex(4)}", "--duration", f"{self._plan.seconds}s"]
        command += ["--concurrent", str(case.clients), "--obj.size", f"{case.size}"]
        if self._running.target.launched:
            command.append("--noclear")
        return command + operation.options(case, self._plan.seconds)

    def _result(self, case: Case, records: Records, samples: list[Sample]) -> Measure:
        if not records.latencies:
            raise S3CallError(f"warp {case.name}: no operation succeeded: {dict(records.errors)}")
        start, end = _sample_at(samples, records.start), _sample_at(samples, records.end)
        wall, count = records.end - records.start, len(records.latencies)
        server, client = end.server - start.server, end.client - start.client
        return Measure(
            round=self._round,
            target=self._running.target.name,
            cell=case,
            operations=count,
            elapsed=wall,
            moved=records.moved,
            latency_ms=percentiles(records.latencies),
            cpu_us=None if self._running.pid is None else server / count * 1e6,
            peak_bytes=None if self._running.pid is None else procfs.peak_bytes(self._running.pid),
            client_busy=client / wall / (os.cpu_count() or 1),
            server_busy=server / wall / (os.cpu_count() or 1),
            others=max(0.0, (end.busy - start.busy - server - client) / wall),
            errors=dict(records.errors),
            pss_bytes=None if self._running.pid is None else procfs.pss_bytes(self._running.pid),
        )


@dataclass
class Records:
    """What warp recorded of a cell. Times are seconds since 1970, latencies seconds."""

    start: float = 0.0
    end: float = 0.0
    latencies: list[float] = field(default_factory=list)
    moved: int = 0
    errors: Counter[str] = field(default_factory=Counter)


def parse_records(text: str, operation: str) -> Records:
    """Parse warp's table of requests, those of one operation if it is not empty."""
    found = Records()
    spans = []
    lines = (line for line in io.StringIO(text) if not line.startswith("#"))
    for row in csv.DictReader(lines, delimiter="\t"):
        if operation and row["op"] != operation:
            continue
        spans.append((row["start"], row["end"]))
        if row["error"]:
            found.errors[row["error"][:80]] += 1
        else:
            found.latencies.append(int(row["duration_ns"]) / 1e9)
            found.moved += int(row["bytes"])
    if spans:
        found.start = min(_parse_time(start) for start, _ in spans)
        found.end = max(_parse_time(end) for _, end in spans)
    return found


def _parse_time(text: str) -> float:
    """Parse RFC 3339 with up to nine decimals."""
    whole, _, decimals = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{decimals or 0}")


class Sample(NamedTuple):
    """CPU seconds used until a time (seconds since 1970): by the server, by warp, and by everything."""

    time: float
    server: float
    client: float
    busy: float


def _take_sample(server: int | None, client: int) -> Sample:
    # A process may end between two reads; then its time is in that of its parent.
    try:
        used = procfs.cpu_seconds(client)
    except ProcessLookupError:
        used = 0.0
    return Sample(time.time(), 0.0 if server is None else procfs.cpu_seconds(server), used, procfs.busy_seconds())


@contextmanager
def _sampled(server: int | None, client: int) -> Iterator[list[Sample]]:
    """Take samples in a thread until the end of the block."""
    samples = [_take_sample(server, client)]
    stop = threading.Event()

    def take() -> None:
        while not stop.wait(SAMPLE_SECONDS):
            samples.append(_take_sample(server, client))

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


def _sample_at(samples: list[Sample], moment: float) -> Sample:
    """Interpolate between the samples before and after a moment."""
    place = min(max(bisect_left(samples, (moment,)), 1), len(samples) - 1)
    before, after = samples[place - 1], samples[place]
    share = min(max((moment - before.time) / (after.time - before.time), 0.0), 1.0)
    return Sample(*(low + (high - low) * share for low, high in zip(before, after, strict=True)))
