"""The command whole: two durabilities of this gateway, every operation, cells of a moment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SMALL = (
    "--rounds 1 --ops put,get,stat,delete,list,multipart,mix --sizes 4k,200k --seconds 0.1 --warm-up 0.02"
    " --list-keys 20 --multipart 10m --part 5m --mix-size 300k --mix-clients 3 --clients 4"
)


@pytest.mark.skipif(not {0, 1} <= os.sched_getaffinity(0), reason="wants core 0 for the server and core 1 for itself")
def test_every_cell_is_measured(tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    command = [sys.executable, "-m", "benchmarks", "run", "--target", "sluice", "--target", "sluice:full"]
    command += [*SMALL.split(), "--output", str(output), "--directory", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(output.read_text())["rows"]
    assert len(rows) == 2 * (2 * 4 + 3)
    assert all(row["errors"] == 0 and row["rate"]["low"] > 0 and row["cpu_us"]["low"] > 0 for row in rows)
    assert "sluice-full" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]
