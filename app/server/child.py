"""One child process of the launcher, from its start to its end."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
import time
from dataclasses import dataclass, field
from functools import partial

from app.index.lock_clock import clock
from app.server.processes import Process, execute, fork
from app.server.worker import DRAIN, LEAVE, READY, Spec, play
from app.settings import Settings

BOOTSTRAP = (
    "import pickle, sys; pipe = open({fd}, 'rb'); sys.path[:] = pickle.load(pipe); "
    "from app.server.parent import die_with; die_with({parent}); "
    "from app.server.worker import main; main(pipe)"
)
"""The child gets its parent's module path: the directory that it was started in may hold an `app` of somebody else.

It has the server's lock: were its parent killed while it still imports, the next server would find the lock taken.
"""


class ChildFailed(Exception):
    """A process did not become ready; the message says why."""


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


@dataclass(eq=False)
class Child:
    """A process that plays a role, at a place of the shared files."""

    role: Role
    place: int
    process: Process
    ready: int
    """Descriptor of the pipe on which it says that it serves, or why not."""
    retired: bool = False
    """It was told to stop: its end is no accident."""
    started: float = field(default_factory=time.monotonic)

    async def wait_ready(self) -> None:
        """Raises ChildFailed when the process ends, or says why it cannot start."""
        reader = asyncio.StreamReader()
        pipe = os.fdopen(self.ready, "rb")
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        said = await reader.read()
        if said == READY:
            return
        self.kill()
        code = await self.process.wait()
        raise ChildFailed(said.decode("utf-8", "replace") or f"it ended with code {code}")

    def leave(self) -> None:
        """Say `down` to who asks for readiness, and serve on."""
        self._signal(LEAVE)

    def stop(self) -> None:
        """Stop gracefully, at once."""
        self._signal(signal.SIGTERM)

    def retire(self) -> None:
        """Stop gracefully, with patience for clients that hold connections."""
        self._signal(DRAIN)

    def kill(self) -> None:
        """Stop now."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        self.retired = self.retired or number is not LEAVE
        try:
            self.process.send(number)
        except ProcessLookupError:
            pass


def begin(settings: Settings, role: Role, place: int, places: int, lock_fd: int, *, forked: bool) -> Child:
    """Start a process. It inherits its sockets, and the server's lock, which so is held until the last one is dead.

    Forked off this one, which has all imported, or anew, with the code that is installed now. Raises ChildFailed and
    OSError.
    """
    ready_read, ready_write = os.pipe()
    try:
        spec = Spec(
            settings=settings,
            target=role.target,
            kind=role.kind,
            slot=role.slot,
            place=place,
            places=places,
            sockets=role.sockets,
            ready_fd=ready_write,
            parent=os.getpid(),
            tls=role.tls,
            clock=clock.began,
        )
        keep = (ready_write, lock_fd, *role.sockets)
        process = fork(partial(play, spec), keep) if forked else _execute(spec, f"sluice {role}", keep)
    except BaseException:
        os.close(ready_read)
        raise
    finally:
        os.close(ready_write)
    return Child(role, place, process, ready_read)


def _execute(spec: Spec, name: str, keep: tuple[int, ...]) -> Process:
    reading, writing = os.pipe()
    try:
        message = pickle.dumps(sys.path) + pickle.dumps(spec)
        os.set_blocking(writing, False)
        if os.write(writing, message) != len(message):
            raise ChildFailed("the module path is too long for a pipe")
        return execute(BOOTSTRAP.format(fd=reading, parent=spec.parent), name, (reading, *keep))
    finally:
        os.close(reading)
        os.close(writing)
