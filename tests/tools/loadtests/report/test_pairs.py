"""Two runs beside each other, and the commands that show and write reports."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from sluice_s3.app.cli.bench import bench
from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.report import console
from sluice_s3.loadtests.report.comparison import compare_runs
from tests.tools.loadtests.report.making import Made, row, steady


def mixed(directory: Path, seconds: float, repeats: int = 3, names: tuple[str, ...] = ("a", "b")) -> Made:
    made = Made(directory, names)
    for name in names:
        for repeat in range(1, repeats + 1):
            made.cell(name, "mixed", repeat, steady([seconds * (1 + 0.004 * repeat)] * 20))
    return made


def test_the_second_run_is_told_against_the_first(tmp_path: Path) -> None:
    first, second = mixed(tmp_path / "x", 0.01).write(), mixed(tmp_path / "y", 0.0125, names=("b", "c")).write()
    found = compare_runs(first, second)
    assert (found.a, found.b) == ("x", "y")
    assert {one.target for one in found.pairs} == {"b"}
    use, figure = found.pairs
    assert (use.use, use.figure, figure.figure) == ("Mixed load", "", "mixed")
    assert use.over.ratio == pytest.approx(0.8)
    assert (use.over.call, figure.over.call) == ("slower", "slower")
    assert figure.a.endswith("/s")
    assert compare_runs(first, first).pairs[0].over.call == "no difference"


def test_runs_that_cannot_be_set_beside_each_other(tmp_path: Path) -> None:
    first = mixed(tmp_path / "x", 0.01).write()
    with pytest.raises(PlanError, match="no use of a target in common"):
        compare_runs(first, mixed(tmp_path / "y", 0.01, names=("c",)).write())
    other = mixed(tmp_path / "z", 0.01)
    other.meta["plan"]["scenarios"]["mixed"]["arguments"] = {"size": "1KB"}
    with pytest.raises(PlanError, match=r"mixed is not compared: it was played with .*size 10MiB and 1KB"):
        compare_runs(first, other.write())
    with pytest.raises(PlanError, match="is no run"):
        compare_runs(first, tmp_path)


def test_what_else_differs_is_said(tmp_path: Path) -> None:
    first, second = mixed(tmp_path / "x", 0.01), mixed(tmp_path / "y", 0.01, repeats=1)
    second.meta["machine"]["cores"] = 64
    second.meta["plan"]["durability"] = "relaxed"
    second.meta["plan"]["scenarios"]["mixed"]["arguments"] |= {"duration": "99"}
    found = compare_runs(first.write(), second.write(state="partial", reason="ctrl-C"))
    assert found.remarks == [
        "B is a partial run: ctrl-C",
        "another machine: cores 2 and 64",
        "durability: full and relaxed",
    ]
    assert found.pairs[0].over.call == "too few repeats"


def test_errors_are_not_compared(tmp_path: Path) -> None:
    first, second = mixed(tmp_path / "x", 0.01), Made(tmp_path / "y")
    for repeat in (1, 2, 3):
        second.cell("a", "mixed", repeat, [*steady([0.001] * 10), row(error="SlowDown: x", start=1.0)])
    assert compare_runs(first.write(), second.write()).pairs[0].over.call == "too many errors"


def test_on_a_terminal(tmp_path: Path) -> None:
    made = mixed(tmp_path / "x", 0.01, names=("[red]a",)).write()
    out = io.StringIO()
    console.show(compare_runs(made, made), Console(file=out))
    text = out.getvalue()
    assert "[red]a" in text
    assert "no difference" in text
    assert "+0.0 %" in text


def test_the_commands(tmp_path: Path) -> None:
    first, second = mixed(tmp_path / "x", 0.01).write(), mixed(tmp_path / "y", 0.0125).write()
    run = CliRunner().invoke
    made = run(bench, ["report", str(first)])
    assert made.exit_code == 0, made.output
    assert made.output.strip().endswith("x/report.html")
    assert (first / "report.md").exists()
    compared = run(bench, ["compare", str(first), str(second)])
    assert compared.exit_code == 0, compared.output
    assert "slower" in compared.output
    for words in (
        ["report", str(tmp_path / "none")],
        ["compare", str(first), str(tmp_path)],
        ["report", str(tmp_path)],
    ):
        failed = run(bench, words)
        assert failed.exit_code == 2
        assert "is no run: there is no meta.json" in failed.output
