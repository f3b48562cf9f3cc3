"""The table of places: what runners wrote is counted, kept and shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts import places
from scripts.places import NOT_ON, OWN, ROOT, SAMPLED, SUITES, Outcome, keep, load, read, table
from tests.support.places import PLACES

JUNIT = """<testsuites><testsuite>
<testcase classname="m" name="a"/>
<testcase classname="m" name="b"><failure message="assert 1 == 2&#10;more"/></testcase>
<testcase classname="m" name="c"><error message="boom"/></testcase>
<testcase classname="m" name="d"><skipped message="Skipped: no disk"/></testcase>
<testcase classname="m" name="e"><skipped message="no disk"/></testcase>
</testsuite></testsuites>"""


def test_what_pytest_wrote(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text(JUNIT)
    outcome = read(report, "functional")
    assert outcome.passed == 1
    assert outcome.failed == {"m::b": "assert 1 == 2", "m::c": "boom"}
    assert outcome.skipped == {"no disk": 2}
    assert outcome.cell == "1 / **2** / 2"


def test_what_the_conformance_suite_wrote(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text('{"passed": 3, "failed": {"test_x": "did not run"}, "left": 0}')
    assert read(report, "s3-tests") == Outcome(3, {"test_x": "did not run"})
    report.write_text('{"passed": 3, "failed": {}, "left": 7}')
    assert read(report, "s3-tests") == Outcome(3, skipped={SAMPLED: 7})


@pytest.mark.parametrize("suite", SUITES)
def test_no_report_is_a_failure(tmp_path: Path, suite: str) -> None:
    assert read(tmp_path / "none", suite).failed


def test_a_run_replaces_only_what_it_ran(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    keep("xfs", "functional", Outcome(1), path)
    keep("here", "kill -9", Outcome(2), path)
    keep("xfs", "functional", Outcome(3), path)
    assert load(path) == {"here": {"kill -9": Outcome(2)}, "xfs": {"functional": Outcome(3)}}
    assert list(load(path)) == ["here", "xfs"]


def test_the_table_tells_what_failed_was_skipped_and_never_ran() -> None:
    found = {"here": {"functional": Outcome(5, {"m::x": "why"}, {"no disk": 2}, day="2026-01-02", seconds=120)}}
    lines = table(found).splitlines()
    assert lines[0] == "| store on | functional | kill -9 | power cut | s3-tests |"
    assert lines[2] == "| here | 5 / **1** / 2 [1] | not run | - [2] | not run |"
    assert "- [1] no disk" in lines
    assert f"- [2] {NOT_ON['power cut']['here']}" in lines
    assert lines[-1] == "Run on 2026-01-02 at size ci: 2 minutes."
    assert len([line for line in lines if line.startswith("| ")]) == len(PLACES) + 1


def test_names_are_of_things_that_there_are() -> None:
    assert NOT_ON.keys() <= SUITES.keys()
    assert all(row.keys() <= PLACES.keys() for row in NOT_ON.values())
    assert all((ROOT / "tests" / "integration" / "functional" / f"test_{name}.py").exists() for name in OWN)


def test_the_readme_has_the_table_of_the_results() -> None:
    assert places.write_table(check=True) == 0
