"""Processes that are killed, stopped, or have less than they need."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.reliability.lab.faults.registry import Scene, fault
from tests.support.waiting import eventually

PIDS = Path("/sys/fs/cgroup/pids")
POINTS = (
    "store.durable",
    "index.commit",
    "index.committed",
    "store.committed",
    "decisions.written",
    "discard.unlinked",
)
PACK_POINTS = ("discard.unlinked", "pack.written", "pack.synced", "put.synced", "put.directory_synced")
TREE_POINTS = ("tree.begun", "publish.renamed", "tree.published", "remove.unlinked", "tree.committed")
DEATH_SECONDS = 10.0


@fault("none")
def nothing(scene: Scene) -> Iterator[None]:
    """A calm time, against which the others are read."""
    yield
    yield


@fault("kill-worker")
def kill_worker(scene: Scene) -> Iterator[None]:
    """kill -9 of one worker, now and then."""
    yield
    for _ in range(scene.rng.randint(1, 3)):
        if workers := scene.rng.choice(scene.site.gateways).children():
            with suppress(ProcessLookupError):
                os.kill(scene.rng.choice(workers), signal.SIGKILL)
        scene.clients.wait(scene.rng.uniform(0, 1))
    yield


@fault("kill-writer")
def kill_writer(scene: Scene) -> Iterator[None]:
    """A worker dies in the middle of a write, at a named point."""
    yield
    site = scene.site
    point = scene.rng.choice((*POINTS, *(TREE_POINTS if site.setup.store == "tree" else PACK_POINTS)))
    before = {pid for gateway in site.gateways for pid in gateway.children()}
    site.armed.with_suffix(".new").write_text(point)
    site.armed.with_suffix(".new").rename(site.armed)
    until = time.monotonic() + DEATH_SECONDS
    while before <= {pid for gateway in site.gateways for pid in gateway.children()} and time.monotonic() < until:
        scene.clients.wait(0.02)
    site.armed.unlink()
    yield


@fault("kill-gateway")
def kill_gateway(scene: Scene) -> Iterator[None]:
    """kill -9 of a whole gateway, which a supervisor starts again later."""
    yield
    scene.rng.choice(scene.site.gateways).kill()
    yield
    scene.site.start()


@fault("kill-all")
def kill_all(scene: Scene) -> Iterator[None]:
    """kill -9 of everything, as when a machine is reset whose disk writes on."""
    yield
    scene.site.kill()
    scene.site.start()
    yield


@fault("stop-worker")
def stop_worker(scene: Scene) -> Iterator[None]:
    """SIGSTOP of one worker, and SIGCONT."""
    yield
    worker = scene.rng.choice(scene.rng.choice(scene.site.gateways).children())
    os.kill(worker, signal.SIGSTOP)
    yield
    with suppress(ProcessLookupError):
        os.kill(worker, signal.SIGCONT)


@fault("stop-gateway")
def stop_gateway(scene: Scene) -> Iterator[None]:
    """SIGSTOP of a whole gateway, for longer than others wait before they call it dead."""
    yield
    gateway = scene.rng.choice(scene.site.gateways)
    scene.site.signal(gateway, signal.SIGSTOP)
    scene.clients.wait(scene.rng.choice((1.0, 8.0)))
    yield
    scene.site.signal(gateway, signal.SIGCONT)


def _workers(scene: Scene) -> list[int]:
    return [pid for gateway in scene.site.gateways for pid in gateway.children()]


@contextmanager
def _limited(scene: Scene, what: int, limit: dict[int, int]) -> Iterator[None]:
    """Give each process a limit of its own, and take it away."""
    before = {}
    for pid, most in limit.items():
        with suppress(ProcessLookupError):
            before[pid] = resource.prlimit(pid, what)
            resource.prlimit(pid, what, (most, before[pid][1]))
    try:
        yield
    finally:
        for pid, old in before.items():
            with suppress(ProcessLookupError):
                resource.prlimit(pid, what, old)


@fault("few-descriptors")
def few_descriptors(scene: Scene) -> Iterator[None]:
    """No worker can open more than two files or connections more."""
    yield
    limit = {pid: len(os.listdir(f"/proc/{pid}/fd")) + 2 for pid in _workers(scene)}
    with _limited(scene, resource.RLIMIT_NOFILE, limit):
        yield


@fault("little-memory")
def little_memory(scene: Scene) -> Iterator[None]:
    """No worker can have more than a few MiB more."""
    yield
    limit = {}
    for pid in _workers(scene):
        status = Path(f"/proc/{pid}/status").read_text().split()
        limit[pid] = int(status[status.index("VmSize:") + 1]) * 1024 + scene.rng.choice((0, 1, 8, 32)) * (1 << 20)
    with _limited(scene, resource.RLIMIT_AS, limit):
        yield


@fault("few-threads", on=lambda setup: os.access(PIDS, os.W_OK) and (PIDS / "cgroup.procs").exists())
def few_threads(scene: Scene) -> Iterator[None]:
    """No worker can start a thread or a process."""
    yield
    group = PIDS / f"sluice-lab-{os.getpid()}"
    group.mkdir()
    try:
        for pid in _workers(scene):
            with suppress(OSError):
                (group / "cgroup.procs").write_text(str(pid))
        (group / "pids.max").write_text((group / "pids.current").read_text())
        yield
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (PIDS / "cgroup.procs").write_text(pid)
        eventually(lambda: not (group / "cgroup.procs").read_text(), "the group is empty")
        group.rmdir()
