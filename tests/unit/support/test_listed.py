"""What the suites of others print, and how a run differs from its lists."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.strangers import run
from tests.strangers.suites import Suite
from tests.support.listed import (
    go_outcomes,
    java_outcomes,
    junit_outcomes,
    mint_outcomes,
    report,
    rust_outcomes,
    shell_outcomes,
)


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    return tmp_path / "printed"


def test_go_counts_the_innermost_tests(printed: Path) -> None:
    printed.write_text("--- FAIL: A (1s)\n    --- PASS: A/b (0s)\n    --- FAIL: A/c (0s)\n--- SKIP: D (0s)\n")
    assert go_outcomes(printed) == {"A/b": "passed", "A/c": "fail", "D": "skip"}


def test_rust(printed: Path) -> None:
    printed.write_text("test aws::a ... ok\ntest aws::b - should panic ... FAILED\ntest result: FAILED. 1 passed\n")
    assert rust_outcomes(printed) == {"aws::a": "passed", "aws::b": "FAILED"}


def test_shell(printed: Path) -> None:
    printed.write_text('s3fs: test_a failed\ntest_a passed\ntest_b: "of b"\ntest_b failed\nPASS: test_c\n')
    assert shell_outcomes(printed) == {"test_a": "passed", "test_b": "failed"}


def test_java_names_the_class_that_ran_a_test(printed: Path) -> None:
    printed.write_text(
        '<testsuite><testcase name="a()" classname="org.One"/><testcase name="a()" classname="org.Two">'
        '<failure message="no&#10;more"/></testcase></testsuite>'
    )
    assert java_outcomes(printed) == {"One.a": "passed", "Two.a": "failure: no"}


def test_mint_takes_the_worst_of_a_test_that_reports_twice(printed: Path) -> None:
    printed.write_text(
        'log\n{"name": "m: a", "status": "FAIL", "error": "no\\nmore"}\n{"name": "m: a", "status": "PASS"}\n'
    )
    assert mint_outcomes(printed) == {"a": "FAIL: no"}


def test_only_a_test_that_must_pass_fails_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert report({"a": "passed", "b": "fail"}, {"a": ""}, {"b": "why"}, whole=True) == 0
    assert report({"b": "passed"}, {"a": ""}, {"b": "why"}, whole=True) == 1
    said = capsys.readouterr().out
    assert "a: did not run" in said
    assert "left out, but passed (1)" in said


@pytest.mark.parametrize("outcomes", [junit_outcomes, go_outcomes])
def test_a_suite_that_dies_at_its_start_shows_what_it_printed(
    printed: Path, outcomes: Callable[[Path], dict[str, str]]
) -> None:
    printed.write_text("x\n" * 1000 + "ImportError: no module\n")
    suite = Suite(repository="a/b", commit="", command=(), outcomes=outcomes)
    with pytest.raises(run.Broken, match=r"can be read; it printed last:\n(  x\n){19}  ImportError: no module$"):
        run.read_outcomes(suite, printed.with_name("report.xml"), printed)


def test_a_suite_that_cannot_be_built_does_not_end_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, build in (("one", "false"), ("two", "no-such-program")):
        suite = Suite(repository=f"a/{name}", commit="", command=(), outcomes=go_outcomes, build=(build,))
        monkeypatch.setitem(run.SUITES, name, suite)
    monkeypatch.setattr(run, "BUILD", tmp_path)
    monkeypatch.setattr("sys.argv", ["run", str(tmp_path), "one", "two"])
    assert run.main() == 2
    said = capfd.readouterr().err
    assert "one: it could not be built: " in said
    assert "two: it could not be built: [Errno 2] No such file or directory: 'no-such-program'" in said
