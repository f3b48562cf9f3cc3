"""The command that counts by callgrind, with two scripts in the place of valgrind."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from sluice_s3.loadtests.common.targets import ROOT
from sluice_s3.loadtests.cpu.__main__ import cli
from sluice_s3.loadtests.cpu.callgrind import parse_total
from sluice_s3.loadtests.cpu.callgrind_costs import Idle, Plan, Side, measure_idle
from sluice_s3.loadtests.cpu.callgrind_report import Result, describe_python, read_side

DUMP = """# callgrind format
version: 1
part: 1

desc: Trigger: dump

events: Ir
summary: 21233600

fn=(1) ???
0 12

totals: 21497438
"""
VALGRIND = """#!/bin/sh
while :; do
  case $1 in
  --callgrind-out-file=*) echo "${1#*=}" > "$0.out" ;;
  -*) ;;
  *) break ;;
  esac
  shift
done
rm -f "$0.dumps"
exec "$@"
"""
CONTROL = """#!/bin/sh
at=$(dirname "$0")/valgrind
if [ "$1" = --dump ]; then
  echo dump >> "$at.dumps"
  number=$(wc -l < "$at.dumps")
  printf 'totals: %s\\n' $((number * 1000000)) > "$(cat "$at.out").$number"
fi
echo '  OK.'
"""
PYTHON = {
    "executable": "/bin/python",
    "version": "3.13.1",
    "compiler": "GCC 14",
    "flags": "-O3",
    "optimised": True,
    "lto": False,
}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scripts in the place of valgrind and callgrind_control; the n-th dump has n million."""
    place = tmp_path / "tools"
    place.mkdir()
    for name, text in (("valgrind", VALGRIND), ("callgrind_control", CONTROL)):
        (place / name).write_text(text)
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:/usr/bin:/bin")
    return place


def test_the_total_of_a_dump() -> None:
    assert parse_total(DUMP) == 21_497_438
    assert [parse_total(DUMP[:end]) for end in (0, 100, len(DUMP) - 12, len(DUMP) - 1)] == [None] * 4


def test_idling_is_subtracted() -> None:
    idle = Idle(reading=200_000, per_second=4_000_000)
    assert idle.subtract_from(31_200_000, 2.5) == 21_000_000


def test_idling_is_measured_without_what_a_reading_takes() -> None:
    class Worker:
        totals = [200_000, 5_200_000]

        def zero(self) -> None:
            pass

        def read_total(self) -> int:
            return self.totals.pop(0)

    idle = measure_idle(Worker(), 0.05)  # type: ignore[arg-type]
    assert idle.reading == 200_000
    assert 5_000_000 / 0.5 < idle.per_second <= 5_000_000 / 0.05


def test_without_valgrind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = CliRunner().invoke(cli, ["callgrind"])
    assert done.exit_code == 2
    assert "valgrind and callgrind_control not found" in done.stderr
    assert "apt install valgrind" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--ops", "put,unknown"], ["--against", "/nowhere"], ["--rounds", "0"], ["--against", __file__]],
    ids=lambda arguments: "=".join(arguments)[:20],
)
def test_what_cannot_be_meant(tools: Path, arguments: list[str]) -> None:
    assert CliRunner().invoke(cli, ["callgrind", *arguments]).exit_code == 2


def test_a_run_whole_and_one_against_it(tools: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    common = ["callgrind", "--ops", "put,put:boto3", "--count", "4", "--rounds", "1", "--idle", "1"]
    common += ["--directory", str(tmp_path), "--python", sys.executable]
    done = CliRunner().invoke(cli, [*common, "--output", str(first)])
    assert done.exit_code == 0, done.output
    document = json.loads(first.read_text())
    (side,) = document["sides"]
    assert document["settings"]["count"] == 4
    assert document["settings"]["environment"]["SLUICE_SCRUB_RATE"] == "0"
    assert side["python"]["executable"] == str(Path(sys.executable).resolve())
    idle = side["idle"][0]  # the second dump without the first, in a bit more than a second
    assert 900 < idle <= 1000
    # the third dump has 3 million, of which the first's one million is of reading; the rest is of four
    assert side["costs"]["PUT"][0] == pytest.approx(500, abs=100)
    assert side["costs"]["PUT:BOTO3"][0] == pytest.approx(1000, abs=100)  # of three at least

    done = CliRunner().invoke(cli, [*common, "--output", str(second), "--against", str(first)])
    assert done.exit_code == 0, done.output
    assert "ratio" in done.stdout
    assert "load average" in done.stdout
    assert [one["name"] for one in json.loads(second.read_text())["sides"]] == ["this", "first"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.json", "second.json", "tools"]


def test_a_worker_that_does_not_start(tools: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for name in ("app", "loadtests", "migrations", "storage_drivers"):
        (other / name).mkdir(parents=True)
    done = CliRunner().invoke(cli, ["callgrind", "--rounds", "1", "--ops", "stat", "--against", str(other)])
    assert done.exit_code == 1
    assert f"the worker runs {ROOT}/app, not {other}/app" in done.stderr or "did not start" in done.stderr


def test_the_table_sets_one_against_the_other(tmp_path: Path) -> None:
    own = Side("this", "/a", "abc", PYTHON, [4000.0], {"PUT": [180.0, 190.0, 200.0], "GET": [60.0]})
    other = Side("other", "/b", "def", PYTHON, [4000.0], {"PUT": [195.0, 200.0, 210.0], "GET": [80.0]})
    result = Result([own, other], Plan(("PUT", "GET", "LIST"), 150, 10.0), 3)
    console = Console(width=120)
    with console.capture() as shown:
        console.print(result.table())
    lines = [line.split() for line in shown.get().splitlines()]
    assert ["PUT", "190.0", "180.0-200.0", "200.0", "195.0-210.0", "0.950≈"] in lines
    assert ["GET", "60.0", "60.0-60.0", "80.0", "80.0-80.0", "0.750"] in lines
    assert ["LIST", "-", "-"] in lines
    result.write(tmp_path / "result.json")
    assert read_side(tmp_path / "result.json") == Side("result", "/a", "abc", PYTHON, own.idle, own.costs)


def test_an_interpreter_in_a_line() -> None:
    assert describe_python(PYTHON) == "Python 3.13.1 (/bin/python, GCC 14), profile-guided, no LTO, -O3"
    assert "not optimised" in describe_python({**PYTHON, "optimised": False})
