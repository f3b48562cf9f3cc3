"""The knee and the number of clients, from rows that were made for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sluice_s3.loadtests.report import write_report
from sluice_s3.loadtests.report.model import of_run
from sluice_s3.loadtests.report.saturation import Point, one_sentence_of_scale, scale_of, scales
from tests.tools.loadtests.report.making import Made, row


def step(users: int, rate: int, seconds: float) -> list[dict[str, Any]]:
    """Requests of one second, each of so many seconds."""
    return [
        row(("GET", "PUT", "STAT", "DELETE")[n % 4], start=1.0 + n / rate, total_s=seconds, stage=f"clients-{users}",
            users=users)
        for n in range(rate)
    ]  # fmt: skip


def run(directory: Path, repeats: int = 3, **arguments: str) -> Path:
    made = Made(directory, ("a", "b"))
    made.meta["plan"]["scenarios"] = {"saturation": {"users": 1, "arguments": arguments, "seconds": 1, "bytes": 1}}
    for repeat in range(1, repeats + 1):
        made.cell("a", "saturation", repeat, [*step(1, 40, 0.01), *step(2, 80, 0.02), *step(4, 84, 0.06)])
        made.cell("b", "saturation", repeat, [*step(4, 30, 0.012), *step(1, 10, 0.012), *step(2, 20, 0.012)])
    return made.write()


def point(users: int, rate: float, p99: float) -> Point:
    return Point(users, rate, 0.0, p99 / 2, p99, p99, p99)


def test_the_knee_and_the_last_that_serves() -> None:
    found = scale_of("a", [point(1, 50, 0.01), point(2, 95, 0.02), point(4, 100, 0.06), point(8, 90, 0.04)], 0.05)
    assert found.knee.users == 2
    assert (found.answer, found.beyond and found.beyond.users) == ("2", 4), "what is beyond stays beyond"
    assert scale_of("a", found.points, 1.0).answer == "8 or more"
    assert scale_of("a", found.points, 0.001).answer == "fewer than 1"
    assert [scale_of("a", found.points, one).served for one in (0.001, 0.01, 0.02)] == [
        "fewer than 1 client", "1 client", "2 clients",
    ]  # fmt: skip


def test_steps_of_all_operations_and_repeats(tmp_path: Path) -> None:
    model = of_run(run(tmp_path / "r"))
    first, second = scales(model)
    assert [one.users for one in second.points] == [1, 2, 4]
    assert [one.rate for one in first.points] == [pytest.approx(value, rel=0.05) for value in (40, 80, 84)]
    assert (first.answer, first.knee.users) == ("2", 2)
    assert second.answer == "4 or more"
    assert one_sentence_of_scale(model).startswith("a serves 2 clients; b serves 4 or more clients with 99 % of ")


def test_the_limit_is_the_runs(tmp_path: Path) -> None:
    assert scales(of_run(run(tmp_path / "r", **{"p99-ms": "15"})))[0].answer == "1"
    assert scales(of_run(run(tmp_path / "s", **{"p99-ms": "70"})))[0].answer == "4 or more"


def test_the_chapter(tmp_path: Path) -> None:
    directory = run(tmp_path / "r")
    write_report(directory)
    text = (directory / "report.md").read_text()
    assert "### How many clients until p99 \\> 50 ms" in text.replace("&gt;", "\\>")
    assert "| a | 2 | 60.0 ms at 4 | 2 |" in text
    assert "| b | 4 or more | not reached | 4 |" in text
    page = (directory / "report.html").read_text()
    assert page.count('class="ring') == 6
    assert '<details class="chapter" id="saturation" open>' in page
    found = json.loads((directory / "report.json").read_text())["saturation"]
    assert [(one["target"], one["knee"]["users"]) for one in found] == [("a", 2), ("b", 4)]


def test_steps_that_failed(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", ("a", "b"))
    made.meta["plan"]["scenarios"] = {"saturation": {"users": 1, "arguments": {}, "seconds": 1, "bytes": 1}}
    bad = row(error="SlowDown: x", stage="clients-2", users=2)
    made.cell("a", "saturation", 1, [*step(1, 5, 0.01), bad]).cell("b", "saturation", 1, [bad])
    write_report(made.write(state="partial", reason="stopped"))
    (found,) = scales(of_run(tmp_path / "r"))
    assert (found.target, found.answer, found.beyond and found.beyond.failed) == ("a", "1", 1.0)
    assert "| a | 1 | 100 % failed at 2 | 1 |" in (tmp_path / "r" / "report.md").read_text()
    some = [point(1, 50, 0.01), Point(2, 99, 0, 0.01, 0.01, 0.01, 0.01, failed=0.02)]
    assert scale_of("a", some, 0.05).answer == "1"
