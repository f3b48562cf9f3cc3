"""From rows to numbers: worked out by hand, and anew from the rows as they were written."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import pytest

from sluice_s3.loadtests.compare.plan import PlanError
from sluice_s3.loadtests.report import model as models
from sluice_s3.loadtests.report.loader import Group, phases_of
from sluice_s3.loadtests.report.model import of_run
from sluice_s3.loadtests.report.time_windows import heat, shares, windows
from tests.tools.loadtests.report.making import Made, row, steady


def test_a_kind_of_request_over_its_repeats(tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    made.cell(
        "a", "mixed", 1, [row(start=0.0, total_s=1.0), row(start=1.0, total_s=3.0), row("PUT", start=0.0, total_s=2.0)]
    )
    made.cell(
        "a", "mixed", 2, [row(start=10.0, total_s=2.0, phases="auth=1;index=3"), row(start=12.0, error="Slow: x")]
    )
    model = of_run(made.write())
    get, put = model.of("mixed", target="a")
    assert (get.operation, get.errors, get.moved) == ("GET", 1, 3000)
    assert get.total is not None
    assert (get.total.count, get.total.mean, get.total.p50, get.total.worst) == (3, 2.0, 2.0, 3.0)
    first, second = get.rounds
    assert (first.count, first.begin, first.seconds, first.busy, first.rate) == (2, 0.0, 4.0, 4.0, 500.0)
    assert (second.count, second.errors, second.seconds, second.p50) == (1, 1, 2.0, 2.0)
    assert get.phases == {"auth": 1.0, "index": 3.0}
    assert put.total is not None
    assert put.total.count == 1
    assert [(one.operation, one.count, one.first[0].text) for one in model.errors] == [("GET", 1, "Slow: x")]
    assert model.targets == ["a", "b"]
    assert not model.partial


def test_the_same_numbers_from_the_rows_anew(tmp_path: Path) -> None:
    source = random.Random(1)
    rows = [
        row(
            source.choice(("GET", "PUT")),
            start=round(source.uniform(0, 5), 6),
            total_s=round(source.lognormvariate(-4, 1), 6),
        )
        for _ in range(500)
    ]
    model = of_run(Made(tmp_path / "r", ("a",)).cell("a", "mixed", 1, rows).write())
    for operation in ("GET", "PUT"):
        times = [one["total_s"] for one in rows if one["operation"] == operation]
        ends = [one["start"] + one["total_s"] for one in rows if one["operation"] == operation]
        (line,) = model.of("mixed", operation=operation)
        assert line.total is not None
        assert line.total.mean == pytest.approx(statistics.fmean(times))
        assert line.total.p50 == pytest.approx(statistics.median(times))
        assert line.rounds[0].seconds == pytest.approx(
            max(ends) - min(one["start"] for one in rows if one["operation"] == operation)
        )


def test_small_files_of_all_sizes_are_told_as_one(tmp_path: Path) -> None:
    rows = [row(size=one, bytes=one, stage="read-warm") for one in (10, 20, 30)]
    model = of_run(Made(tmp_path / "r", ("a",), ["small_files"]).cell("a", "small_files", 1, rows).write())
    (line,) = model.lines
    assert (line.size, line.moved) == (-1, 60)


def test_the_first_ten_errors_by_time(tmp_path: Path) -> None:
    rows = [row(start=100.0 - n, error=f"Bad: {n}") for n in range(20)]
    model = of_run(Made(tmp_path / "r", ("a",)).cell("a", "mixed", 1, rows).write())
    (found,) = model.errors
    assert found.count == 20
    assert [one.text for one in found.first] == [f"Bad: {n}" for n in range(19, 9, -1)]
    assert model.lines[0].total is None
    assert model.lines[0].rounds == []


def test_a_request_counts_in_each_second_by_its_share() -> None:
    group = Group()
    group.add(row(start=100.0, total_s=0.5, bytes=1000))
    group.add(row(start=100.5, total_s=2.0, bytes=1000))
    group.add(row(start=102.5, total_s=0.5, bytes=1000))
    found = windows([group])
    assert [one.objects for one in found] == [pytest.approx(1.25), pytest.approx(0.5), pytest.approx(1.25)]
    assert [one.start for one in found] == [100.0, 101.0, 102.0]
    assert sum(one.bytes for one in found) == pytest.approx(3000)


def test_shares_of_a_long_request_add_to_one() -> None:
    found = list(shares(0.25, 3.5, 10))
    assert [at for at, _ in found] == [0, 1, 2, 3]
    assert sum(share for _, share in found) == pytest.approx(1)
    assert list(shares(0.2, 0.0, 10)) == [(0, 1.0)]
    assert list(shares(2.5, 0.1, 2)) == []


def test_a_heat_map_holds_every_request() -> None:
    group = Group()
    for one in steady([0.001, 0.002, 0.004, 0.008, 1.0]):
        group.add(one)
    found = heat([group])
    assert found is not None
    assert sum(found.counts.values()) == 5
    assert all(0 <= column < found.columns and 0 <= band < found.bands for column, band in found.counts)
    assert found.floor * found.step**found.bands == pytest.approx(1.0)
    assert heat([Group()]) is None
    assert windows([Group()]) == []


def test_what_a_process_took_while_rows_were_made(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", ("a",)).cell(
        "a", "mixed", 1, [row(start=10.0, total_s=2.0), row(start=12.0, total_s=2.0)]
    )
    made.resources(
        {"time": 10.2, "target": "a", "who": "generator", "cpu": 0.9},  # its middle lies before the rows
        {"time": 12.0, "target": "a", "who": "generator", "cpu": 0.8},
        {"time": 13.0, "target": "a", "who": "generator", "cpu": 1.0},
        {"time": 12.0, "target": "a", "who": "gateway", "cpu": 0.5, "rss_bytes": 5000, "processes": 2},
        {"time": 12.0, "target": "a", "who": "device", "cpu": "", "rss_bytes": "", "written_bytes": 77, "processes": 0},
        {"time": "12.", "target": "a", "who": "gateway", "cpu": "0.", "interval_s": ""},
    )
    model = of_run(made.write())
    found = {one.who: one for one in model.usages}
    assert found["generator"].share == pytest.approx(0.9)
    assert found["generator"].cores == pytest.approx(0.9)
    assert (found["gateway"].cores, found["gateway"].peak_rss) == (0.5, 5000)
    assert (found["device"].written, found["device"].read) == (77, None)
    assert model.limited("a", "mixed")
    assert found["gateway"].span == pytest.approx(4.0)


def test_of_several_generators_one_only_leads(tmp_path: Path) -> None:
    made = Made(tmp_path / "r", ("a",)).cell("a", "mixed", 1, [row(start=10.0, total_s=4.0)])
    made.resources({"time": 12.0, "target": "a", "who": "generator", "cpu": 1.6, "processes": 5})
    model = of_run(made.write())
    assert model.usages[0].share == pytest.approx(0.4)
    assert not model.limited("a", "mixed")


def test_a_partial_run_and_files_that_are_cut_off(tmp_path: Path) -> None:
    made = Made(tmp_path / "r")
    made.cell("a", "mixed", 1, [row() for _ in range(5000)])
    made.cell("b", "mixed", 1, [row()], state="interrupted", reason="interrupted")
    made.cell("b", "mixed", 2, [])
    made.meta["cells"].append(
        {**made.meta["cells"][-1], "repeat": 3, "file": "", "state": "failed", "reason": "no space"}
    )
    whole = tmp_path / "r" / "rows" / "a" / "mixed-1.csv.gz"
    whole.write_bytes(whole.read_bytes()[:-40])
    model = of_run(made.write(state="partial", reason="interrupted by SIGINT"))
    assert model.partial.startswith("interrupted by SIGINT; rows/a/mixed-1.csv.gz: ")
    assert len(model.of("mixed", target="b")) == 1
    assert model.scenarios() == ["mixed"]
    assert models.Model({**model.meta, "state": "running", "reason": ""}).partial == "it was not ended"


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"no meta\.json"):
        of_run(tmp_path)
    (tmp_path / "meta.json").write_text('{"format": 2}')
    with pytest.raises(PlanError, match="format 1"):
        of_run(tmp_path)


def test_phases_that_are_no_numbers_are_left_out() -> None:
    assert list(phases_of("auth=0.5;index=x;;commit=2")) == [("auth", 0.5), ("commit", 2.0)]
