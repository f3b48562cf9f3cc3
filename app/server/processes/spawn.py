"""Child processes, forked or fresh, awaited without a thread."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import signal
import sys
from collections.abc import Callable, Collection
from typing import NoReturn

logger = logging.getLogger("sluice.launcher")

PR_SET_NAME = 15
STANDARD = (0, 1, 2)


class Process:
    """A child of this process. It can be created before there is an event loop."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        """As in subprocess: negative for the signal that killed it."""
        self._pidfd = os.pidfd_open(pid)
        self._ended: asyncio.Event | None = None

    async def wait(self) -> int:
        """Wait for its end, and return its `returncode`."""
        if self._ended is None:
            self._ended = asyncio.Event()
            asyncio.get_running_loop().add_reader(self._pidfd, self._reap, self._ended)
        await self._ended.wait()
        assert self.returncode is not None
        return self.returncode

    def send(self, number: signal.Signals) -> None:
        """Send a signal, and never to another process that has reused the pid."""
        if self.returncode is None:
            signal.pidfd_send_signal(self._pidfd, number)

    def _reap(self, ended: asyncio.Event) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self._pidfd)
        ended.set()


def spawn_forked(call: Callable[[], None], keep: Collection[int]) -> Process:
    """Start a fork that runs `call`, with all imports and no descriptors but `keep`.

    Allowed only while this process has no threads and no event loop.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _play(call, {*STANDARD, *keep})
    return Process(pid)


def _play(call: Callable[[], None], keep: Collection[int]) -> NoReturn:
    code = 1
    try:
        os.setpgid(0, 0)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd not in keep:
                _close(fd)
        call()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        logger.critical("a process ended by an error", exc_info=True)
    finally:
        logging.shutdown()
        os._exit(code)


def _close(fd: int) -> None:
    try:
        os.close(fd)
    except OSError:  # the descriptor of the listed directory itself
        pass


def spawn_fresh(code: str, name: str, keep: Collection[int]) -> Process:
    """Start a fresh Python process with no descriptors but `keep`. Raises OSError."""
    actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in keep)]
    command = [sys.executable, "-c", code, name]
    return Process(os.posix_spawn(sys.executable, command, os.environ, file_actions=actions, setpgroup=0))


def set_process_title(name: str) -> None:
    """Set the name that `ps -o comm` and `top` print. At most 15 bytes."""
    ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode()[:15])
