"""Runs, as small as they can be: against real gateways, plain files and endpoints, interrupted, resumed and broken."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.loadtests.clients.endpoint import Endpoint
from sluice_s3.loadtests.clients.http import Connection
from sluice_s3.loadtests.clients.s3 import S3Client, run_concurrently
from sluice_s3.loadtests.common.targets import Keys
from sluice_s3.loadtests.compare import run as running
from sluice_s3.loadtests.compare import watch
from sluice_s3.loadtests.compare.live import LiveFigures
from sluice_s3.loadtests.compare.plan import Plan, PlanError, select_scenarios
from sluice_s3.loadtests.compare.resources import COLUMNS
from sluice_s3.loadtests.compare.trial import TrialResult
from sluice_s3.loadtests.request_log import read_rows
from tests.support.environment import ROOT, need_fuse
from tests.support.gateway import ACCESS_KEY, SECRET_KEY, Gateway
from tests.support.waiting import eventually

TINY = (
    *("mixed.size=1KB", "mixed.objects=5", "mixed.duration=0.5", "mixed.warm-up=0", "mixed.dead-after=1"),
    *("sizes.sizes=1KB,200KB", "sizes.times=3"),
    *("small_files.share=0.001", "small_files.reads=20", "batches.sizes=1KB", "batches.pause=0"),
    *("threads.sizes=10KB", "threads.numbers=1,4", "threads.step-seconds=0.2", "threads.most=1MB"),
    *("stat_delete_list.counts=20,40", "stat_delete_list.stats=10", "stat_delete_list.lists=3"),
    *("stat_delete_list.deletes=5", "open_loop.duration=1", "open_loop.warm-up=0", "open_loop.rate=40"),
    *("boto3_mixed.size=1KB", "boto3_mixed.objects=3", "boto3_mixed.duration=0.5", "boto3_mixed.warm-up=0"),
    *("saturation.size=1KB", "saturation.objects=5", "saturation.duration=0.4", "saturation.settle=0.1"),
    "saturation.p99-ms=60000",
)
KEYS = Keys(ACCESS_KEY, SECRET_KEY)


def test_buckets_of_runs_on_several_hosts_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes on two hosts may have the same number."""
    monkeypatch.setattr(os, "getpid", lambda: 7)
    names = {running.bucket_name("stat_delete_list") for _ in range(2)}
    assert len(names) == 2
    assert all(re.fullmatch(r"sluice-bench-stat-delete-list-[0-9a-f]{12}", name) for name in names)


class Said:
    """Progress that is remembered."""

    live = False

    def __init__(self) -> None:
        self.messages: list[str] = []

    def show_start(self, what: str, cell: tuple[str, str, int] | None = None) -> None:
        self.messages.append(what)

    def show_live(self, figures: LiveFigures) -> None:
        raise AssertionError("nobody wants them")

    def show_end(self, seconds: float, outcome: TrialResult | None, what: str) -> None:
        assert seconds > 0

    def print_line(self, message: str) -> None:
        self.messages.append(message)


def made(directory: Path, scenarios: list[str], more: tuple[str, ...] = (), **plan: Any) -> running.Run:
    tiny = [one for one in TINY if one.partition(".")[0] in scenarios]
    chosen = select_scenarios(scenarios, users=4, settings=[*tiny, *more])
    (directory / "stores").mkdir(exist_ok=True)
    found = Plan(**{"repeats": 1, "scenarios": chosen, "directory": str(directory / "stores"), **plan})
    return running.start_run(directory / "results" / "run", found, KEYS, Said())


def rows_of(run: running.Run, target: str, scenario: str, repeat: int = 1) -> list[dict[str, Any]]:
    return list(read_rows(run.directory / "rows" / target / f"{scenario}-{repeat}.csv.gz"))


def nothing_is_left(directory: Path) -> bool:
    """No mount, no process and no file of a run whose stores are there."""
    mounts = Path("/proc/self/mounts").read_text()
    commands = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            commands.append(process.read_bytes().decode(errors="replace"))
        except OSError:
            continue
    where = str(directory / "stores")
    return (
        where not in mounts
        and not any(where in command for command in commands if "pytest" not in command)
        and not list((directory / "stores").iterdir())
    )


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    server = Gateway(tmp_path / "data", workers=1).start()
    yield server
    if server.process is not None:
        server.kill()


