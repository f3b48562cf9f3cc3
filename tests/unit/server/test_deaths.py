"""What the launcher notes of processes that died."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from sluice_s3.app.private_files import make_directory
from sluice_s3.app.server.processes.deaths import FILE, MAX_DEATHS, note_death, read_deaths


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    make_directory(tmp_path / "run")
    return tmp_path / "run"


def test_the_last_deaths_are_kept(run_dir: Path) -> None:
    assert read_deaths(run_dir) == []
    for number in range(MAX_DEATHS + 5):
        note_death(run_dir, f"worker {number}", "signal 9")
    found = read_deaths(run_dir)
    assert [one.process for one in found] == [f"worker {number}" for number in range(5, MAX_DEATHS + 5)]
    assert found[-1].reason == "signal 9"
    assert found[-1].at == pytest.approx(time.time() * 1000, abs=60_000)


@pytest.mark.parametrize("content", ["", "[", '[["one"]]', "[3]"])
def test_a_broken_file_is_none(run_dir: Path, content: str) -> None:
    (run_dir / FILE).write_text(content)
    assert read_deaths(run_dir) == []
    note_death(run_dir, "admin", "code 1")
    assert len(read_deaths(run_dir)) == 1
