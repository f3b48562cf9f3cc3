"""A Sluice server for tests: a process of its own, on a temporary directory, with one worker."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from sluice_s3.storage_drivers import fault_file
from sluice_s3.testing.endpoint import Endpoint, new_secret
from sluice_s3.testing.settings_file import default_settings, write_settings

ACCESS_KEY = "SLUICETESTING"
READY = re.compile(rb"^sluice: ready on (\S+)$", re.MULTILINE)
START_SECONDS = 120.0
"""Of a busy machine."""
STOP_SECONDS = 10.0
POLL_SECONDS = 0.005
FOREIGN = ("SLUICE_", "MINIO_", "AWS_", "PYTHONWARNINGS")
"""Beginnings of variables that the server must not inherit."""


class ServerFailed(RuntimeError):
    """The server did not start; the message has what it printed."""


class Server(Endpoint):
    """A server for tests, as a context manager or by `start` and `stop`.

    `settings` are those of `sluice serve` in lower case, such as `region="eu-west-1"`, `sigv2="on"`. `directory` is
    an empty or missing directory for everything of the server, which stays; without it a temporary one is made, and
    removed at the end unless `keep`. The server ends with this process, however this ends.
    """

    def __init__(self, directory: Path | None = None, *, keep: bool = False, **settings: Any) -> None:
        self._keep = keep
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        self._given = settings
        region = str(settings.get("region", "us-east-1"))
        access_key = str(settings.get("root_access_key", ACCESS_KEY))
        secret_key = str(settings.get("root_secret_key", "") or new_secret())
        super().__init__("", access_key, secret_key, region, Path() if directory is None else directory.absolute())
        self._temporary = directory is None

    def start(self) -> Server:
        """Start the server and wait until it is ready. Raises ServerFailed, OSError."""
        if self._process is not None:
            return self
        if self._temporary:
            self.directory = Path(tempfile.mkdtemp(prefix="sluice-"))
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "index").mkdir(exist_ok=True)
        try:
            write_settings(self.config, self._settings())
            self._spawn()
            self.endpoint = self._wait_ready()
        except BaseException:
            self.stop()
            if self._temporary:
                shutil.rmtree(self.directory, ignore_errors=True)
            raise
        return self

    def stop(self) -> None:
        """Stop the server and remove its directory, unless it is kept. Does nothing when it does not run."""
        self.endpoint = ""
        process, self._process = self._process, None
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.kill()
            guard.communicate()
        if process is not None:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if self._temporary and not self._keep:
                shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    @property
    def config(self) -> Path:
        """The settings file: `sluice serve --config` serves a kept directory again."""
        return self.directory / "sluice.toml"

    @property
    def log(self) -> Path:
        """What the server prints, with a line of JSON for each request."""
        return self.directory / "log"

    def fault(self, name: str, *, seconds: float = 1.0) -> ExitStack:
        """Set a fault of the disk: "disk full", "read-only" or "slow fsync", until `clear_fault`.

        With "slow fsync" each write takes `seconds` longer. The fault begins at once; as a context manager it ends
        with the block. Raises ValueError for another name, and where `settings` give the server another store.
        """
        fault_file.set_fault(self._store(), name, seconds)
        ending = ExitStack()
        ending.callback(self.clear_fault)
        return ending

    def clear_fault(self) -> None:
        """End the fault, if there is one."""
        if not self._has_own_store():
            fault_file.clear_fault(self._store())

    def _has_own_store(self) -> bool:
        return not self._given.keys().isdisjoint(("stores", "data"))

    def _store(self) -> Path:
        if self._has_own_store():
            raise ValueError("faults are for the server's own store: leave out the settings stores and data")
        return self.directory / "store"

    def _settings(self) -> dict[str, Any]:
        settings = default_settings(self.directory, self.access_key, self.secret_key)
        if "data" in self._given:
            del settings["stores"], settings["index"]
        return {**settings, **self._given}

    def _spawn(self) -> None:
        """Start the server, and a process that ends it when this one is gone."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        # `-P`: the working directory is a project of its own, whose modules are none of the server's
        command = [sys.executable, "-P", "-m", "sluice_s3.app.cli", "serve", "--config", str(self.config)]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=inherited,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests, whose end stops it
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", 'read _; kill "$0"', str(self._process.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def _wait_ready(self) -> str:
        assert self._process is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            ended = self._process.poll() is not None
            if (found := READY.search(self.log.read_bytes())) is not None:
                return found[1].decode()
            if ended:
                break
            time.sleep(POLL_SECONDS)
        printed = self.log.read_text(errors="replace")[-2000:].strip()
        raise ServerFailed(f"sluice serve {'ended' if self._process.poll() is not None else 'hangs'}: {printed}")