def test_a_mix_of_ones_own(tmp_path: Path) -> None:
    own = ("mixed.mix=GET=9,STAT=1", "open_loop.mix=STAT=1")
    run = made(tmp_path, ["mixed", "open_loop"], own, stores=("local",))
    run.go()
    assert run.meta["state"] == "complete", (run.meta["reason"], run.meta["cells"])
    assert {row["operation"] for row in rows_of(run, "local", "mixed")} == {"GET", "STAT"}
    assert {row["operation"] for row in rows_of(run, "local", "open_loop")} == {"STAT"}


def test_paths_are_those_of_where_one_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locust begins in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    run = made(Path(), ["threads"], stores=("disk=local",), direct=True)
    run.go()
    assert run.meta["state"] == "complete"
    assert all(rows_of(run, target["name"], "threads") for target in run.meta["targets"])
    assert not (ROOT / "results" / "run").exists()
    assert not list((tmp_path / "stores").iterdir())


def test_every_scenario_through_a_gateway_and_straight(tmp_path: Path) -> None:
    names = ["mixed", "sizes", "small_files", "batches", "threads", "stat_delete_list", "open_loop", "boto3_mixed"]
    names.append("saturation")
    run = made(tmp_path, names, stores=("local",), direct=True)
    run.go()
    assert run.meta["state"] == "complete", (run.meta["reason"], run.meta["cells"])
    stages = {
        "mixed": {""},
        "sizes": {""},
        "small_files": {"write", "read-cold", "read-warm"},
        "batches": {"batch-1", "batch-2"},
        "threads": {"writers-1", "writers-4"},
        "stat_delete_list": {"keys-20", "keys-40"},
        "open_loop": {""},
        "boto3_mixed": {""},
        "saturation": {"clients-1", "clients-2", "clients-4"},
    }
    for target in ("local", "local-direct"):
        for name in names:
            if (target, name) == ("local-direct", "boto3_mixed"):
                continue
            rows = rows_of(run, target, name)
            assert {row["stage"] for row in rows} == stages[name], (target, name)
            assert {row["error"] for row in rows} == {""}, (target, name)
            assert all(row["start"] > 0 and row["total_s"] > 0 for row in rows)
            assert all((row["late_s"] is not None) == (name == "open_loop") for row in rows)
            assert all(row["bytes"] == row["size"] for row in rows if row["operation"] in ("PUT", "GET"))
            if name != "boto3_mixed":
                assert all(0 < row["ttfb_s"] <= row["total_s"] or name == "open_loop" for row in rows)
                assert all("auth=" in row["phases"] for row in rows) == (target == "local")
    assert len(rows_of(run, "local", "sizes")) == 12
    assert len(rows_of(run, "local", "batches")) == 20
    assert [row["users"] for row in rows_of(run, "local", "threads")].count(4) > 4
    assert all(row["stage"] == f"clients-{row['users']}" for row in rows_of(run, "local", "saturation"))
    notes = next(cell["notes"] for cell in run.meta["cells"] if cell["scenario"] == "saturation")
    assert [step["users"] for step in notes["steps"]] == [1, 2, 4]
    with (run.directory / "resources.csv").open() as lines:
        samples = list(csv.DictReader(lines))
    assert tuple(samples[0]) == COLUMNS
    assert {"gateway", "generator"} <= {sample["who"] for sample in samples}
    assert nothing_is_left(tmp_path)
    assert sorted(os.listdir(run.directory)) == ["logs", "meta.json", "resources.csv", "rows"]


def test_a_mount_an_endpoint_and_two_processes(tmp_path: Path, gateway: Gateway) -> None:
    need_fuse()
    endpoints = (f"other={gateway.endpoint}",)
    run = made(tmp_path, ["mixed", "sizes"], stores=("nfs",), endpoints=endpoints, processes=2, repeats=2)
    run.go()
    assert run.meta["state"] == "complete", (run.meta["reason"], run.meta["cells"])
    turns = [(cell["target"], cell["repeat"]) for cell in run.meta["cells"][::2]]
    assert sorted(turns) == [("nfs", 1), ("nfs", 2), ("other", 1), ("other", 2)]
    assert [one["order"] for one in run.meta["rounds"]] == [[name for name, _ in turns[:2]], [turns[2][0], turns[3][0]]]
    assert all(len(rows_of(run, target, "sizes")) == 12 for target in ("nfs", "other"))
    entry = run.meta["targets"][0]
    assert (entry["mount"]["kind"], entry["driver"]) == ("fuse", "efs")
    assert entry["probe"]["trials"]["xattr"]["works"] is False
    assert nothing_is_left(tmp_path)
    listed = subprocess.run(
        [sys.executable, "-c", BUCKETS, gateway.endpoint, ACCESS_KEY, SECRET_KEY], capture_output=True, check=True
    )
    assert listed.stdout.strip() == b"[]"


