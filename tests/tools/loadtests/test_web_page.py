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

FORM = {"user_count": 1, "spawn_rate": 1, "size": "1KB", "warm_up": 0}
LONG = {"duration": 0.5, "objects": 2000}
"""Its preparation takes longer than a look at the page."""
ENDED_BY_RUN_TIME = {"duration": 0, "run_time": "1s", "objects": 3, "warm_up": 1.5}
"""The run time begins after preparation and warm-up: Locust's own would end before anything is measured."""


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
            for form in (LONG, ENDED_BY_RUN_TIME):
                eventually(lambda: _asked(page, "/stats/requests").get("worker_count", 0) == 1)
                assert _asked(page, "/swarm", {**FORM, **form, "host": gateway.endpoint})["success"]
                if form is LONG:
                    eventually(lambda: _names(page)[:1] and _names(page)[0].startswith("preparing "))
                eventually(lambda: _asked(page, "/stats/requests").get("state") == "stopped")
                eventually(lambda: _asked(page, "/stats/requests")["stats"][-1]["num_requests"] > 0)
                assert not any(name.startswith("preparing ") for name in _names(page))
                assert _asked(page, "/stats/reset") == {}
            assert [process.poll() for process in running] == [None, None]
        finally:
            for process in running:
                process.terminate()
            for process in running:
                process.wait(30)


def _names(page: int) -> list[str]:
    """The names of the page's statistics."""
    return [row["name"] for row in _asked(page, "/stats/requests").get("stats", [])]


def _asked(page: int, path: str, form: dict[str, Any] | None = None) -> dict[str, Any]:
    """What the page says; nothing while it is not up."""
    body = None if form is None else urllib.parse.urlencode(form).encode()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}{path}", body, timeout=10) as answer:
            said = answer.read()
    except OSError:
        return {}
    return dict(json.loads(said)) if said.startswith(b"{") else {}
