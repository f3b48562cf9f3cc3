"""A call in a process of its own, which may hang without blocking this one."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Callable
from typing import NoReturn

from sluice_s3.app.server.processes.parent_death import die_with_parent

KILL_GRACE_SECONDS = 1.0
"""Seconds that the process has to end after its result. One that hangs in the kernel stays."""


class ChildDied(Exception):
    """The process ended before its call did."""


def run_in_child(call: Callable[[], object]) -> None:
    """Call in a fork of this process, which has no threads yet. Raises what the call raises."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _run(call, reading, writing)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as pipe:
            result = pipe.read()
    finally:
        _end(pid)
    if not result:
        raise ChildDied("what is done before the start ended early")
    error = pickle.loads(result)  # noqa: S301 - our own child wrote it
    if error is not None:
        raise error


def _run(call: Callable[[], object], reading: int, writing: int) -> NoReturn:
    try:
        os.close(reading)
        die_with_parent(os.getppid())
        error: Exception | None = None
        try:
            call()
        except Exception as raised:
            error = raised
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(_pickle(error))
    finally:
        os._exit(0)


def _pickle(error: Exception | None) -> bytes:
    """Pickle an exception without its causes, which may be anything."""
    try:
        result = pickle.dumps(error)
        pickle.loads(result)  # noqa: S301 - pickled just above
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return result


def _end(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + KILL_GRACE_SECONDS
        while os.waitpid(pid, os.WNOHANG) == (0, 0) and time.monotonic() < deadline:
            time.sleep(0.01)
    except (ProcessLookupError, ChildProcessError):
        pass
