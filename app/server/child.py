"""One child process of the launcher, from its start to its end."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import sys
from asyncio.subprocess import Process
from dataclasses import dataclass, field

from app.server.worker import DRAIN, LEAVE, READY, Spec
from app.settings import Settings

BOOTSTRAP = (
    "import pickle, sys; pipe = open({fd}, 'rb'); sys.path[:] = pickle.load(pipe); "
    "from app.server.worker import main; main(pipe)"
)
"""The child gets its parent's module path: the directory that it was started in may hold an `app` of somebody else."""


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
    ready: asyncio.StreamReader
    retired: bool = False
    """It was told to stop: its end is no accident."""
    started: float = 0.0

    async def wait_ready(self) -> None:
        """Raises ChildFailed when the process ends, or says why it cannot start."""
        said = await self.ready.read()
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
        # not send_signal: before 3.12 that may take the process's end away from asyncio
        if self.process.returncode is None:
            try:
                os.kill(self.process.pid, number)
            except ProcessLookupError:
                pass


async def spawn(settings: Settings, role: Role, place: int, places: int, lock_fd: int) -> Child:
    """Start a process. It inherits its sockets, and the server's lock, which so is held until the last one is dead."""
    spec_read, spec_write = os.pipe()
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
        )
        message = pickle.dumps(sys.path) + pickle.dumps(spec)
        os.set_blocking(spec_write, False)
        if os.write(spec_write, message) != len(message):
            raise ChildFailed("the module path is too long for a pipe")
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            BOOTSTRAP.format(fd=spec_read),
            f"sluice {role}",
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(spec_read, ready_write, lock_fd, *role.sockets),
            process_group=0,
        )
    except BaseException:
        os.close(ready_read)
        raise
    finally:
        for fd in (spec_read, spec_write, ready_write):
            os.close(fd)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(ready_read, "rb"))
    return Child(role, place, process, reader, started=loop.time())
