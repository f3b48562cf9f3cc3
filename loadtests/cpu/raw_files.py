"""What a mount achieves with one file for each object: the baseline for packs."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from sluice_s3.loadtests.cpu.measurement import percentiles


@dataclass(frozen=True)
class Plan:
    """What the threads do.

    `directories` 0: one for each thread. `sync` makes each file durable before the next is created, `sync_directory`
    its name too.
    """

    directory: Path
    threads: int
    size: int
    seconds: float
    sync: bool
    sync_directory: bool
    directories: int


@dataclass
class Result:
    """The result. `rate` is objects a second."""

    objects: int
    elapsed: float
    latency_ms: dict[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Objects a second."""
        return self.objects / self.elapsed if self.elapsed else 0.0


def run(plan: Plan) -> Result:
    """Have every thread create files until the time is over.

    Leaves the files there. Raises OSError.
    """
    count = plan.directories or plan.threads
    directories = [plan.directory / f"files-{number}" for number in range(count)]
    for directory in directories:
        directory.mkdir()
    took: list[list[float]] = [[] for _ in range(plan.threads)]
    errors: list[OSError] = []
    begin = threading.Barrier(plan.threads + 1)

    def work(number: int) -> None:
        body = os.urandom(plan.size)
        directory = directories[number % count]
        begin.wait()
        deadline = time.perf_counter() + plan.seconds
        try:
            while (started := time.perf_counter()) < deadline:
                _write(directory / f"{number}-{len(took[number])}", body, plan)
                took[number].append(time.perf_counter() - started)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(plan.threads)]
    for thread in threads:
        thread.start()
    begin.wait()
    started = time.perf_counter()
    for thread in threads:
        thread.join()
    elapsed = time.perf_counter() - started
    if errors:
        raise errors[0]
    latencies = [one for each in took for one in each]
    return Result(len(latencies), elapsed, percentiles(latencies))


def _write(path: Path, body: bytes, plan: Plan) -> None:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, body)
        if plan.sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if plan.sync_directory:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
