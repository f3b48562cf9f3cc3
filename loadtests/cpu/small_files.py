"""A source tree through a gateway, or directly on its mount.

Run it by `python -m sluice_s3.loadtests.cpu small-files`. The tree is that of the published measurement `efs-001`
(54,000 files in 3,657 directories, 726 MB). It measures how long clients take to put it, and the rate of 16 readers of
10,000 of the files, with 80 % of the reads from a fifth of those.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from rich import box
from rich.table import Table

from sluice_s3.loadtests.common import procfs
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.targets import Running
from sluice_s3.loadtests.cpu.client import Client, Outcome, Request
from sluice_s3.loadtests.mounts.workloads import LARGEST, Tree, forget, read

BUCKET = "tree"
LONG = 36_000.0
READERS = 16
AGAIN_AND_AGAIN = 0.8
"""Share of the reads that go to a fifth of the files that are read."""


class Reads(NamedTuple):
    """How many reads, and of how many files, anywhere in the tree."""

    total: int
    files: int


@dataclass(frozen=True)
class Found:
    """Seconds of writing, and bytes a second of readers with cold and warm caches.

    0: not measured.
    """

    name: str
    files: int
    bytes: int
    wrote: float
    cold: float = 0.0
    warm: float = 0.0
    cpu: dict[str, Cpu] = field(default_factory=dict)
    """CPU by phase: `put`, `cold`, `warm`."""


class Cpu(NamedTuple):
    """Seconds of CPU.

    Those of a mount are 0 when its process is not known.
    """

    gateway: float
    client: float
    mount: float
    elapsed: float


class Meter:
    """Measures the CPU of all participants.

    `gateway` and `mount` are the roots of process trees.
    """

    def __init__(self, gateway: int | None, mount: int | None) -> None:
        self._roots = gateway, mount
        self._last = self._read()

    def _read(self) -> Cpu:
        gateway, mount = (0.0 if root is None else procfs.cpu_seconds(root) for root in self._roots)
        return Cpu(gateway, time.process_time(), mount, time.perf_counter())

    def lap(self) -> Cpu:
        """Return the CPU since the last call."""
        before, self._last = self._last, self._read()
        return Cpu(*(after - was for after, was in zip(self._last, before, strict=True)))


def chosen_reads(tree: Tree, reads: Reads, seed: int = 2) -> list[tuple[str, int]]:
    """Return names and sizes of files to read, in order."""
    chance = random.Random(seed)
    files = chance.sample(tree.files, min(reads.files, len(tree.files)))
    fifth = len(files) // 5
    often, seldom = files[:fifth], files[fifth:]
    return [chance.choice(often if chance.random() < AGAIN_AND_AGAIN else seldom) for _ in range(reads.total)]


def drop_caches() -> bool:
    """Have Linux drop its caches. Returns False if we are not root."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        return False
    return True


def through(running: Running, tree: Tree, clients: int, reads: Reads, mount: int | None = None) -> Found:
    """Put the tree through an endpoint and read from it.

    Raises S3CallError, Stalled, OSError.
    """
    running.calls.ask("PUT", f"/{BUCKET}")
    body = memoryview(os.urandom(2 * LARGEST))
    chance = random.Random(1)

    def puts() -> Iterator[Request]:
        for name, size in tree.files:
            start = chance.randrange(LARGEST)
            yield Request(
                running.signer.head("PUT", f"/{BUCKET}/{quote(name)}", length=size), body[start : start + size]
            )

    def gets() -> Iterator[Request]:
        for name, size in chosen_reads(tree, reads):
            yield Request(running.signer.head("GET", f"/{BUCKET}/{quote(name)}"), size=size)

    def measured(what: str, connections: int, requests: list[Request]) -> Outcome:
        meter.lap()
        outcome = _run(running, connections, requests)
        spent[what] = meter.lap()
        return outcome

    meter = Meter(running.pid, mount)
    spent: dict[str, Cpu] = {}
    wrote = measured("put", clients, list(puts()))
    drop_caches()
    cold = measured("cold", READERS, list(gets()))
    warm = measured("warm", READERS, list(gets()))
    return Found(
        running.target.name,
        len(tree.files),
        tree.total,
        wrote.elapsed,
        cold.moved / cold.elapsed,
        warm.moved / warm.elapsed,
        spent,
    )


def _run(running: Running, connections: int, requests: Iterable[Request]) -> Outcome:
    client = Client(running.address, connections)
    try:
        outcome = client.run(requests, LONG)
    finally:
        client.close()
    if outcome.errors:
        raise S3CallError(f"{running.target.name}: {dict(outcome.errors)}")
    return outcome


def straight(directory: Path, tree: Tree, threads: int, reads: Reads, *, sync: bool) -> Found:
    """Write one file for each object in `directory` by `threads`, and read from it.

    With `sync` each file is synced before it is closed.
    """
    body = memoryview(os.urandom(2 * LARGEST))
    started = time.perf_counter()
    for name in tree.directories:
        (directory / name).mkdir()
    _run_each(tree.files, threads, lambda name, size: _write(directory / name, body[:size], sync))
    wrote = time.perf_counter() - started
    chosen = chosen_reads(tree, reads)
    for name, _ in set(chosen):
        with suppress(OSError):
            forget(directory / name)
    drop_caches()
    cold, warm = [_rate(directory, chosen) for _ in range(2)] if reads.total else [0.0, 0.0]
    name = f"{threads} thread{'s' * (threads > 1)}{', synced' * sync}"
    return Found(name, len(tree.files), tree.total, wrote, cold, warm)


def _rate(directory: Path, chosen: Sequence[tuple[str, int]]) -> float:
    started = time.perf_counter()
    _run_each(chosen, READERS, lambda name, _: read(directory / name))
    return sum(size for _, size in chosen) / (time.perf_counter() - started)


def _write(path: Path, body: memoryview, sync: bool) -> None:
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, body)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def _run_each(files: Sequence[tuple[str, int]], threads: int, do: Callable[[str, int], object]) -> None:
    errors: list[Exception] = []

    def work(number: int) -> None:
        try:
            for name, size in files[number::threads]:
                do(name, size)
        except OSError as error:
            errors.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[0]


def table(found: Sequence[Found]) -> Table:
    """Render one line for each result."""
    rendered = Table(box=box.SIMPLE)
    for heading in ("through", "files", "MB", "s", "files/s", "MB/s", "16 read cold, MB/s", "warm, MB/s"):
        rendered.add_column(heading, justify="left" if heading == "through" else "right", no_wrap=True)
    for one in found:
        figures = (one.wrote, one.files / one.wrote, one.bytes / one.wrote / 1e6, one.cold / 1e6, one.warm / 1e6)
        rendered.add_row(
            one.name, f"{one.files:,}", f"{one.bytes / 1e6:,.0f}", *(f"{figure:,.1f}" for figure in figures)
        )
    return rendered


def cpu_table(found: Sequence[Found]) -> Table:
    """Render the CPU of each participant, one line for each measured result."""
    made = Table(box=box.SIMPLE)
    for heading in ("through", "", "s", "CPU s of the gateway", "of the client", "of the mount"):
        made.add_column(heading, justify="left" if heading in ("through", "") else "right", no_wrap=True)
    for one in found:
        for what, cpu in one.cpu.items():
            figures = (cpu.elapsed, cpu.gateway, cpu.client, cpu.mount)
            made.add_row(one.name, what, *(f"{figure:,.2f}" for figure in figures))
    return made
