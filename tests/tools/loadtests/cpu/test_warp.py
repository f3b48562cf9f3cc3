"""What warp records becomes a measure. The warp here is a script that writes what warp would."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sluice_s3.loadtests.cpu.warp import Sample, _sample_at, parse_records
from tests.support.environment import ROOT

RECORDS = """idx\top\tbytes\terror\tstart\tend\tduration_ns
0\tPUT\t4096\t\t2026-01-01T00:00:00.5Z\t2026-01-01T00:00:01.25Z\t750000000
1\tPUT\t4096\t\t2026-01-01T00:00:00.123456789Z\t2026-01-01T00:00:01Z\t876543211
2\tGET\t4096\t\t2026-01-01T00:00:09Z\t2026-01-01T00:00:10Z\t1000000000
3\tPUT\t0\tSlow down\t2026-01-01T00:00:01.25Z\t2026-01-01T00:00:02Z\t750000000
# warp put
"""
START = 1767225600.0


def test_records_of_one_operation() -> None:
    found = parse_records(RECORDS, "PUT")
    assert found.start == pytest.approx(START + 0.123456789, abs=1e-6)
    assert found.end == START + 2
    assert found.latencies == [0.75, 0.876543211]
    assert found.moved == 8192
    assert found.errors == {"Slow down": 1}


def test_records_of_every_operation() -> None:
    found = parse_records(RECORDS, "")
    assert (len(found.latencies), found.end) == (3, START + 10)


def test_no_records() -> None:
    assert parse_records(RECORDS.splitlines(keepends=True)[0], "PUT").latencies == []


def test_a_moment_between_samples() -> None:
    samples = [Sample(10.0, 1.0, 5.0, 7.0), Sample(11.0, 2.0, 5.0, 9.0), Sample(12.0, 4.0, 6.0, 11.0)]
    assert _sample_at(samples, 10.5) == Sample(10.5, 1.5, 5.0, 8.0)
    assert _sample_at(samples, 11.75) == Sample(11.75, 3.5, 5.75, 10.5)
    assert _sample_at(samples, 9.0) == samples[0]
    assert _sample_at(samples, 13.0) == samples[-1]


FAKE = """#!{python}
import subprocess, sys, time
from datetime import datetime, timezone
if "--version" in sys.argv:
    sys.exit("warp version 0")
time.sleep(0.5)
words = dict(zip(sys.argv, sys.argv[1:]))
end = datetime.now(timezone.utc)
rows = ["idx op bytes error start end duration_ns".split()]
rows += [[str(n), sys.argv[1].upper(), words["--obj.size"], "", str(end), str(end), "1000000"] for n in range(10)]
for row in rows[1:]:
    row[4] = row[5] = end.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
rows[1][4] = datetime.fromtimestamp(end.timestamp() - 0.3, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
text = "\\n".join("\\t".join(row) for row in rows) + "\\n"
subprocess.run(["zstd", "-q", "-o", words["--benchdata"] + ".csv.zst"], input=text.encode(), check=True)
time.sleep(0.3)
"""


def test_a_run(tmp_path: Path) -> None:
    if shutil.which("zstd") is None:
        pytest.skip("zstd is not installed")
    fake = tmp_path / "warp"
    fake.write_text(FAKE.format(python=sys.executable))
    fake.chmod(0o755)
    data, output = tmp_path / "data", tmp_path / "out.json"
    data.mkdir()
    command = [sys.executable, "-m", "sluice_s3.loadtests.cpu", "run", "--warp", fake, "--target", "sluice"]
    command += ["--ops", "put", "--sizes", "4k", "--clients", "2", "--rounds", "1", "--workers", "2"]
    command += ["--server-core", "-1", "--client-core", "-1", "--directory", data, "--output", output]
    done = subprocess.run(
        command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(output.read_text())
    (measure,) = document["measures"]
    assert measure["operations"] == 10
    assert measure["moved"] == 40960
    assert measure["elapsed"] == pytest.approx(0.3, abs=0.01)
    assert measure["cpu_us"] >= 0
    assert measure["pss_bytes"] > 1 << 20
    assert "optimised" in document["machine"]["interpreter"]
    assert list(data.iterdir()) == []


def test_what_warp_does_not_measure(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sluice_s3.loadtests.cpu", "run", "--warp", sys.executable, "--target", "sluice"]
    done = subprocess.run(
        [*command, "--ops", "multipart"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "MULTIPART: not one of put, get" in " ".join(done.stderr.split())
