"""Rows: written by several processes, gathered into one file, and read again."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from sluice_s3.loadtests.request_log import COLUMNS, Recorder, TrialId, merge, read_rows


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "parts", TrialId("run-1", "local", "mixed", 2))
    recorder.add("GET", 10, 1.5, 0.25, ttfb=0.125, moved=10, phases="auth=0.1;read=1", stage="s", users=3)
    recorder.add("PUT", 10, 2.0, 0.5, status=0, error='a "quoted",\nbroken: ü', late=0.5, retries=1)
    recorder.close()
    file = tmp_path / "rows" / "mixed-2.csv.gz"
    assert merge(tmp_path / "parts", file) == (2, 1)
    good, bad = read_rows(file)
    assert tuple(good) == COLUMNS
    assert (good["run"], good["target"], good["scenario"], good["repeat"]) == ("run-1", "local", "mixed", 2)
    assert (good["operation"], good["size"], good["users"], good["stage"]) == ("GET", 10, 3, "s")
    assert (good["ttfb_s"], good["total_s"], good["bytes"], good["late_s"]) == (0.125, 0.25, 10, None)
    assert (good["error"], good["phases"]) == ("", "auth=0.1;read=1")
    assert bad["error"] == "a 'quoted', broken: ü"
    assert (bad["status"], bad["late_s"], bad["ttfb_s"]) == (0, 0.5, None)
    assert (good["retries"], bad["retries"]) == (0, 1)
    assert bad["start"] - good["start"] == pytest.approx(0.5, abs=1e-5)
    assert not (tmp_path / "parts").exists()


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "parts", TrialId())
    recorder.add("GET", 1, 0, 0)
    recorder.close()
    part = next((tmp_path / "parts").iterdir())
    part.write_text(part.read_text() + "half a li")
    (tmp_path / "parts" / "other.csv").write_text(part.read_text().partition("\n")[0] + "\n")
    assert merge(tmp_path / "parts", tmp_path / "to.csv.gz") == (2, 0)
    assert len(list(read_rows(tmp_path / "to.csv.gz"))) == 2


def test_rows_from_before_retries_were_counted_are_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "old.csv.gz", "wt") as file:
        file.write(",".join(COLUMNS[:-1]) + "\nr,t,mixed,1,,GET,1,1,0.0,,0.1,0.1,1,200,,\n")
    assert [row["retries"] for row in read_rows(tmp_path / "old.csv.gz")] == [0]


def test_nothing_was_written(tmp_path: Path) -> None:
    assert merge(tmp_path / "none", tmp_path / "to.csv.gz") == (0, 0)
    assert list(read_rows(tmp_path / "to.csv.gz")) == []
