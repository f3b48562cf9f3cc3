"""The simulation finds nothing in Sluice, finds what is planted, and repeats a seed step by step."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs files in memory")


def simulate(*options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "build/checkout")}
    command = [sys.executable, "-m", "tests.reliability.simulation", *options]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


def test_a_seed_is_replayed_step_by_step_and_finds_nothing() -> None:
    first, second = simulate("--seed", "2"), simulate("--seed", "2")
    assert first.returncode == 0, first.stdout + first.stderr
    assert "steps" in first.stdout
    assert first.stdout == second.stdout


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ("no-directory-sync", "DataDamaged"),
        ("lost-update", "possible was"),
        ("lock-outlives-worker", "commit timeout"),
        ("times-by-clock", "is listed as older|is gone"),
    ],
)
def test_a_planted_fault_is_found(fault: str, found: str) -> None:
    answer = simulate("--fault", fault, "--seeds", "8")
    assert answer.returncode == 1, answer.stderr
    assert re.search(found, answer.stdout)
