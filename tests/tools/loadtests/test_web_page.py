"""A master with Locust's web page and a worker: one test after another, each ended by its duration.

Locust is not imported here: it would change this process.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from sluice_s3.loadtests.common.targets import free_port
from tests.support.environment import ROOT
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.support.waiting import eventually

FORM = {"user_count": 1, "spawn_rate": 1, "duration": 0.5, "size": "1KB", "objects": 3, "warm_up": 0}


def test_a_worker_is_back_for_the_next_test(tmp_path: Path) -> None:
    page, port = free_port(), free_port()
    with Gateway(tmp_path / "data", workers=1) as gateway:
        words = [sys.executable, "-m", "locust", "-f", "loadtests/scenarios/mixed.py", "--host", gateway.endpoint]
        words += ["--access-key", ACCESS_KEY, "--secret-key", SECRET_KEY]
        master = [*words, "--master", "--master-bind-port", str(port), "--web-port", str(page)]
        commands = (master, [*words, "--worker", "--master-port", str(port)])
        with (tmp_path / "log").open("wb") as log:
            running = [subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log) for command in commands]
        try:
            for _ in range(2):
                eventually(lambda: _asked(page, "/stats/requests").get("worker_count", 0) == 1)
                assert _asked(page, "/swarm", {**FORM, "host": gateway.endpoint})["success"]
                eventually(lambda: _asked(page, "/stats/requests").get("state") == "stopped")
                eventually(lambda: _asked(page, "/stats/requests")["stats"][-1]["num_requests"] > 0)
                assert _asked(page, "/stats/reset") == {}
            assert [process.poll() for process in running] == [None, None]
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(30)


def _asked(page: int, path: str, form: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the page says; nothing while it is not up."""
    body = None if form is None else urllib.parse.urlencode(form).encode()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}{path}", body, timeout=10) as answer:
            said = answer.read()
    except OSError:
        return {}
    return dict(json.loads(said)) if said.startswith(b"{") else {}
