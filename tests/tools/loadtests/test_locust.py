"""Scenarios by Locust's own command line: all files at once, its run time, and its exit code.

Locust is not imported here: it would change this process.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from sluice_s3.loadtests.compare.trial import master_arguments
from sluice_s3.loadtests.mounts.mount import ROOT
from tests.support.waiting import eventually

LOCUST_PORT = 5557
"""Where the processes of a run meet by default: those of others may be there."""
GAVE_UP, NOTHING_MEASURED = 3, 4
"""Of `loadtests.session` and `loadtests.outcome`."""
CLASSES = {"Batches", "Boto3Mixed", "Mixed", "OpenLoop", "Saturation", "Sizes", "SmallFiles", "Spike"}
CLASSES |= {"StatDeleteList", "Steps", "Threads"}
DEFAULTS = """
import json, sys
from locust.argument_parser import get_parser
from locust.util.load_locustfile import load_locustfile
names = ("mixed", "open_loop", "stat_delete_list", "batches", "sizes", "threads")
for name in names:
    load_locustfile(f"loadtests/scenarios/{name}.py")
found = {}
for _ in range(2):  # Locust makes more than one parser
    parsed = get_parser(()).parse_args(["-f", "x", *sys.argv[1:]])
for name in names:
    module = sys.modules["sluice_s3.loadtests.mixed_user" if name == "mixed" else name]
    options = module.OPTIONS.of(parsed)
    found[name] = {one: getattr(options, one) for one in ("size", "sizes", "objects", "most", "regular")}
print(json.dumps(found))
"""


def locust(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "locust", *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def mixed(directory: Path, *words: str) -> list[str]:
    """The command line of a mix of small plain files, whose rows go to `rows`."""
    found = ["--headless", "--only-summary", "-u", "2", "-r", "10", "--size", "1KB", "--objects", "5"]
    return [*found, "--direct", str(directory / "data"), "--rows", str(directory / "rows"), *words]


def rows(directory: Path) -> int:
    return sum(len(part.read_text().splitlines()) for part in (directory / "rows").glob("*.csv"))


def test_all_scenarios_are_listed_at_once() -> None:
    done = locust("-f", "loadtests/scenarios", "--list")
    assert done.returncode == 0
    assert "Error" not in done.stderr
    assert set(done.stdout.split("Available Users:")[1].split()) == CLASSES


def test_one_of_all_scenarios_runs(tmp_path: Path) -> None:
    done = locust("-f", "loadtests/scenarios", "Mixed", *mixed(tmp_path, "--duration", "0.3"))
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path) > 0


def test_scenarios_do_not_run_beside_each_other(tmp_path: Path) -> None:
    done = locust("-f", "loadtests/scenarios", *mixed(tmp_path, "--duration", "0.3"))
    assert done.returncode == GAVE_UP, done.stderr
    assert "one scenario at a time: name one of Batches, Boto3Mixed, " in done.stderr
    assert not (tmp_path / "data").exists()


def test_each_scenario_has_its_own_defaults_when_all_are_loaded() -> None:
    def told(*words: str) -> dict[str, dict[str, object]]:
        done = subprocess.run(
            [sys.executable, "-c", DEFAULTS, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    own = told()
    assert [own[name]["size"] for name in ("mixed", "open_loop", "stat_delete_list")] == ["10MiB", "4KiB", "1KB"]
    assert [own[name]["objects"] for name in ("mixed", "open_loop")] == [100, 200]
    assert [own[name]["sizes"] for name in ("batches", "threads")] == ["1KB,1MB,100MB", "500KB,1MB"]
    assert [own[name]["most"] for name in ("sizes", "threads")] == ["100GB", "1GB"]
    given = told("--size", "7KB", "--objects", "7", "--regular")
    assert {given[name]["size"] for name in ("mixed", "open_loop", "stat_delete_list")} == {"7KB"}
    assert [given[name]["objects"] for name in ("mixed", "open_loop")] == [7, 7]
    assert given["open_loop"]["regular"] is True


@pytest.mark.parametrize("processes", [1, 2])
def test_run_time_counts_from_after_the_warm_up(tmp_path: Path, processes: int) -> None:
    more = master_arguments(processes) if processes > 1 else []
    with ExitStack() as others:
        with suppress(OSError):  # in use already, which is as good
            others.enter_context(socket.create_server(("", LOCUST_PORT)))
        done = locust("-f", "loadtests/scenarios/mixed.py", *mixed(tmp_path, "-t", "1s", "--warm-up", "1.2", *more))
    assert done.returncode == 0, done.stderr
    assert rows(tmp_path) > 0


def test_a_run_that_ends_before_it_measured_fails(tmp_path: Path) -> None:
    done = locust(
        "-f", "loadtests/scenarios/mixed.py", *mixed(tmp_path, "-t", "1s", "--duration", "30", "--warm-up", "30")
    )
    assert done.returncode == NOTHING_MEASURED, done.stderr
    assert "nothing was measured" in done.stderr
    assert rows(tmp_path) == 0


def test_a_run_that_is_ended_by_a_signal_before_it_measured_fails(tmp_path: Path) -> None:
    words = ["-f", "loadtests/scenarios/mixed.py", *mixed(tmp_path, "--warm-up", "30")]
    running = subprocess.Popen(
        [sys.executable, "-m", "locust", *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    eventually((tmp_path / "data").exists, "it has begun")
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    assert running.returncode == NOTHING_MEASURED, said
    assert said.count("nothing was measured") == 1
