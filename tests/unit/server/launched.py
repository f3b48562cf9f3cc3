"""The launcher in a process of its own, for tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.environment import ROOT
from tests.support.raw_http import PATIENCE, Client, Request

APP = "tests.unit.server.apps:create"


class Launched:
    """A launcher in a process of its own."""

    def __init__(
        self, data: Path, app: str = APP, admin: str = "", python: str | Path = sys.executable, **options: Any
    ) -> None:
        self.data = data
        spread = {"workers": 2, "gather_connections": False}
        settings = {"data": str(data), "port": 0, "access_log": False, **spread, **options}
        self.log = data.with_name(data.name + ".log")
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [python, "-m", "tests.unit.server.serve", json.dumps(settings), app, admin],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.port = self.admin_port = 0
        self.connections: list[Client] = []
        self.host = "127.0.0.1"

    def ready(self) -> Launched:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("sluice: ready on http://127.0.0.1:"), self.log.read_text()
        self.port = int(line.rpartition(":")[2])
        return self

    def admin(self) -> Launched:
        assert self.process.stdout is not None
        self.admin_port = int(self.process.stdout.readline().rpartition(":")[2])
        return self

    def connect(self) -> Client:
        connection = Client(f"http://{self.host}:{self.port}")
        self.connections.append(connection)
        return connection

    def get(self, path: str, connection: Client | None = None) -> bytes:
        own = connection or Client(f"http://{self.host}:{self.port}")
        try:
            answer = own.ask(Request("GET", path))
            assert answer.status == 200
            return answer.body
        finally:
            if connection is None:
                own.close()

    def pids(self) -> set[int]:
        """Workers that serve, as far as some connections tell."""
        return {int(self.get("/pid")) for _ in range(40)}

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def end(self) -> int:
        return self.process.wait(PATIENCE)


def alive(pid: int) -> bool:
    """Whether any thread of it is: the first may have ended before the others let go of its files."""
    try:
        threads = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/stat")]
    except (FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}").exists() and alive(pid)
    return any(thread.rpartition(")")[2].split()[0] not in "ZX" for thread in threads)


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def children(server: Launched) -> set[int]:
    path = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
    return {int(pid) for pid in path.read_text().split()}
