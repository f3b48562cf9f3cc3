"""A worker of the gateway under callgrind, and the instructions that it counts."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from sluice_s3.app import interpreter
from sluice_s3.loadtests.clients.signing import Signer
from sluice_s3.loadtests.common.s3_calls import S3CallError
from sluice_s3.loadtests.common.targets import Keys
from sluice_s3.loadtests.cpu.client import Request

TOOLS = ("valgrind", "callgrind_control")
INSTALL = "apt install valgrind, dnf install valgrind or apk add valgrind"
WORKER = Path(__file__).with_name("callgrind_worker.py")
INTERPRETER = Path(interpreter.__file__)
PACKAGES = ("app", "loadtests", "migrations", "storage_drivers")
SETTINGS = {"SLUICE_DURABILITY": "relaxed", "SLUICE_SCRUB_RATE": "0", "SLUICE_DISCARD_GRACE": "86400"}
"""Settings of the worker, unless the environment has others.

What would begin after a minute, in the midst of some operation, is put off: scrubbing, and discarding deleted data.
"""
CONTROL_SECONDS = 60.0
"""Seconds for one command to callgrind; it hangs when the process has ended meanwhile."""
ANSWER_SECONDS = 300.0
STOP_SECONDS = 60.0
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
TOTALS = re.compile(r"^totals: (\d+)", re.MULTILINE)


class CallgrindError(Exception):
    """Callgrind or the worker under it failed; the message says how."""


class ToolsMissing(CallgrindError):
    """What counts is not installed; the message says what to install."""


def require_tools() -> None:
    """Check that valgrind is installed. Raises ToolsMissing."""
    if missing := [name for name in TOOLS if shutil.which(name) is None]:
        raise ToolsMissing(f"{' and '.join(missing)} not found: both are in the package valgrind ({INSTALL})")


def describe_other(python: str) -> dict[str, Any]:
    """Return the `Interpreter` of another executable as a mapping. Raises CallgrindError."""
    done = subprocess.run([python, INTERPRETER], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CallgrindError(f"{python} does not run: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def parse_total(text: str) -> int | None:
    """Return the instructions of a dump, or None if it is not written whole.

    The line `totals:` is its last one. (`summary:`, in its head, lacks threads that have ended.)
    """
    found = TOTALS.search(text)
    return int(found[1]) if found and text.endswith("\n") else None


class Worker:
    """A worker on an empty directory: of the checkout `source`, by the interpreter `python`.

    With `counted` it runs under callgrind, which counts from `start_counting` on. Raises CallgrindError.
    """

    def __init__(self, source: Path, python: str, directory: Path, keys: Keys, *, counted: bool) -> None:
        self._directory = directory
        self._process: subprocess.Popen[bytes] | None = None
        self._dumps = 0
        self._command = [python, "-P", str(WORKER), str(directory / "data")]
        if counted:
            options = ["-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={directory}/counted"]
            self._command = ["valgrind", *options, *self._command]
        self._environment = {
            **SETTINGS,
            **os.environ,
            "SLUICE_ROOT_ACCESS_KEY": keys.access_key,
            "SLUICE_ROOT_SECRET_KEY": keys.secret_key,
            "SLUICE_REGION": keys.region,
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(_link(source, directory)),
        }
        self._source = source
        self._keys = keys
        self.found: dict[str, Any] = {}
        """What the worker says of itself: port, source, interpreter."""

    def __enter__(self) -> Worker:
        reading, writing = os.pipe()
        with (self._directory / "log").open("wb") as log, os.fdopen(reading) as report:
            try:
                command = [*self._command, str(writing), str(os.getpid())]
                self._process = subprocess.Popen(
                    command, env=self._environment, stdout=log, stderr=log, pass_fds=(writing,)
                )
            finally:
                os.close(writing)
            first, state = report.readline(), report.readline()
        try:
            if state != "ready\n":
                raise CallgrindError(f"the worker of {self._source} did not start: {state}\n{self.printed()}")
            self.found = json.loads(first)
            if Path(self.found["source"]) != (self._source / "app").resolve():
                raise CallgrindError(f"the worker runs {self.found['source']}, not {self._source}/app")
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.address = ("127.0.0.1", int(self.found["port"]))
        keys = self._keys
        self.signer = Signer(f"127.0.0.1:{self.address[1]}", keys.access_key, keys.secret_key, keys.region)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def printed(self) -> str:
        """Return the end of what the worker printed."""
        return (self._directory / "log").read_text(errors="replace")[-2000:]

    def start_counting(self) -> None:
        """Count instructions from now on; everything is some fifty times slower."""
        self._control("--instr=on")

    def zero(self) -> None:
        """Set the count to zero."""
        self._control("--zero")

    def read_total(self) -> int:
        """Return the instructions of all threads since `zero`, and set the count to zero."""
        self._control("--dump")
        self._dumps += 1
        dump = self._directory / f"counted.{self._dumps}"
        deadline = time.monotonic() + CONTROL_SECONDS
        while time.monotonic() < deadline:
            if dump.exists() and (total := parse_total(dump.read_text())) is not None:
                dump.unlink()
                return total
            time.sleep(0.02)
        raise CallgrindError(f"callgrind wrote no dump within {CONTROL_SECONDS:.0f} s\n{self.printed()}")

    def _control(self, option: str) -> None:
        assert self._process is not None
        command = ["callgrind_control", option, str(self._process.pid)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=CONTROL_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise CallgrindError(f"{' '.join(command)}: no answer\n{self.printed()}") from error
        if done.returncode or "OK" not in done.stdout:
            raise CallgrindError(f"{' '.join(command)}: {done.stdout}{done.stderr}\n{self.printed()}")


def _link(source: Path, directory: Path) -> Path:
    """Create a directory from which `sluice_s3` is imported, of links to a checkout's folders."""
    place = directory / "path"
    package = place / "sluice_s3"
    package.mkdir(parents=True)
    for name in PACKAGES:
        if not (source / name).is_dir():
            raise CallgrindError(f"{source} is no checkout: it has no folder {name}")
        (package / name).symlink_to((source / name).resolve())
    return place


class Connection:
    """One keep-alive connection that sends a request and waits for its answer."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._socket = socket.create_connection(address, timeout=ANSWER_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: Request) -> bytes:
        """Return the body of the answer. Raises S3CallError unless it is good and complete."""
        method = request.head.partition(b" ")[0].decode()
        body = request.body or b""
        try:
            if request.waits:
                self._socket.sendall(request.head)
                self._read_continue()
                self._socket.sendall(body)
            elif len(body) > 1 << 16:
                self._socket.sendall(request.head)
                self._socket.sendall(body)
            else:
                self._socket.sendall(request.head + bytes(body))
            with http.client.HTTPResponse(self._socket, method=method) as response:
                response.begin()
                answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise S3CallError(f"{_target(request)}: {error}") from error
        if response.status >= 300 or (request.size >= 0 and len(answer) != request.size):
            text = answer[:300].decode(errors="replace")
            raise S3CallError(f"{_target(request)}: {response.status}, {len(answer)} bytes: {text}")
        return answer

    def _read_continue(self) -> None:
        got = b""
        while len(got) < len(CONTINUE):
            data = self._socket.recv(len(CONTINUE) - len(got))
            got += data
            if not data or not CONTINUE.startswith(got):
                raise http.client.HTTPException(f"{got!r} instead of 100 Continue")

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def _target(request: Request) -> str:
    return request.head.partition(b"\r\n")[0].decode()
