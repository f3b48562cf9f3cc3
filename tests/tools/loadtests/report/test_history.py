"""Lists of runs, their trend, and two of them as a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice_s3.app.cli.bench import bench
from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.report import history, write_report
from sluice_s3.loadtests.report.comparison import compare_runs
from sluice_s3.loadtests.report.comparison_page import comparison_page, lead_of, write_comparison
from sluice_s3.loadtests.report.history import runs_of
from sluice_s3.loadtests.report.trend import write_trend
from tests.tools.loadtests.report.making import STARTED, Made
from tests.tools.loadtests.report.test_pages import EVIL, seen
from tests.tools.loadtests.report.test_pairs import mixed

DAY = 86_400


def results(directory: Path) -> Path:
    """Four runs: three alike, of which the last is slower on b, and one of another target."""
    for day, (name, slow) in enumerate((("one", 1.0), ("two", 1.0), ("three", 1.3))):
        made = mixed(directory / name, 0.01)
        if slow > 1:
            made.meta["cells"] = [cell for cell in made.meta["cells"] if cell["target"] == "a"]
            made.meta["cells"] += mixed(directory / name, 0.01 * slow, names=("b",)).meta["cells"]
        made.write(started=STARTED + day * DAY)
        write_report(made.directory)
    mixed(directory / "other", 0.01, names=("c",)).write(started=STARTED + 9 * DAY)
    (directory / "notes.txt").write_text("no run")
    (directory / "broken").mkdir()
    (directory / "broken" / "meta.json").write_text('{"format": 1, "run": 3}')
    return directory


def test_the_newest_is_first_and_what_is_no_run_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = runs_of(results(tmp_path))
    assert [one.run for one in found] == ["other", "three", "two", "one"]
    assert found[1].headline == ["Take a for mixed load."]
    assert found[2].headline == ["No difference: mixed load."]
    assert (found[0].headline, found[0].targets) == ([], ["c"])
    assert found[1].is_like(found[2])
    assert not found[0].is_like(found[1])
    monkeypatch.setattr(history, "MOST_RUNS", 2)
    assert [one.run for one in runs_of(tmp_path)] == ["other", "three"]
    monkeypatch.setattr(history, "MOST_REPORT_BYTES", 10)
    assert runs_of(tmp_path)[1].headline == [], "a report that is too large is not read"
    with pytest.raises(PlanError, match="No such file"):
        runs_of(tmp_path / "none")


def test_other_options_are_another_trend(tmp_path: Path) -> None:
    one, other = mixed(tmp_path / "a", 0.01), mixed(tmp_path / "b", 0.01)
    other.meta["plan"]["scenarios"]["mixed"]["arguments"]["size"] = "1KB"
    one.write()
    other.write()
    first, second = runs_of(tmp_path)
    assert not first.is_like(second)


def test_the_trend(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="there is no run whose report has a use"):
        write_trend(tmp_path)
    results(tmp_path)
    page = write_trend(tmp_path).read_text(encoding="utf-8")
    found = seen(page)
    words = " ".join(" ".join(found.text).split())
    assert "Trend: a and b" in words
    assert "3 of 3 runs, with the same targets and scenarios" in words
    assert "From two to three: slower: b in mixed load" in words
    assert "2023-11-14 to 2023-11-16" in words
    assert words.index("three 2023-11-16") < words.index("one 2023-11-14"), "the newest run is first in the table"
    links = [attributes["href"] for tag, attributes in found.tags if tag == "a"]
    assert links == ["three/report.html", "two/report.html", "one/report.html"]
    assert page.count("<circle") == 6, "a point for each run and store"
    assert not any(tag in ("script", "link", "img") for tag, _ in found.tags)
    with pytest.raises(PlanError, match="there is no run other whose report has a use"):
        write_trend(tmp_path, "other")
    write_report(tmp_path / "other")
    with pytest.raises(PlanError, match="no other run"):
        write_trend(tmp_path)
    assert write_trend(tmp_path, "two").exists()


def test_two_runs_as_a_page(tmp_path: Path) -> None:
    first, second = mixed(tmp_path / "x", 0.01).write(), mixed(tmp_path / "y", 0.0125).write()
    pairs = compare_runs(first, second)
    assert lead_of(pairs) == "slower: a in mixed load (-20 %) and b in mixed load (-20 %)."
    assert lead_of(compare_runs(second, first)).startswith("faster: a in mixed load (+25 %)")
    assert lead_of(compare_runs(first, first)).startswith("no difference that matters in 2 of 2 uses")
    few = mixed(tmp_path / "z", 0.01, repeats=1).write()
    assert lead_of(compare_runs(first, few)) == "nothing can be called: too much noise, or too few repeats."
    file = write_comparison(pairs, second)
    assert file == second / "compared-with-x.html"
    words = " ".join(" ".join(seen(file.read_text(encoding="utf-8")).text).split())
    assert "x vs y" in words
    assert "From A to B: slower: a in mixed load" in words.replace("\u00a0", " ")


def test_names_are_text_wherever_they_come_from(tmp_path: Path) -> None:
    made: Made = mixed(tmp_path / "x", 0.01, names=("a",))
    made.meta["run"] = EVIL
    made.meta["machine"]["cpu"] = EVIL
    first = made.write()
    pairs = compare_runs(first, mixed(tmp_path / "y", 0.02, names=("a",)).write())
    assert write_comparison(pairs, first).parent == first
    for one in ("x", "y"):
        write_report(tmp_path / one)
    for page in (write_comparison(pairs, first), write_trend(tmp_path)):
        text = page.read_text(encoding="utf-8")
        assert "<script" not in text
        assert "<img" not in text
        assert "alert" in text
    assert comparison_page(pairs).doubts, "another machine"


def test_the_commands(tmp_path: Path) -> None:
    run = CliRunner().invoke
    results(tmp_path)
    listed = run(bench, ["history", str(tmp_path)])
    assert listed.exit_code == 0, listed.output
    assert "Take a for mixed load." in listed.output
    assert "no report" in listed.output
    found = json.loads(run(bench, ["history", str(tmp_path), "--json"]).stdout)
    assert [one["run"] for one in found] == ["other", "three", "two", "one"]
    assert not (tmp_path / "trend.html").exists()
    written = run(bench, ["history", str(tmp_path), "--trend"])
    assert written.exit_code == 0, written.output
    assert written.output.strip().endswith("trend.html")
    compared = run(bench, ["compare", str(tmp_path / "two"), str(tmp_path / "three")])
    assert compared.exit_code == 0, compared.output
    assert (tmp_path / "three" / "compared-with-two.html").exists()
    (tmp_path / "empty").mkdir()
    assert "there are no runs" in run(bench, ["history", str(tmp_path / "empty")]).output
    for words in (["--like", "two"], ["--trend", "--like", "nobody"]):
        assert run(bench, ["history", str(tmp_path), *words]).exit_code == 2
    assert run(bench, ["history", str(tmp_path / "nowhere")]).exit_code == 2
