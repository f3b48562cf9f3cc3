"""A child process of the launcher, from its start to its end."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from sluice_s3.app.index.object_lock.retention_clock import clock
from sluice_s3.app.server.processes.context import WorkerSpec
from sluice_s3.app.server.processes.handover import NO_INBOXES, Inboxes
from sluice_s3.app.server.processes.instance_lock import is_dead_or_dying
from sluice_s3.app.server.processes.spawn import Process, spawn_forked, spawn_fresh
from sluice_s3.app.server.processes.worker import DRAIN_SIGNAL, PRE_STOP_SIGNAL, READY, run_worker
from sluice_s3.app.settings import Settings

BOOTSTRAP = (
    "import pickle, sys; pipe = open({fd}, 'rb'); sys.path[:] = pickle.load(pipe); "
    "from sluice_s3.app.server.processes.parent_death import die_with_parent; die_with_parent({parent}); "
    "from sluice_s3.app.server.processes.worker import main; main(pipe)"
)
"""The child gets its parent's module path: its working directory may hold another package `app`.

It inherits the server's lock: if its parent is killed while the child still imports, the next server finds the lock
taken.
"""


DOOMED_CHECK_SECONDS = 10.0
"""Seconds between two looks for a killed process that hangs in the kernel."""


class ChildFailed(Exception):
    """A child did not become ready; the message says why."""


@dataclass
class Role:
    """What a process of the server is for. Its sockets outlive its processes."""

    kind: str
    slot: int
    target: str
    sockets: tuple[int, ...]
    tls: bool
    child: Child | None = None
    failures: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __str__(self) -> str:
        return self.kind if self.kind == "admin" else f"{self.kind} {self.slot}"


class Inherited(NamedTuple):
    """What every process of the server inherits besides its listening sockets."""

    lock: int
    """Descriptor of the server's lock, which is held until the last process is dead."""
    read_caches: Mapping[str, int]
    """Descriptors of the memory that processes share, by stores."""
    inboxes: Inboxes

    def get_inboxes(self, role: Role) -> Inboxes:
        """Return those for a process in a role: one that never reads must not keep an inbox from being closed."""
        return self.inboxes if role.kind == "worker" else NO_INBOXES


@dataclass(eq=False)
class Child:
    """A process in a role, with its slot in the shared files."""

    role: Role
    shared_slot: int
    process: Process
    ready: int
    """Descriptor of the pipe for the child's report that it serves, or why not."""
    retired: bool = False
    """It was signalled to stop: its end is expected."""
    started: float = field(default_factory=time.monotonic)

    async def wait_ready(self) -> None:
        """Wait until the child serves. Raises ChildFailed when it ends or reports why it cannot start."""
        reader = asyncio.StreamReader()
        pipe = os.fdopen(self.ready, "rb")
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        report = await reader.read()
        if report == READY:
            return
        self.kill()
        code = await self.process.wait()
        raise ChildFailed(report.decode("utf-8", "replace") or f"it ended with code {code}")

    async def wait_until_dead(self) -> int:
        """Return the exit code once the process has ended, or was killed and never runs again.

        A thread of a killed process may hang in the kernel, on a mount that does not answer: it ends later, if ever.
        """
        ended = asyncio.ensure_future(self.process.wait())
        doomed = False
        while not (await asyncio.wait([ended], timeout=DOOMED_CHECK_SECONDS))[0]:
            if doomed:  # twice, so that one that is about to end has its own exit code
                ended.cancel()
                return -signal.SIGKILL
            doomed = is_dead_or_dying(self.process.pid)
        return ended.result()

    def leave(self) -> None:
        """Answer `down` to readiness probes, and continue to serve."""
        self._signal(PRE_STOP_SIGNAL)

    def stop(self) -> None:
        """Stop gracefully, without delay for idle clients."""
        self._signal(signal.SIGTERM)

    def retire(self) -> None:
        """Stop gracefully, with patience for clients with open connections."""
        self._signal(DRAIN_SIGNAL)

    def kill(self) -> None:
        """Kill at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        self.retired = self.retired or number is not PRE_STOP_SIGNAL
        try:
            self.process.send(number)
        except ProcessLookupError:
            pass


def start_child(
    settings: Settings,
    role: Role,
    shared_slot: int,
    shared_slot_count: int,
    inherited: Inherited,
    *,
    forked: bool,
) -> Child:
    """Start a process that inherits its sockets and what is `inherited`.

    `forked`: it is a fork of this process, which has imported everything; otherwise a new one with the code installed
    now. Raises ChildFailed and OSError.
    """
    ready_read, ready_write = os.pipe()
    inboxes = inherited.get_inboxes(role)
    try:
        spec = WorkerSpec(
            settings=settings,
            target=role.target,
            kind=role.kind,
            slot=role.slot,
            place=shared_slot,
            places=shared_slot_count,
            sockets=role.sockets,
            ready_fd=ready_write,
            parent=os.getpid(),
            tls=role.tls,
            clock=clock.began,
            read_caches=dict(inherited.read_caches),
            inboxes=inboxes,
        )
        shared = (inherited.lock, *inherited.read_caches.values(), *inboxes.descriptors)
        keep = (ready_write, *role.sockets, *shared)
        process = spawn_forked(partial(run_worker, spec), keep) if forked else _execute(spec, f"sluice {role}", keep)
    except BaseException:
        os.close(ready_read)
        raise
    finally:
        os.close(ready_write)
    return Child(role, shared_slot, process, ready_read)


def _execute(spec: WorkerSpec, name: str, keep: tuple[int, ...]) -> Process:
    reading, writing = os.pipe()
    try:
        message = pickle.dumps(sys.path) + pickle.dumps(spec)
        os.set_blocking(writing, False)
        if os.write(writing, message) != len(message):
            raise ChildFailed("the module path is too long for a pipe")
        return spawn_fresh(BOOTSTRAP.format(fd=reading, parent=spec.parent), name, (reading, *keep))
    finally:
        os.close(reading)
        os.close(writing)
