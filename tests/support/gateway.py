"""A real `sluice serve` in a process of its own, for tests: start, kill, restart on the same data."""

from __future__ import annotations

import os
import re
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any

from tests.support import postgres, quick
from tests.support.environment import PYTHONPATH
from tests.support.places import Place

ACCESS_KEY = "TESTACCESSKEY"
SECRET_KEY = "test-secret-key-0123456789"
INSTALLED = os.environ.get("SLUICE_TEST_COMMAND")
"""An installed `sluice` that is tested instead of the checkout."""
COMMAND = (INSTALLED,) if INSTALLED else (sys.executable, "-m", "sluice_s3.app.cli")
READY = re.compile(r"sluice: ready on (https?://\S+)")
START_SECONDS = 300.0
"""Of a busy machine, on a mount where a directory takes a request to S3."""

KILLED_SECONDS = 10.0
"""For which killed workers are waited for: one that waits for a hung mount stays."""

_making_clients = threading.Lock()


@dataclass
class Gateway:
    """One directory and the server that runs on it. `endpoint` is known while it runs.

    Its store is in the directory too, unless `place` is elsewhere.
    """

    data: Path
    workers: int = 2
    env: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    given: tuple[str, ...] | None = None
    """Options that say where the data is; `--data DATA` when there are none."""
    command: tuple[str, ...] = COMMAND
    endpoint: str = ""
    admin: str = ""
    """The admin listener, if there is one."""
    port: int = 0
    place: Place = field(default_factory=Place)
    process: quick.Process | None = None

    def start(self) -> Gateway:
        """Start and wait until it is ready. Raises RuntimeError with what it printed when it ends before."""
        log = (self.data.parent / f"{self.data.name}.log").open("a")
        # `--port` stays the same over restarts, so that clients find it again
        workers = min(self.workers, self.place.workers or self.workers)
        arguments = ["serve", "--port", str(self.port), *self.where(), "--workers", str(workers)]
        if "--admin-port" not in self.options:
            arguments += ["--admin-port", "-1"]
        self.process = quick.popen([*self.command, *arguments, *self.options], self.environment(), log)
        log.close()
        assert self.process.stdout is not None
        try:
            self.endpoint = _wait_ready(self.process.stdout, self.process)
            if "--admin-port" in self.options:
                self.admin = self.process.stdout.readline().rpartition(" ")[2].strip()
        except RuntimeError:
            self._ended(self.process)
            raise
        self.port = int(self.endpoint.rpartition(":")[2])
        return self

    def environment(self) -> dict[str, str]:
        """The environment of the server and of `sluice` commands beside it."""
        environment = {
            **os.environ,
            "SLUICE_ROOT_ACCESS_KEY": ACCESS_KEY,
            "SLUICE_ROOT_SECRET_KEY": SECRET_KEY,
            "SLUICE_ACCESS_LOG": "false",
            "SLUICE_GATHER_CONNECTIONS": "false",  # so that tests meet all workers, whose races they look for
            **({} if INSTALLED else {"PYTHONPATH": PYTHONPATH}),
            **self.place.environment(self.data),
            **postgres.environment(self.data),
        }
        # dozens of short processes must not compile the same sources each time
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return {**environment, **self.env}

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `sluice ARGUMENTS --data DATA`."""
        return quick.run([*self.command, *arguments, *self.where()], self.environment(), check=check, timeout=120)

    def where(self) -> tuple[str, ...]:
        """Options that say where the data is, unless the environment does."""
        if self.given is not None:
            return self.given
        return () if self.place.store else ("--data", str(self.data))

    @property
    def store(self) -> Path:
        """The directory of the store."""
        return self.place.path or self.data

    def stop(self, seconds: float = 40.0) -> int:
        """Stop gracefully; returns the exit code."""
        process = self._running()
        process.terminate()
        code = process.wait(seconds)
        self._ended(process)
        return code

    def kill(self) -> None:
        """SIGKILL the launcher and all its workers, and wait until they have ended: until then they hold locks."""
        process = self._running()
        with ExitStack() as stack:
            workers: list[int] = []
            with suppress(FileNotFoundError, ProcessLookupError):  # the launcher or a worker has ended by itself
                for pid in self.children():
                    workers.append(os.pidfd_open(pid))
                    stack.callback(os.close, workers[-1])
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)
            until = time.monotonic() + KILLED_SECONDS
            for worker in workers:
                select.select([worker], [], [], max(0, until - time.monotonic()))
        self._ended(process)

    def hup(self) -> None:
        """Ask for a rolling restart."""
        self._running().send_signal(signal.SIGHUP)

    def freeze_launcher(self) -> None:
        """Stop the launcher's process for good: it replaces no worker that dies. Only `kill` ends the gateway then."""
        self._running().send_signal(signal.SIGSTOP)

    def children(self) -> list[int]:
        """Process ids of the workers."""
        path = Path(f"/proc/{self._running().pid}/task/{self._running().pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def _running(self) -> quick.Process:
        assert self.process is not None, "the gateway does not run"
        return self.process

    def _ended(self, process: quick.Process) -> None:
        assert process.stdout is not None
        process.stdout.close()
        self.process = None

    def __enter__(self) -> Gateway:
        return self.start() if self.process is None else self

    def __exit__(self, *_: object) -> None:
        if self.process is None:
            return
        try:
            self.stop(20)  # gracefully, so that the coverage of its workers is written
        except subprocess.TimeoutExpired:
            self.kill()


def _wait_ready(output: IO[str], process: quick.Process) -> str:
    seen = ""
    deadline = time.monotonic() + START_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if not selector.select(deadline - time.monotonic()):
                break
            line = output.readline()
            seen += line
            if (found := READY.search(line)) is not None:
                return found[1]
            if not line:
                break
    os.killpg(process.pid, signal.SIGKILL)
    raise RuntimeError(f"the gateway did not start: {seen!r} (exit code {process.wait(10)})")


def client(
    endpoint: str,
    access_key: str = ACCESS_KEY,
    secret_key: str = SECRET_KEY,
    *,
    region: str = "us-east-1",
    **config: Any,
) -> Any:
    """A boto3 client with its defaults untouched, but for `config` and an attempt count of 1."""
    from botocore.config import Config

    with _making_clients:
        return _session().client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            region_name=region,
            config=Config(**{"retries": {"total_max_attempts": 1}, **config}),
        )


@cache
def _session() -> Any:
    """One for all: each would read botocore's descriptions of S3 anew, for a tenth of a second. Not for two threads."""
    import boto3

    return boto3.session.Session()
