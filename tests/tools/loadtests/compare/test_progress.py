"""What programs read of a run: its preview, its progress as JSON, and the figures of the last second."""

from __future__ import annotations

import io
import json
import os
import socket
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice_s3.app.cli.main import cli
from sluice_s3.loadtests.compare import pace
from sluice_s3.loadtests.compare import preview as previewing
from sluice_s3.loadtests.compare.live import RowsTail
from sluice_s3.loadtests.compare.plan import SCENARIOS, Plan, select_scenarios
from sluice_s3.loadtests.compare.preview import preview
from sluice_s3.loadtests.compare.progress import JsonLines
from sluice_s3.loadtests.compare.targets import without_settings
from sluice_s3.loadtests.compare.trial import TrialResult
from sluice_s3.loadtests.request_log import Recorder, TrialId


def test_events_are_lines_of_json_with_the_time_that_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    lines = JsonLines()
    with lines.of(100.0):
        lines.show_start("a: getting ready")
        lines.show_start("a: mixed (1 of 3)", ("a", "mixed", 1))
        lines.show_end(40.0, TrialResult("failed", reason="no", rows=3, errors=1), "a: mixed (1 of 3)")
    lines.print_line("a word")
    lines.show_verdict("partial", "the time is up", 2, ["Take a."])
    begin, ready, start, cell, measured, said, verdict = map(json.loads, capsys.readouterr().out.splitlines())
    assert (begin["event"], round(begin["left_s"])) == ("begin", 100)
    assert "target" not in ready
    assert (start["target"], start["scenario"], start["repeat"]) == ("a", "mixed", 1)
    assert (cell["state"], cell["reason"], cell["rows"], cell["errors"]) == ("failed", "no", 3, 1)
    assert cell["left_s"] < 30, "it was much quicker than estimated"
    assert (measured["event"], measured["left_s"]) == ("measured", 0)
    assert said["text"] == "a word"
    assert (verdict["headline"], verdict["repeats"], verdict["reason"]) == (["Take a."], 2, "the time is up")


def test_the_minutes_that_were_given_bound_the_time_that_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    lines = JsonLines()
    with lines.of(1000.0, limit=60.0):
        lines.print_line("the limit holds")
    with lines.of(10.0, limit=60.0):
        lines.print_line("it may be done before")
        lines.show_end(11.0, None, "all that was planned")
    left = [round(json.loads(line)["left_s"]) for line in capsys.readouterr().out.splitlines()]
    assert left == [60, 60, 0, 10, 10, 0]


def test_a_reader_that_goes_away_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nobody(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr("sys.stdout", Nobody())
    JsonLines().print_line("heard by nobody")
    JsonLines().print_line("nor this")
    sys.stdout.close()


def test_the_figures_of_the_last_second(tmp_path: Path) -> None:
    clock = [0.0]
    tail = RowsTail(tmp_path / "rows", lambda: clock[0])
    assert tail.look().requests == 0
    recorder = Recorder(tmp_path / "rows", TrialId("r", "a", "mixed"))
    for number in range(99):
        recorder.add("GET", 10, 0.0, 0.001 * (number + 1), moved=1000)
    recorder.add("GET", 10, 0.0, 9.0, error='a "bad", one')
    recorder.flush()
    clock[0] += 10
    found = tail.look()
    assert found.requests == pytest.approx(10, rel=0.01)
    assert found.errors == pytest.approx(0.1, rel=0.01)
    assert found.bytes == pytest.approx(9900, rel=0.01)
    assert (found.p50, found.p99) == (0.05, 0.099)
    assert tail.look().requests == 0
    for _ in range(20_000):
        recorder.add("GET", 10, 0.0, 0.002, moved=1)
    recorder.close()
    clock[0] += 10
    assert tail.look().requests == pytest.approx(2000, rel=0.01), "of many rows only the last ones are read"


def test_what_a_run_would_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, 0.0, 0.0))
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        stores = (f"a={tmp_path}:efs", f"b={tmp_path}", f"gone={tmp_path}/gone", "made=local")
        endpoints = (f"s3=http://127.0.0.1:{port}", "nobody=http://127.0.0.1:1", "odd=ftp://x")
        found = preview(Plan(2, select_scenarios(["sizes"]), stores=stores, endpoints=endpoints))
    by_name = {place.name: place for place in found.places}
    assert (by_name["a"].driver, by_name["b"].driver) == ("efs", "local")
    assert by_name["a"].where == str(tmp_path)
    assert by_name["a"].free > 0
    assert by_name["a"].needed > 300e6
    assert [place.name for place in found.places if place.problem] == ["gone", "nobody", "odd"]
    assert "no directory" in by_name["gone"].problem
    assert [word in " ".join(found.warnings) for word in ("no verdict", "busy", "a and b lie on one device")] == [
        True
    ] * 3
    assert not list(tmp_path.iterdir())


def test_a_mount_that_hangs_and_one_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    end = threading.Event()
    monkeypatch.setattr(previewing, "INSPECT_SECONDS", 0.1)

    def hang(_: Path) -> None:
        end.wait(20)
        raise OSError

    monkeypatch.setattr(previewing, "mount_of", hang)
    plan = Plan(3, select_scenarios(["sizes"]), stores=(f"a={tmp_path}",))
    assert "does not answer" in preview(plan).places[0].problem
    end.set()
    monkeypatch.undo()
    huge = select_scenarios(["sizes"], settings=["sizes.sizes=900000GB"])
    assert preview(Plan(3, huge, stores=(f"a={tmp_path}",))).places[0].problem.startswith("no space: about")


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "measured_slowness", lambda: 1.0)
    monkeypatch.setattr(previewing, "measured_slowness", lambda: 1.0)
    listed = CliRunner().invoke(cli, ["bench", "scenarios", "--json"])
    scenarios = [json.loads(line) for line in listed.stdout.splitlines()]
    assert [one["name"] for one in scenarios] == list(SCENARIOS)
    assert all(one["about"].endswith(".") and Path(one["file"]).is_file() for one in scenarios)
    files = [line.strip() for line in CliRunner().invoke(cli, ["bench", "scenarios"]).stdout.splitlines()[1::2]]
    assert {Path(one).name for one in files} == {one.name for one in Path(files[0]).parent.glob("[a-z]*.py")}
    monkeypatch.chdir(tmp_path)  # runs are written to `results` of the working directory
    words = ["bench", "--dry-run", "--store", f"a={tmp_path}", "--minutes", "3", "--scenario", "mixed"]
    said = CliRunner().invoke(cli, words)
    assert said.exit_code == 0, said.output
    assert "about 3 min: 10 repeats of mixed" in said.stdout
    found = json.loads(CliRunner().invoke(cli, [*words, "--json"]).stdout)
    assert (found["repeats"], found["places"][0]["name"]) == (10, "a")
    assert not Path("results").exists()


def test_a_gateway_beside_which_it_runs_does_not_lend_its_settings() -> None:
    found = without_settings(
        {"SLUICE_INDEX": "postgresql://…", "MINIO_ROOT_USER": "x", "PATH": "/bin", "AWS_REGION": "r"}
    )
    assert found == {"PATH": "/bin", "AWS_REGION": "r"}
