"""Several gateways on one directory and one Postgres, each a tree of processes on a port of its own."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.gateway import Gateway, client
from tests.support.postgres import Server, running
from tests.support.waiting import PATIENCE_SECONDS, eventually

BUCKET = "shared"
LIMIT = 5
"""Seconds of silence after which a gateway is declared dead: the least that the setting allows."""
HASTY = {"SLUICE_DISCARD_GRACE": "0", "SLUICE_PACK_SIZE": str(1 << 20), "SLUICE_GATEWAY_TIMEOUT": str(LIMIT)}


@dataclass
class Cluster:
    """The gateways run; what a test kills it starts again, or leaves dead."""

    directory: Path
    postgres: Server
    database: str
    gateways: list[Gateway]

    @property
    def endpoints(self) -> list[str]:
        """Where each gateway is, also while it does not run."""
        return [f"http://127.0.0.1:{gateway.port}" for gateway in self.gateways]

    def s3(self, number: int = 0) -> Any:
        """A boto3 client of one gateway."""
        return client(self.endpoints[number])

    def sql(self, command: str) -> str:
        """Ask the index itself."""
        return self.postgres.sql(command, self.database)

    def holder(self, lease: str) -> int | None:
        """The number of the gateway whose worker holds a lease."""
        writer = f"SELECT holder FROM leases WHERE name = '{lease}'"
        lock = self.sql(f"SELECT lock_name FROM writers WHERE state = 'live' AND incarnation IN ({writer})")
        for number, gateway in enumerate(self.gateways):
            if lock and (self.runtime(gateway) / "writers" / lock).exists():
                return number
        return None

    @staticmethod
    def runtime(gateway: Gateway) -> Path:
        """Where a gateway keeps what is its alone."""
        return Path(gateway.env["SLUICE_RUNTIME_DIR"])

    def freeze(self, number: int) -> None:
        """SIGSTOP every process of a gateway."""
        self._signal(number, signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        """Let it go on."""
        self._signal(number, signal.SIGCONT)

    def _signal(self, number: int, what: signal.Signals) -> None:
        process = self.gateways[number].process
        assert process is not None
        for pid in (process.pid, *self.gateways[number].children()):
            with suppress(ProcessLookupError):
                os.kill(pid, what)

    def wait_until(self, true: Callable[[], object], what: str, seconds: float = PATIENCE_SECONDS) -> float:
        """Wait for something that happens in the background; returns how many seconds that took."""
        began = time.monotonic()
        eventually(true, what, seconds)
        return time.monotonic() - began

    def fsck(self) -> dict[str, Any]:
        """What `sluice fsck` finds."""
        report = self.gateways[0].run("fsck", "--json", check=False)
        found: dict[str, Any] = json.loads(report.stdout or "{}")
        return {"code": report.returncode, "stderr": report.stderr, **found}


@contextmanager
def cluster(
    directory: Path, gateways: int = 3, workers: int = 2, env: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Start them on a new directory and a new database of a new server, with the bucket `BUCKET`."""
    with running() as postgres:
        url = postgres.fresh()
        made = [
            Gateway(
                directory / "data",
                workers,
                {**HASTY, "SLUICE_INDEX": url, "SLUICE_RUNTIME_DIR": str(directory / f"run{number}"), **(env or {})},
            )
            for number in range(gateways)
        ]
        found = Cluster(directory, postgres, urlsplit(url).path.lstrip("/"), made)
        try:
            with ThreadPoolExecutor(gateways) as pool:  # together, as a compose file starts them
                list(pool.map(Gateway.start, made))
            found.s3().create_bucket(Bucket=BUCKET)
            yield found
        finally:
            for number, gateway in enumerate(made):
                if gateway.process is not None:
                    found.thaw(number)
            with suppress(Exception):
                postgres.start()  # when a test left it stopped; else it says that it runs
            with ThreadPoolExecutor(gateways) as pool:
                list(pool.map(lambda gateway: gateway.__exit__(), made))