BUCKETS = """
import boto3, sys
client = boto3.client("s3", endpoint_url=sys.argv[1], aws_access_key_id=sys.argv[2],
                      aws_secret_access_key=sys.argv[3], region_name="us-east-1")
print(client.list_buckets()["Buckets"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_and_resumed(tmp_path: Path, number: signal.Signals) -> None:
    need_fuse()
    (tmp_path / "stores").mkdir()
    words = [
        sys.executable,
        "-m",
        "sluice_s3.app.cli",
        "bench",
        "--directory",
        str(tmp_path / "stores"),
        "--store",
        "fuse",
    ]
    limit = ["--repeats", "1"] if number == signal.SIGINT else ["--minutes", "30", "--repeats", "1"]
    words += ["--scenario", "sizes", "--scenario", "mixed", "--duration", "60", *limit, "--name", "run"]
    words += [word for one in ("mixed.size=1KB", "mixed.objects=5", *TINY[5:7]) for word in ("--set", one)]
    words += ["--results", str(tmp_path)]
    with subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: measured(tmp_path / "run", "mixed") or process.poll() is not None, "it measures", 100)
        process.send_signal(number)
        _, printed = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "--resume" in printed
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000, "a report of what there is"
    assert nothing_is_left(tmp_path)
    meta = json.loads((tmp_path / "run" / "meta.json").read_text())
    assert (meta["state"], meta["reason"]) == ("partial", f"interrupted by {number.name}")
    assert [cell["state"] for cell in meta["cells"]] == ["done", "interrupted"]
    partial = tmp_path / "run" / "rows" / "fuse" / "mixed-1.partial.csv.gz"
    assert list(read_rows(partial))
    whole = (tmp_path / "run" / "rows" / "fuse" / "sizes-1.csv.gz").stat().st_mtime_ns

    meta["plan"]["scenarios"]["mixed"]["arguments"]["duration"] = "0.5"
    (tmp_path / "run" / "meta.json").write_text(json.dumps(meta))
    run = running.resume(tmp_path / "run", KEYS, Said())
    run.go()
    assert run.meta["state"] == "complete"
    assert [cell["state"] for cell in run.meta["cells"]] == ["done", "done"]
    assert (tmp_path / "run" / "rows" / "fuse" / "sizes-1.csv.gz").stat().st_mtime_ns == whole
    assert not partial.exists()


def test_wrong_keys_and_nobody_there(tmp_path: Path, gateway: Gateway) -> None:
    endpoints = (f"locked={gateway.endpoint}", "nobody=http://127.0.0.1:1")
    run = made(tmp_path, ["sizes"], stores=("local",), endpoints=endpoints)
    run._keys = Keys(ACCESS_KEY, "wrong")
    run.go()
    assert run.meta["state"] == "partial"
    by_target = {cell["target"]: cell for cell in run.meta["cells"]}
    assert by_target["local"]["state"] == "done"
    assert "SignatureDoesNotMatch" in by_target["locked"]["reason"]
    assert "refused" in by_target["nobody"]["reason"]
    run._keys = Keys("", "")
    run.go()
    assert "AWS_ACCESS_KEY_ID" in run.meta["reason"]


def test_an_endpoint_that_dies(tmp_path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path, ["mixed"], ("mixed.duration=60",), endpoints=(f"other={gateway.endpoint}",))
    when_measured(monkeypatch, run, gateway.kill)
    run.go()
    (cell,) = run.meta["cells"]
    assert (run.meta["state"], cell["state"]) == ("partial", "failed")
    assert "nothing was answered for 1 s" in cell["reason"]
    rows = list(read_rows(run.directory / cell["file"]))
    assert {row["status"] for row in rows} == {0, 200, 204}
    assert cell["errors"] == sum(row["error"] != "" for row in rows)


def test_a_gateway_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path, ["mixed", "sizes"], ("mixed.duration=60",), stores=("local",))
    when_measured(monkeypatch, run, lambda: kill_gateway(tmp_path / "stores"))
    run.go()
    assert run.meta["state"] == "partial"
    assert [cell["reason"] for cell in run.meta["cells"]] == ["the gateway ended", "the gateway ended"]
    assert nothing_is_left(tmp_path)


def when_measured(monkeypatch: pytest.MonkeyPatch, run: running.Run, act: Callable[[], None]) -> None:
    """Act once, after the first rows of `mixed` were written."""
    acted: list[bool] = []
    sample = running.Sampler.sample

    def looking(self: running.Sampler) -> None:
        sample(self)
        if not acted and measured(run.directory, "mixed"):
            acted.append(True)
            act()

    monkeypatch.setattr(running.Sampler, "sample", looking)


def measured(directory: Path, scenario: str) -> bool:
    """A cell of the scenario that is under way has written rows."""
    return any(file.stat().st_size for file in directory.glob(f"work/*-{scenario}-*/*.csv"))


def kill_gateway(where: Path) -> None:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(where) in command and "serve" in command:
            os.kill(int(process.name), signal.SIGKILL)


def test_what_was_there_before_is_left_alone(gateway: Gateway) -> None:
    endpoint = Endpoint(gateway.endpoint, ACCESS_KEY, SECRET_KEY)
    wire = Connection(endpoint)
    assert wire.ask("PUT", "/mine").status == 200
    objects = S3Client(endpoint, "mine")
    assert objects.put("file", 10).error == ""
    assert "was not made by a load test" in objects.prepare()
    assert "was not made by a load test" in objects.sweep()
    assert objects.get("file", 10).error == ""
    ours = S3Client(endpoint, "ours")
    assert [ours.sweep(), ours.prepare(), ours.prepare()] == ["", "", ""]
    assert (
        run_concurrently(lambda: S3Client(endpoint, "ours"), "put", [f"{n}/ü &" for n in range(1100)], 8, 1) == [""] * 8
    )
    assert ours.sweep() == ""
    assert wire.ask("GET", "/ours").status == 404
    assert wire.ask("GET", "/mine").status == 200
    for one in (wire, objects, ours):
        one.close()


def test_an_object_in_parts(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_s3.loadtests.clients.s3.AT_ONCE", 1_000_000)
    monkeypatch.setattr("sluice_s3.loadtests.clients.s3.PART", 6_000_000)
    objects = S3Client(Endpoint(gateway.endpoint, ACCESS_KEY, SECRET_KEY), "parts")
    assert objects.prepare() == ""
    put = objects.put("large", 13_000_000)
    assert (put.error, put.ttfb, put.bytes) == ("", None, 13_000_000)
    assert objects.get("large", 13_000_000).error == ""
    assert objects.sweep() == ""
    assert objects.put("large", 13_000_000).error.startswith("NoSuchBucket")
    objects.close()


def test_no_space(tmp_path: Path) -> None:
    run = made(tmp_path, ["sizes"], ("sizes.sizes=900000GB",), stores=("local",))
    run.go()
    assert run.meta["cells"][0]["reason"].startswith("no space: about")
    assert nothing_is_left(tmp_path)


def test_others_who_use_the_disk_keep_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = running.RunningTarget(path=tmp_path)
    assert watch.broken(there)() == ""
    usage = watch.shutil.disk_usage(tmp_path)
    monkeypatch.setattr(watch.shutil, "disk_usage", lambda _: usage._replace(free=1000, total=10**12))
    assert watch.broken(there)() == "its file system is almost full"
    monkeypatch.setattr(watch.shutil, "disk_usage", lambda _: usage._replace(free=5000, total=100_000))
    assert watch.broken(there)() == "", "a small one is not"


def test_a_run_is_not_written_over(tmp_path: Path) -> None:
    run = made(tmp_path, ["sizes"], stores=("local",))
    (run.directory / "meta.json").write_text("{}")
    with pytest.raises(PlanError, match="is a run already"):
        made(tmp_path, ["sizes"], stores=("local",))
    with pytest.raises(PlanError, match="not of format"):
        running.resume(run.directory, KEYS, Said())
