"""Scenarios by Locust's own command line: all files at once, its run time, and its exit code.

Locust is not imported here: it would change this process.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from sluice_s3.loadtests.common.targets import free_port
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
        [sys.executable, "-m", "locust", *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


def mixed(directory: Path, *words: str) -> list[str]:
    """The command line of a mix of small plain files, whose rows go to `rows`."""
    found = ["--headless", "--only-summary", "-u", "2", "-r", "10", "--size", "1KB", "--objects", "5"]
    return [*found, "--direct", str(directory / "data"), "--rows", str(directory / "rows"), *words]


def rows(directory: Path) -> int:
    return len(row_lines(directory))


def row_lines(directory: Path) -> list[str]:
    return [line for part in (directory / "rows").glob("*.csv") for line in part.read_text().splitlines()]


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
            [sys.executable, "-c", DEFAULTS, *words], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
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
    words = ["-f", "loadtests/scenarios/mixed.py", *mixed(tmp_path, "--objects", "2000", "--warm-up", "30")]
    running = subprocess.Popen(
        [sys.executable, "-m", "locust", *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    eventually((tmp_path / "data").exists, "it has begun")
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    assert running.returncode == NOTHING_MEASURED, said
    assert said.count("nothing was measured") == 1
    assert not list((tmp_path / "data").iterdir()), "what the preparation made was not removed"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("--tags", "get", "stat"), {("GET", "object 1 KB"), ("STAT", "object")}),
        (("--exclude-tags", "get", "stat", "delete"), {("PUT", "object 1 KB")}),
        (("--tags", "list"), {("LIST", "page of 1000 keys")}),
        (("--mix", "DELETE=1,PUT=2.5,LIST=0.5", "--tags", "put", "list"),
         {("PUT", "object 1 KB"), ("LIST", "page of 1000 keys")}),
    ],
)  # fmt: skip
def test_tags_choose_operations_and_names_stay_the_same(
    tmp_path: Path, words: tuple[str, ...], names: set[tuple[str, str]]
) -> None:
    files = ("--csv", str(tmp_path / "out"), "--html", str(tmp_path / "out.html"), "--json-file", str(tmp_path / "all"))
    more = ("--duration", "0.5", *files)
    done = locust("-f", "loadtests/scenarios/mixed.py", *mixed(tmp_path, *more, *words))
    assert done.returncode == 0, done.stderr
    assert {(one["method"], one["name"]) for one in json.loads((tmp_path / "all.json").read_text())} == names
    assert (tmp_path / "out_stats.csv").read_text().startswith("Type,Name,Request Count,")
    assert all(name in (tmp_path / "out.html").read_text() for _, name in names)
    assert "preparing 5 of 5 objects" in done.stderr


def test_a_tree_of_many_sizes_is_one_line_a_stage(tmp_path: Path) -> None:
    words = ("--headless", "--share", "0.001", "--reads", "10", "--direct", str(tmp_path / "data"))
    done = locust("-f", "loadtests/scenarios/small_files.py", *words, "--json-file", str(tmp_path / "all"))
    assert done.returncode == 0, done.stderr
    found = {(one["method"], one["name"]) for one in json.loads((tmp_path / "all.json").read_text())}
    assert found == {("PUT", "object, write"), ("GET", "object, read-cold"), ("GET", "object, read-warm")}


def test_tags_that_leave_nothing_are_refused(tmp_path: Path) -> None:
    done = locust("-f", "loadtests/scenarios/mixed.py", *mixed(tmp_path, "--mix", "GET=1", "--tags", "put"))
    assert done.returncode == GAVE_UP, done.stderr
    assert "leave no operation" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_ratio_of_tasks_is_that_of_warp() -> None:
    done = locust("-f", "loadtests/scenarios/mixed.py", "--show-task-ratio-json")
    assert done.returncode == 0, done.stderr
    tasks = json.loads(done.stdout)["per_class"]["Mixed"]["tasks"]
    ratios = {name: round(one["ratio"] * 100) for name, one in tasks.items()}
    assert ratios == {"get": 45, "stat": 30, "put": 15, "delete": 10}


def test_no_keys_is_a_line_and_no_answer_of_s3(tmp_path: Path) -> None:
    words = ["-f", "loadtests/scenarios/mixed.py", "--headless", "--host", "http://127.0.0.1:1", "-t", "1s"]
    nobody = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    nobody |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/x", "AWS_SHARED_CREDENTIALS_FILE": "/x"}
    done = subprocess.run(
        [sys.executable, "-m", "locust", *words], cwd=ROOT, capture_output=True, text=True, timeout=60, env=nobody,
        check=False,
    )  # fmt: skip
    assert done.returncode == GAVE_UP
    assert "gave up: no keys: give --access-key and --secret-key" in done.stderr
    assert "Traceback" not in done.stderr


def play_with_a_worker(directory: Path, scenario: str, *words: str) -> tuple[int, str]:
    """The exit code of a master with one worker, both on this machine, and what the master said."""
    port = free_port()
    command = [sys.executable, "-m", "locust", "-f", f"loadtests/scenarios/{scenario}.py", *mixed(directory, *words)]
    worker = [*command, "--worker", "--master-port", str(port)]
    master = [*command, "--master", "--expect-workers", "1", "--master-bind-host", "127.0.0.1"]
    with subprocess.Popen(worker, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        try:
            done = subprocess.run(
                [*master, "--master-bind-port", str(port)], cwd=ROOT, capture_output=True, text=True, timeout=120,
                check=False,
            )  # fmt: skip
        finally:
            other.terminate()
    return done.returncode, done.stderr


def test_a_master_and_a_worker_find_the_knee(tmp_path: Path) -> None:
    code, said = play_with_a_worker(tmp_path, "saturation", "-t", "1s", "--settle", "0.1", "--p99-ms", "60000")
    assert code == 0, said
    assert "the knee is at" in said
    notes = json.loads((tmp_path / "rows" / "notes.json").read_text())
    assert [step["users"] for step in notes["steps"]] == [1, 2]
    assert {line.split(",")[4] for line in row_lines(tmp_path)} == {"clients-1", "clients-2"}
    assert not (tmp_path / "data" / "sluice-bench").exists()


@pytest.mark.parametrize(
    ("words", "code", "line"),
    [
        (("-t", "1s", "--duration", "30", "--warm-up", "30"), NOTHING_MEASURED, "nothing was measured"),
        (("--prefix", "p"), GAVE_UP, "gave up: --prefix is for buckets"),
    ],
)
def test_a_master_whose_worker_measured_nothing_fails(
    tmp_path: Path, words: tuple[str, ...], code: int, line: str
) -> None:
    found, said = play_with_a_worker(tmp_path, "mixed", *words)
    assert found == code, said
    assert line in said


def test_operations_that_are_due_while_one_is_slow_are_late(tmp_path: Path) -> None:
    """A closed loop at an intended rate counts from when an operation was due."""
    more = ("--duration", "1", "--throughput", "100000", "--mix", "STAT=1", "-u", "1")
    done = locust("-f", "loadtests/scenarios/mixed.py", *mixed(tmp_path, *more))
    assert done.returncode == 0, done.stderr
    assert "a closed loop:" not in done.stderr
    lines = [line.split(",") for line in row_lines(tmp_path)]
    late, total = ([float(line[column]) for line in lines] for column in (9, 11))
    assert late == sorted(late)
    assert late[-1] > 0.3
    assert all(whole >= waited for whole, waited in list(zip(total, late, strict=True))[1:])


def test_a_closed_loop_says_what_it_hides(tmp_path: Path) -> None:
    done = locust("-f", "loadtests/scenarios/mixed.py", *mixed(tmp_path, "--duration", "0.5"))
    assert done.returncode == 0, done.stderr
    assert "a closed loop: p99" in done.stderr
    hidden = json.loads((tmp_path / "rows" / "notes.json").read_text())["closed_loop"]
    assert hidden["p99_even"] >= hidden["p99"] > 0
    assert hidden["rate"] > 0
