"""Quick starts: `sluice` commands forked off a process that has imported the gateway, for tests that start hundreds.

A start of its own costs a second of CPU, nearly all of it imports. What runs is the same: `app.cli.main.main`
with arguments, environment, directory, standard streams and session of its own. Others (and all that measure coverage)
start a fresh interpreter.

The process is `python -m tests.support.quick`. It takes requests as JSON on its standard input, a Unix socket: a
command to start (with its output and error descriptors; the answer is a pid), or a pid whose exit code it returns.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import IO, Any, NoReturn

import typer.main

from tests.support.environment import PYTHONPATH, ROOT

LARGEST = 1 << 18
"""Bytes of a request."""
IMPORTED = (
    "sluice_s3.app.cli.main",
    "sluice_s3.app.index.sqlite.index",
    "sluice_s3.app.main",
    "sluice_s3.app.server.processes.launcher",
    "sluice_s3.app.startup",
    "sluice_s3.storage_drivers.local",
    "encodings.idna",
    "typer.core",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto",
)
"""What nearly every command or worker imports, also what they import late."""
COVERAGE = "COVERAGE_PROCESS_CONFIG"
PROGRAM = (sys.executable, "-m", "sluice_s3.app.cli")


class Quick:
    """A process like that of subprocess.Popen, as far as tests use one."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], out: int, error: int) -> None:
        self.pid = _ask({"arguments": list(arguments), "environment": dict(environment)}, out, error)
        self._pidfd = os.pidfd_open(self.pid)
        self.returncode: int | None = None
        self.stdout: IO[str] | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises TimeoutExpired after so many seconds."""
        if self.returncode is None:
            ended, _, _ = select.select([self._pidfd], [], [], timeout)
            if not ended:
                raise subprocess.TimeoutExpired("sluice", timeout or 0)
            self.returncode = _ask(self.pid)
            os.close(self._pidfd)
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code if it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            signal.pidfd_send_signal(self._pidfd, number)

    def terminate(self) -> None:
        """SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL."""
        self.send_signal(signal.SIGKILL)


Process = subprocess.Popen[str] | Quick


def popen(command: Sequence[str], environment: Mapping[str, str], error: IO[Any]) -> Process:
    """Start a command with its standard output in a pipe, in a session of its own."""
    if not _is_quick(command, environment):
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": error, "text": True}
        return subprocess.Popen(command, cwd=ROOT, env=dict(environment), start_new_session=True, **streams)
    reading, writing = os.pipe()
    try:
        process = Quick(command[len(PROGRAM) :], environment, writing, error.fileno())
    finally:
        os.close(writing)
    process.stdout = os.fdopen(reading, encoding="utf-8")
    return process


def run(
    command: Sequence[str], environment: Mapping[str, str], *, check: bool, timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises as subprocess.run does."""
    if not _is_quick(command, environment):
        options: dict[str, Any] = {"capture_output": True, "text": True, "check": check, "timeout": timeout}
        return subprocess.run(command, cwd=ROOT, env=dict(environment), **options)
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as error:
        process = Quick(command[len(PROGRAM) :], environment, out.fileno(), error.fileno())
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        for file in (out, error):
            file.seek(0)
        done = subprocess.CompletedProcess(command, code, out.read(), error.read())
    if check:
        done.check_returncode()
    return done


def _is_quick(command: Sequence[str], environment: Mapping[str, str]) -> bool:
    return tuple(command[: len(PROGRAM)]) == PROGRAM and COVERAGE not in environment


def build_parsers_once() -> None:
    """Typer builds those of all our commands again for each call: a tenth of what a start costs."""
    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(importlib.import_module("sluice_s3.app.cli.main").cli)


_asking = threading.Lock()


def _ask(request: Any, *descriptors: int) -> int:
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors).tobytes())] if descriptors else []
    with _asking:
        server = _server()
        server.sendmsg([json.dumps(request).encode()], ancillary)
        return int(server.recv(64))


@cache
def _server() -> socket.socket:
    """The process that all are forked off. It ends when this one does."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for one in (ours, theirs):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LARGEST)
    environment = {name: value for name, value in os.environ.items() if name != COVERAGE}
    environment["PYTHONPATH"] = PYTHONPATH
    command = [sys.executable, "-m", "tests.support.quick"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=theirs, start_new_session=True)
    theirs.close()

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def _serve(requests: socket.socket) -> None:
    while True:
        message, ancillary, _, _ = requests.recvmsg(LARGEST, socket.CMSG_SPACE(8))
        if not message:
            return
        request = json.loads(message)
        if isinstance(request, int):
            answer = os.waitstatus_to_exitcode(os.waitpid(request, 0)[1])
        else:
            descriptors = array.array("i", ancillary[0][2])
            answer = os.fork()
            if answer == 0:
                _become(request["arguments"], request["environment"], *descriptors)
            for fd in descriptors:
                os.close(fd)
        requests.send(str(answer).encode())


def _become(arguments: list[str], environment: dict[str, str], out: int, error: int) -> NoReturn:
    code: Any = 1
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(error, 2)
        os.closerange(3, 256)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = ["sluice", *arguments]
        from sluice_s3.app import crash
        from sluice_s3.app.cli import main

        importlib.reload(crash)  # what is armed stands in the environment
        main.main()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    build_parsers_once()
    gc.collect()
    gc.freeze()
    _serve(socket.socket(fileno=os.dup(0)))
