"""Controls a running mount: a line of JSON each way over a socket.

Requests are `{"do": "fault", "fault": {…}}`, `clear`, `release` (both with or without `number`), `struck`, `counts`,
`waiting`, `crash` (`survives`, `seed`) and `credits` (`bytes` that are left). The answer is `{"answer": …}` or
`{"error": …}`.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.mounts.faults import Fault, Faults
from sluice_s3.loadtests.mounts.latency_model import Costs
from sluice_s3.loadtests.mounts.power_loss import Undo

Message = dict[str, Any]


class Refused(Exception):
    """The mount refused a request; the message is its own."""


class Control:
    """The mount's side."""

    def __init__(self, faults: Faults, costs: Costs, undo: Undo | None) -> None:
        self._faults = faults
        self._costs = costs
        self._undo = undo
        self._does: dict[str, Callable[[Message], Any]] = {
            "fault": lambda request: faults.set(Fault(**request["fault"])),
            "clear": lambda request: faults.clear(request.get("number")),
            "release": lambda request: faults.release(request.get("number")),
            "struck": lambda request: {str(number): count for number, count in faults.struck().items()},
            "counts": lambda request: dict(faults.counts),
            "waiting": lambda request: faults.waiting,
            "crash": self._crash,
            "credits": self._credits,
        }

    def listen(self, path: Path) -> None:
        """Answer in threads of its own until the process ends. Raises OSError."""
        server = socket.socket(socket.AF_UNIX)
        server.bind(os.fspath(path))
        server.listen()
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()

    def _accept(self, server: socket.socket) -> None:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rw", encoding="utf-8") as lines:
            for line in lines:
                try:
                    request = json.loads(line)
                    answer = {"answer": self._does[request["do"]](request)}
                except Exception as error:
                    answer = {"error": f"{type(error).__name__}: {error}"}
                lines.write(json.dumps(answer) + "\n")
                lines.flush()

    def _crash(self, request: Message) -> int:
        if self._undo is None:
            raise ValueError("this mount does not track what is not synced (tracked=True, --tracked)")
        return self._undo.crash(request.get("survives", 0.0), request.get("seed", 0))

    def _credits(self, request: Message) -> float:
        self._costs.writing.left = float(request["bytes"])
        return self._costs.writing.left


def send_request(path: Path, do: str, **more: Any) -> Any:
    """Send a request to a mount and return its answer.

    Raises Refused, and OSError when nobody listens.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(os.fspath(path))
        connection.sendall(json.dumps({"do": do, **more}).encode() + b"\n")
        with connection.makefile(encoding="utf-8") as lines:
            line = lines.readline()
    if not line:
        raise Refused("the mount ended")
    answer = json.loads(line)
    if "error" in answer:
        raise Refused(answer["error"])
    return answer["answer"]
